// What every tensor that enters must pass, and the sentences that say what does not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/problem.hpp"

namespace levelhead {

/// The shortest digits that give x back.
std::string text(double x);
std::string text(float x);

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream sentence;
  const auto add = [&sentence](const auto& part) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(part)>>)
      sentence << text(part);
    else
      sentence << part;
  };
  (add(parts), ...);
  throw Error(sentence.str());
}

/// "[2, 3, 5]"
std::string shape_text(const TensorView& view);
/// "q [2, 3, 5]"
std::string text(const Named& tensor);

/// Whether the product fits 64 bits. Zeros are left out, so that every product of some of the factors fits as well.
bool fits(std::initializer_list<std::int64_t> factors);

bool has_elements(const TensorView& view);

/// Sizes and strides longer than this, in elements or bytes, are refused: sums of a few of them then fit 64 bits.
inline constexpr std::int64_t longest = std::int64_t{1} << 60;

/// Bytes [low, high) that a view's elements lie in, relative to its data; low = high if it has none.
struct ByteExtent {
  std::int64_t low = 0, high = 0;
};
/// Nothing if an offset leaves [-longest, longest] bytes.
std::optional<ByteExtent> byte_extent(const TensorView& view);

/// Rank, sizes, addresses: nothing in it depends on what the tensor is for.
void check_view(const Named& tensor);

/// One axis as the user names it and the size it must have.
struct Axis {
  std::string_view name;
  std::int64_t size;
};
/// check_view, and exactly these sizes.
void check_shape(const Named& tensor, std::initializer_list<Axis> axes);

/// f32, or f64 too beside f64 q.
void check_number_type(const Named& tensor, DType q);
/// Exactly this type; because: why, as in "the type of q".
void check_type(const Named& tensor, DType wanted, std::string_view because);

/// check_view, and broadcastable to [B, Hq, Nq, Nk], aligned right.
void check_broadcast(const Named& tensor, const Problem& problem);

using Tensors = std::vector<Named>;

/// Positive strides, no element at two indices, and every output apart from every input and every other output.
/// All views have passed check_view.
void check_apart(const Tensors& inputs, const Tensors& outputs);

/// The rank-4 view of a checked tensor, aligned right; axes of size 1 and missing ones get stride 0.
template <class Pointer, class Byte>
Strided<Pointer> strided(const BasicTensorView<Byte>& view) {
  Strided<Pointer> result{view.data, view.dtype, {}};
  for (int axis = 0; axis < view.rank; ++axis)
    result.strides[max_rank - view.rank + axis] = view.sizes[axis] == 1 ? 0 : view.strides[axis];
  return result;
}
inline Readable readable(const TensorView& view) { return strided<const void*>(view); }

}  // namespace levelhead
