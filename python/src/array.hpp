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

/// A new array that is written, made by Python: empty(shape, name of the type) returns what the caller gets, what
/// exports its memory, and whether that stands for bf16.
class NewArray {
 public:
  NewArray(nb::handle empty, const std::vector<std::int64_t>& shape, DType type);

  nb::object result() const { return result_; }
  const MutableTensorView& view() const noexcept { return view_; }

 private:
  nb::object result_;
  nb::ndarray<> memory_;
  MutableTensorView view_;
};

void bind_array(nb::module_& module);

}  // namespace levelhead::python
