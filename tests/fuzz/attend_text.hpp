// What fuzz_attend reads: a command line and the tensors of its input file, as text, so that mutation keeps making
// sense and a finding can be read.
//
//   --causal --align bottom-right --stats
//   q F32 1,2,3,4 ~7
//   mask BOOL 3,5 1 1 0
//
// Options are separated by single spaces. A tensor is a name, a type, a shape and its values, repeated until it is
// full; ~N stands for numbers in [-2, 2) that follow from N.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace levelhead::fuzz {

struct DescribedTensor {
  std::string name, dtype, shape;  ///< shape as it stands in the JSON header, without brackets
  std::vector<double> values;      ///< one per element
};

struct DescribedCall {
  std::vector<std::string> options;
  std::vector<DescribedTensor> tensors;
};

/// Nothing if a size is above 64, or elements above 4096 in a tensor or 16 tensors.
std::optional<DescribedCall> parse_call(std::string_view text);

/// The safetensors file of the tensors, as good or bad as their text.
std::vector<std::byte> file_of(const std::vector<DescribedTensor>& tensors);

}  // namespace levelhead::fuzz
