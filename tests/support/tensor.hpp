// Owning tensors of any element type and layout, read and written as doubles, and the random numbers in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "levelhead/tensor.hpp"

namespace levelhead::test {

/// The same numbers on every machine and library: splitmix64 and Box-Muller.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits();
  double uniform();  ///< [0, 1)
  double normal();
  std::int64_t integer(std::int64_t low, std::int64_t high);  ///< both included
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

using Sizes = std::vector<std::int64_t>;

class Tensor {
 public:
  Tensor() = default;
  /// Dense, zeros.
  Tensor(DType dtype, Sizes sizes);
  /// Dense, values row-major, each rounded once.
  Tensor(DType dtype, Sizes sizes, const std::vector<double>& values);

  DType dtype() const { return dtype_; }
  const Sizes& sizes() const { return sizes_; }
  const Sizes& strides() const { return strides_; }
  std::int64_t elements() const;

  using Index = std::initializer_list<std::int64_t>;
  double get(Index index) const { return read(offset(index)); }
  double get(const Sizes& index) const { return read(offset(index)); }
  void set(Index index, double x) { write(offset(index), x); }
  /// Element n in row-major order of the sizes, whatever the layout.
  double flat(std::int64_t n) const { return read(flat_offset(n)); }
  void set_flat(std::int64_t n, double x) { write(flat_offset(n), x); }

  TensorView view() const;
  MutableTensorView mutable_view();

  Tensor& fill(double x);
  /// Standard normals, times scale.
  Tensor& fill_normal(Random& random, double scale = 1);
  /// Every byte 0xFF: NaN in floating types. What a kernel forgets to write is then seen.
  Tensor& fill_garbage();

  /// The same values stored otherwise: axes from outermost to innermost, `gap` garbage elements after each
  /// element, axes backwards (negative strides) if reversed.
  Tensor relaid(const std::vector<int>& axes, std::int64_t gap = 0, bool reversed = false) const;
  /// An axis of size 1 read `size` times: stride 0.
  Tensor expanded(int axis, std::int64_t size) const;
  /// Indices [begin, end) of an axis, counted from the last one if negative; the layout stays.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const;
  /// The same, but an axis of size 1 stays as it is: for tensors that broadcast.
  Tensor slice_broadcast(int axis, std::int64_t begin, std::int64_t end) const;
  /// Dense copy in another type, rounded once.
  Tensor as(DType dtype) const;

 private:
  std::int64_t offset(std::span<const std::int64_t> index) const;
  std::int64_t flat_offset(std::int64_t n) const;
  double read(std::int64_t at) const;
  void write(std::int64_t at, double x);

  DType dtype_ = DType::f32;
  Sizes sizes_, strides_;
  std::int64_t origin_ = 0;  // element that index 0 stands for
  std::vector<std::byte> bytes_;
};

}  // namespace levelhead::test
