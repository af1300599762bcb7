// Arrays of Python as views of the library: borrowed through DLPack or the buffer protocol, never copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "levelhead/tensor.hpp"

namespace levelhead::python {

namespace nb = nanobind;

/// An array that is read. It keeps the memory alive; destroy it with the GIL held.
class Array {
 public:
  /// name: the argument, for errors. as_bf16: the elements are 16-bit unsigned numbers that stand for bf16, which NumPy
  /// can't export. Throws Error if the object can't be read or has elements that the library does not know.
  Array(std::string name, nb::handle object, bool as_bf16);

  const std::string& name() const noexcept { return name_; }
  const TensorView& view() const noexcept { return view_; }  ///< of rank 5 and more only the rank is right
  std::vector<std::int64_t> shape() const;

 private:
  std::string name_;
  nb::ndarray<nb::ro> memory_;
  TensorView view_;
};

/// An array that is written; otherwise as Array.
class WritableArray {
 public:
  WritableArray(const std::string& name, nb::handle object, bool as_bf16);

  const MutableTensorView& view() const noexcept { return view_; }

 private:
  nb::ndarray<> memory_;
  MutableTensorView view_;
};

/// What a call hands out: the array as the caller gets it, and its memory.
struct NewArray {
  nb::object result;
  WritableArray memory;
};

/// empty(shape, name of the type) is Python's: it returns the array, what exports its memory, and whether that stands
/// for bf16.
NewArray new_array(nb::handle empty, const std::vector<std::int64_t>& shape, DType type);

void bind_array(nb::module_& module);

}  // namespace levelhead::python
