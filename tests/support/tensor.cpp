#include "support/tensor.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

namespace levelhead::test {
namespace {

template <class T>
T* elements_of(std::vector<std::byte>& bytes) {
  return reinterpret_cast<T*>(bytes.data());
}
template <class T>
const T* elements_of(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Sizes dense_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  return strides;
}

template <class View, class Data>
View make_view(Data* data, DType dtype, const Sizes& sizes, const Sizes& strides) {
  View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(sizes.size());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    view.sizes[axis] = sizes[axis];
    view.strides[axis] = strides[axis];
  }
  return view;
}

}  // namespace

std::uint64_t Random::bits() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
}

Tensor::Tensor(DType dtype, Sizes sizes)
    : dtype_(dtype),
      sizes_(std::move(sizes)),
      strides_(dense_strides(sizes_)),
      bytes_(static_cast<std::size_t>(product(sizes_)) * size_of(dtype)) {}

Tensor::Tensor(DType dtype, Sizes sizes, const std::vector<double>& values) : Tensor(dtype, std::move(sizes)) {
  assert(static_cast<std::int64_t>(values.size()) == elements());
  for (std::size_t n = 0; n < values.size(); ++n) set_flat(static_cast<std::int64_t>(n), values[n]);
}

std::int64_t Tensor::elements() const { return product(sizes_); }

TensorView Tensor::view() const {
  return make_view<TensorView>(bytes_.data() + origin_ * static_cast<std::int64_t>(size_of(dtype_)), dtype_, sizes_,
                               strides_);
}

MutableTensorView Tensor::mutable_view() {
  return make_view<MutableTensorView>(bytes_.data() + origin_ * static_cast<std::int64_t>(size_of(dtype_)), dtype_,
                                      sizes_, strides_);
}

Tensor& Tensor::fill(double x) {
  for (std::int64_t n = 0; n < elements(); ++n) set_flat(n, x);
  return *this;
}

Tensor& Tensor::fill_normal(Random& random, double scale) {
  for (std::int64_t n = 0; n < elements(); ++n) set_flat(n, scale * random.normal());
  return *this;
}

Tensor& Tensor::fill_garbage() {
  bytes_.assign(bytes_.size(), std::byte{0xFF});
  return *this;
}

Tensor Tensor::relaid(const std::vector<int>& axes, std::int64_t gap, bool reversed) const {
  Tensor out;
  out.dtype_ = dtype_;
  out.sizes_ = sizes_;
  out.strides_.assign(sizes_.size(), 0);
  std::int64_t stride = gap + 1;
  for (std::size_t n = axes.size(); n-- > 0;) {
    const auto axis = static_cast<std::size_t>(axes[n]);
    out.strides_[axis] = reversed ? -stride : stride;
    if (reversed && sizes_[axis] > 0) out.origin_ += stride * (sizes_[axis] - 1);
    stride *= sizes_[axis];
  }
  out.bytes_.assign(static_cast<std::size_t>(stride) * size_of(dtype_), std::byte{0xFF});
  for (std::int64_t n = 0; n < elements(); ++n) out.set_flat(n, flat(n));
  return out;
}

Tensor Tensor::expanded(int axis, std::int64_t size) const {
  assert(sizes_[static_cast<std::size_t>(axis)] == 1);
  Tensor out = *this;
  out.sizes_[static_cast<std::size_t>(axis)] = size;
  out.strides_[static_cast<std::size_t>(axis)] = 0;
  return out;
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end) const {
  const std::size_t n = axis < 0 ? sizes_.size() - static_cast<std::size_t>(-axis) : static_cast<std::size_t>(axis);
  assert(0 <= begin && begin <= end && end <= sizes_[n]);
  Tensor out = *this;
  out.sizes_[n] = end - begin;
  if (begin < end) out.origin_ += begin * strides_[n];
  return out;
}

Tensor Tensor::slice_broadcast(int axis, std::int64_t begin, std::int64_t end) const {
  const auto from_end = static_cast<std::size_t>(-axis);
  if (from_end > sizes_.size() || sizes_[sizes_.size() - from_end] == 1) return *this;
  return slice(axis, begin, end);
}

Tensor Tensor::as(DType dtype) const {
  Tensor out(dtype, sizes_);
  for (std::int64_t n = 0; n < elements(); ++n) out.set_flat(n, flat(n));
  return out;
}

std::int64_t Tensor::offset(std::span<const std::int64_t> index) const {
  assert(index.size() == sizes_.size());
  std::int64_t at = origin_;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    assert(index[axis] >= 0 && index[axis] < sizes_[axis]);
    at += index[axis] * strides_[axis];
  }
  return at;
}

std::int64_t Tensor::flat_offset(std::int64_t n) const {
  std::int64_t at = origin_;
  for (std::size_t axis = sizes_.size(); axis-- > 0;) {
    at += n % sizes_[axis] * strides_[axis];
    n /= sizes_[axis];
  }
  assert(n == 0);
  return at;
}

double Tensor::read(std::int64_t at) const {
  switch (dtype_) {
    case DType::f64: return elements_of<double>(bytes_)[at];
    case DType::f32: return elements_of<float>(bytes_)[at];
    case DType::bf16: return to_f32(elements_of<bf16>(bytes_)[at]);
    case DType::f16: return to_f32(elements_of<f16>(bytes_)[at]);
    case DType::i64: return static_cast<double>(elements_of<std::int64_t>(bytes_)[at]);
    case DType::i32: return elements_of<std::int32_t>(bytes_)[at];
    case DType::u8:
    case DType::boolean: return elements_of<std::uint8_t>(bytes_)[at];
  }
  return 0;
}

void Tensor::write(std::int64_t at, double x) {
  switch (dtype_) {
    case DType::f64: elements_of<double>(bytes_)[at] = x; return;
    case DType::f32: elements_of<float>(bytes_)[at] = static_cast<float>(x); return;
    case DType::bf16: elements_of<bf16>(bytes_)[at] = to_bf16(x); return;
    case DType::f16: elements_of<f16>(bytes_)[at] = to_f16(x); return;
    case DType::i64: elements_of<std::int64_t>(bytes_)[at] = static_cast<std::int64_t>(x); return;
    case DType::i32: elements_of<std::int32_t>(bytes_)[at] = static_cast<std::int32_t>(x); return;
    case DType::u8:
    case DType::boolean: elements_of<std::uint8_t>(bytes_)[at] = x != 0 ? 1 : 0; return;
  }
}

}  // namespace levelhead::test
