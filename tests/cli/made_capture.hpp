// Captures made for tests of the command.
#pragma once

#include <cmath>
#include <string>

#include "cli/driver.hpp"

namespace levelhead::test {

/// q and k of unit normals, [heads, tokens, D] in each layer, as fresh weights would make them.
struct FreshCapture {
  std::int64_t layers = 2, heads = 4, tokens = 128, D = 64;
  std::uint64_t seed = 1;
  Fields metadata{{"causal", "false"}};

  void write(const std::string& path, double scale) const {
    Random random(seed);
    std::vector<FileTensor> tensors;
    for (std::int64_t n = 0; n < layers; ++n)
      for (const char* part : {".q", ".k"})
        tensors.push_back(
            {"layers." + std::to_string(n) + part, Tensor(DType::f32, {heads, this->tokens, D}).fill_normal(random)});
    Fields fields = metadata;
    fields.emplace_back("scale", std::to_string(scale));
    test::write(path, tensors, fields);
  }
};

}  // namespace levelhead::test
