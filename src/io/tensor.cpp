#include "io/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "levelhead/attention.hpp"

namespace levelhead {
namespace {

std::string in_brackets(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

template <class View>
View dense_view(decltype(View::data) data, DType dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > max_rank) {
    throw Error("a tensor of shape " + in_brackets(shape) + " has " + std::to_string(shape.size()) +
                " dimensions but at most " + std::to_string(max_rank) + " can be used");
  }
  View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view.sizes[axis] = shape[axis];
    view.strides[axis] = stride;
    stride *= std::max<std::int64_t>(shape[axis], 1);  // dense_bytes made sure that this fits
  }
  return view;
}

}  // namespace

std::optional<std::size_t> dense_bytes(DType dtype, std::span<const std::int64_t> shape) noexcept {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : static_cast<std::size_t>(bytes);
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
  const auto bytes = dense_bytes(dtype, shape_);
  if (!bytes) {
    throw Error("a tensor of shape " + in_brackets(shape_) + " and type " + std::string(name_of(dtype)) +
                " is not possible: a size is negative or the bytes overflow 63 bits");
  }
  size_ = *bytes;
  // One byte at least: a view without elements still points somewhere.
  data_.reset(static_cast<std::byte*>(::operator new (size_ == 0 ? 1 : size_, std::align_val_t{64})));
  std::memset(data_.get(), 0, size_);
}

TensorView Tensor::view() const { return dense_view<TensorView>(data_.get(), dtype_, shape_); }
MutableTensorView Tensor::mutable_view() { return dense_view<MutableTensorView>(data_.get(), dtype_, shape_); }

}  // namespace levelhead
