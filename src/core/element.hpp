// One element of a type-erased tensor, as a double: for code that values plainness over speed.
#pragma once

#include <cstdint>

#include "core/problem.hpp"

namespace levelhead {

/// Element `index` of floating, integer or bool data.
inline double load(const void* data, DType type, std::int64_t index) {
  switch (type) {
    case DType::f64: return static_cast<const double*>(data)[index];
    case DType::f32: return static_cast<const float*>(data)[index];
    case DType::bf16: return to_f32(static_cast<const bf16*>(data)[index]);
    case DType::f16: return to_f32(static_cast<const f16*>(data)[index]);
    case DType::i64: return static_cast<double>(static_cast<const std::int64_t*>(data)[index]);
    case DType::i32: return static_cast<const std::int32_t*>(data)[index];
    case DType::u8:
    case DType::boolean: return static_cast<const std::uint8_t*>(data)[index];
  }
  return 0;
}

/// Rounds x once into element `index`; floating types only.
inline void store(void* data, DType type, std::int64_t index, double x) {
  switch (type) {
    case DType::f64: static_cast<double*>(data)[index] = x; return;
    case DType::f32: static_cast<float*>(data)[index] = static_cast<float>(x); return;
    case DType::bf16: static_cast<bf16*>(data)[index] = to_bf16(x); return;
    case DType::f16: static_cast<f16*>(data)[index] = to_f16(x); return;
    default: assert(false && "only floating tensors are written");
  }
}

inline double load(const Readable& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return load(t.data, t.dtype, t.at(a, b, c, d));
}
inline void store(const Writable& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, double x) {
  store(t.data, t.dtype, t.at(a, b, c, d), x);
}

}  // namespace levelhead
