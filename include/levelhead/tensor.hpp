// Element types and borrowed, strided, type-erased tensor views.
//
// Letters used at every signature: B batch, Hq query heads, Hk key/value heads, G = Hq / Hk, Nq queries,
// Nk keys, D query/key dim, Dv value dim; b, h, i query, j key, c component. All sizes and strides are
// 64-bit and count elements, never bytes.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace levelhead {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, u8, boolean };

/// Bytes of one element.
constexpr std::size_t size_of(DType type) noexcept {
  switch (type) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8:
    case DType::boolean: return 1;
  }
  return 0;
}

/// "f64", "f32", "bf16", "f16", "i64", "i32", "u8" or "bool".
constexpr std::string_view name_of(DType type) noexcept {
  constexpr std::array<std::string_view, 8> names{"f64", "f32", "bf16", "f16", "i64", "i32", "u8", "bool"};
  return names[static_cast<std::size_t>(type)];
}

/// bfloat16 as its 16 bits: the upper half of an IEEE binary32.
struct bf16 {
  std::uint16_t bits = 0;
};

/// IEEE binary16 as its 16 bits.
struct f16 {
  std::uint16_t bits = 0;
};

/// Exact.
constexpr float to_f32(bf16 x) noexcept { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
/// Exact, subnormals included.
float to_f32(f16 x) noexcept;
/// Rounded once, to nearest, ties to even, straight from double (a detour over float would round twice).
bf16 to_bf16(double x) noexcept;
f16 to_f16(double x) noexcept;

inline constexpr int max_rank = 4;
using Dims = std::array<std::int64_t, max_rank>;

template <class T>
constexpr DType dtype_of() noexcept {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<U, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<U, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<U, f16>)
    return DType::f16;
  else if constexpr (std::is_same_v<U, std::int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<U, std::int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<U, std::uint8_t>)
    return DType::u8;
  else {
    static_assert(std::is_same_v<U, bool>, "no DType stands for this element type");
    return DType::boolean;
  }
}

/// A view with const bytes (TensorView) or writable ones (MutableTensorView). It owns nothing.
/// sizes and strides beyond rank are not used. Strides may be 0 or negative on inputs only.
template <class Byte>
struct BasicTensorView {
  using Pointer = std::conditional_t<std::is_const_v<Byte>, const void*, void*>;

  Pointer data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  Dims sizes{};
  Dims strides{};

  constexpr BasicTensorView() = default;

  /// Row-major and dense: the last stride is 1. A size that would overflow a stride is caught by the
  /// functions that take the view, so the products wrap here instead of being undefined.
  constexpr BasicTensorView(Pointer data_, DType dtype_, std::initializer_list<std::int64_t> sizes_)
      : data(data_), dtype(dtype_), rank(static_cast<int>(sizes_.size())) {
    assert(sizes_.size() <= max_rank);
    std::size_t axis = 0;
    for (const std::int64_t size : sizes_) sizes[axis++] = size;
    std::uint64_t stride = 1;
    while (axis-- > 0) {
      strides[axis] = static_cast<std::int64_t>(stride);
      stride *= static_cast<std::uint64_t>(sizes[axis]);
    }
  }

  constexpr BasicTensorView(Pointer data_, DType dtype_, std::initializer_list<std::int64_t> sizes_,
                            std::initializer_list<std::int64_t> strides_)
      : BasicTensorView(data_, dtype_, sizes_) {
    assert(strides_.size() == sizes_.size());
    std::size_t axis = 0;
    for (const std::int64_t stride : strides_) strides[axis++] = stride;
  }

  /// A writable view is a readable one; the other way does not compile.
  constexpr operator BasicTensorView<const std::byte>() const noexcept requires(!std::is_const_v<Byte>) {
    BasicTensorView<const std::byte> view;
    view.data = data;
    view.dtype = dtype;
    view.rank = rank;
    view.sizes = sizes;
    view.strides = strides;
    return view;
  }
};

using TensorView = BasicTensorView<const std::byte>;
using MutableTensorView = BasicTensorView<std::byte>;

/// Typed makers: view(pointer, {B, H, N, D}) and view(pointer, sizes, strides); const data gives a TensorView.
template <class T>
constexpr auto view(T* data, std::initializer_list<std::int64_t> sizes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return BasicTensorView<Byte>(data, dtype_of<T>(), sizes);
}
template <class T>
constexpr auto view(T* data, std::initializer_list<std::int64_t> sizes, std::initializer_list<std::int64_t> strides) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return BasicTensorView<Byte>(data, dtype_of<T>(), sizes, strides);
}

}  // namespace levelhead
