// A tensor that owns its bytes: what readers return and what commands fill.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "levelhead/tensor.hpp"

namespace levelhead {

/// Bytes of a dense tensor, or nothing if a size is negative or the product of the sizes that are not 0 (so that no
/// stride overflows either) does not fit 63 bits.
std::optional<std::size_t> dense_bytes(DType dtype, std::span<const std::int64_t> shape) noexcept;

/// Row-major, dense, zero-filled, aligned to 64 bytes; any rank. Moves, does not copy.
class Tensor {
 public:
  Tensor() = default;
  /// Throws Error if a size is negative or the bytes overflow.
  Tensor(DType dtype, std::vector<std::int64_t> shape);

  DType dtype() const noexcept { return dtype_; }
  const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  std::span<std::byte> bytes() noexcept { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_.get(), size_}; }

  /// Never null, not even without elements. Throws Error if the rank is above levelhead::max_rank.
  TensorView view() const;
  MutableTensorView mutable_view();

  /// The elements, dense. T must be the type of dtype().
  template <class T>
  std::span<const T> elements() const {
    assert(dtype_of<T>() == dtype_);
    return {reinterpret_cast<const T*>(data_.get()), size_ / sizeof(T)};
  }
  template <class T>
  std::span<T> elements() {
    assert(dtype_of<T>() == dtype_);
    return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept { ::operator delete (data, std::align_val_t{64}); }
  };
  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_;
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace levelhead
