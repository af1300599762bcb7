// A Case as the file that `levelhead attend` reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/driver.hpp"

namespace levelhead::test {

inline void add(std::vector<FileTensor>& tensors, const std::string& name, const std::optional<Tensor>& tensor) {
  if (tensor) tensors.push_back({name, *tensor});
}

inline std::string name_of(Policy policy) {
  switch (policy) {
    case Policy::ssmax: return "ssmax_s";
    case Policy::qk_l2:
    case Policy::qk_rms: return "qk_gain";
    default: return "scale";
  }
}

/// All tensors, with their full rank.
inline std::vector<FileTensor> tensors_of(const Case& c, const Upstream& upstream = {}) {
  std::vector<FileTensor> tensors{{"q", c.q}, {"k", c.k}, {"v", c.v}};
  add(tensors, "mask", c.mask);
  add(tensors, "bias", c.bias);
  add(tensors, "alibi_slopes", c.slopes);
  add(tensors, "sinks", c.sinks);
  add(tensors, "q_lengths", c.q_lengths);
  add(tensors, "k_lengths", c.k_lengths);
  add(tensors, "q_offsets", c.q_offsets);
  add(tensors, "k_offsets", c.k_offsets);
  add(tensors, name_of(c.policy), c.scale_values);
  add(tensors, "dout", upstream.dout);
  add(tensors, "dlse", upstream.dlse);
  add(tensors, "dentropy", upstream.dentropy);
  return tensors;
}

/// The same bytes with the first axis, of size 1, left out.
inline Tensor without_batch(const Tensor& tensor) {
  Tensor squeezed(tensor.dtype(), {tensor.sizes().begin() + 1, tensor.sizes().end()});
  for (std::int64_t n = 0; n < tensor.elements(); ++n) squeezed.set_flat(n, tensor.flat(n));
  return squeezed;
}

}  // namespace levelhead::test
