#include "array.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "levelhead/attention.hpp"

namespace levelhead::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct KnownType {
  Code code;
  std::uint8_t bits;
  DType type;
};

constexpr std::array known_types{KnownType{Code::Float, 64, DType::f64},   KnownType{Code::Float, 32, DType::f32},
                                 KnownType{Code::Bfloat, 16, DType::bf16}, KnownType{Code::Float, 16, DType::f16},
                                 KnownType{Code::Int, 64, DType::i64},     KnownType{Code::Int, 32, DType::i32},
                                 KnownType{Code::UInt, 8, DType::u8},      KnownType{Code::Bool, 8, DType::boolean}};

constexpr nb::dlpack::dtype bf16_as_bits{static_cast<std::uint8_t>(Code::UInt), 16, 1};

std::optional<DType> type_of(nb::dlpack::dtype given, bool as_bf16) {
  if (as_bf16) return given == bf16_as_bits ? std::optional(DType::bf16) : std::nullopt;
  const auto same = [&](const KnownType& known) {
    return static_cast<std::uint8_t>(known.code) == given.code && known.bits == given.bits && given.lanes == 1;
  };
  const auto found = std::find_if(known_types.begin(), known_types.end(), same);
  return found == known_types.end() ? std::nullopt : std::optional(found->type);
}

std::string spelled(nb::dlpack::dtype given) {
  const auto word = [&]() -> std::string {
    switch (static_cast<Code>(given.code)) {
      case Code::Int: return "int";
      case Code::UInt: return "uint";
      case Code::Float: return "float";
      case Code::Complex: return "complex";
      default: return "another type of ";
    }
  }();
  return word + std::to_string(given.bits);
}

template <class View, class Memory>
View view_of(const std::string& name, const Memory& memory, bool as_bf16) {
  const std::optional<DType> type = type_of(memory.dtype(), as_bf16);
  if (!type)
    throw Error(name + " has elements of " + spelled(memory.dtype()) +
                " but arrays are f64, f32, bf16, f16, i64, i32, u8 or bool");
  View view;
  view.data = memory.data();
  view.dtype = *type;
  view.rank = static_cast<int>(memory.ndim());
  for (std::size_t axis = 0; axis < std::min<std::size_t>(memory.ndim(), max_rank); ++axis) {
    view.sizes[axis] = static_cast<std::int64_t>(memory.shape(axis));
    view.strides[axis] = memory.stride(axis);
  }
  return view;
}

void check_device(const std::string& name, int device) {
  if (device != nb::device::cpu::value)
    throw Error(name + " is not in the memory of the CPU, where attention is computed");
}

}  // namespace

Array::Array(std::string name, nb::handle object, bool as_bf16) : name_(std::move(name)) {
  if (!nb::try_cast(object, memory_, false))
    throw Error(name_ + " can't be read: neither DLPack nor the buffer protocol hands out its elements");
  check_device(name_, memory_.device_type());
  view_ = view_of<TensorView>(name_, memory_, as_bf16);
}

std::vector<std::int64_t> Array::shape() const {
  return {view_.sizes.begin(), view_.sizes.begin() + std::min(view_.rank, max_rank)};
}

WritableArray::WritableArray(const std::string& name, nb::handle object, bool as_bf16) {
  if (!nb::try_cast(object, memory_, false))
    throw Error(name + " can't be written: neither DLPack nor the buffer protocol hands out its elements for writing");
  check_device(name, memory_.device_type());
  view_ = view_of<MutableTensorView>(name, memory_, as_bf16);
}

NewArray new_array(nb::handle empty, const std::vector<std::int64_t>& shape, DType type) {
  const nb::tuple made = nb::cast<nb::tuple>(empty(nb::cast(shape), std::string(name_of(type))));
  return {made[0], WritableArray("a new array", made[1], nb::cast<bool>(made[2]))};
}

void bind_array(nb::module_& module) {
  nb::class_<WritableArray>(module, "WritableArray", "An array that is written where it lies.")
      .def(nb::init<std::string, nb::handle, bool>(), nb::arg("name"), nb::arg("object"), nb::arg("as_bf16"));
  nb::class_<Array>(module, "Array", "An array that is read where it lies.")
      .def(nb::init<std::string, nb::handle, bool>(), nb::arg("name"), nb::arg("object"), nb::arg("as_bf16"))
      .def_prop_ro("shape", &Array::shape)
      .def_prop_ro("dtype", [](const Array& array) { return std::string(name_of(array.view().dtype)); })
      .def_prop_ro("strides",
                   [](const Array& array) {
                     const Dims& strides = array.view().strides;
                     return std::vector<std::int64_t>(strides.begin(),
                                                      strides.begin() + static_cast<long>(array.shape().size()));
                   })
      .def_prop_ro("address", [](const Array& array) { return reinterpret_cast<std::uintptr_t>(array.view().data); });
}

}  // namespace levelhead::python
