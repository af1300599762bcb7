// The module levelhead._core, which the package wraps: Python's side is in python/levelhead.
#include "module.hpp"

#include <nanobind/stl/string.h>

#include <exception>
#include <new>
#include <stdexcept>

#include "array.hpp"
#include "call.hpp"
#include "io/file_error.hpp"
#include "levelhead/levelhead.hpp"
#include "rows.hpp"

namespace levelhead::python {
namespace {

// The library's own sentences as ValueError; what the standard library says would name its types.
void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const FileError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory: the tensors of this call do not fit");
  } catch (const std::length_error&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory: the tensors of this call are larger than any memory");
  }
}

// [{name, available, types, why}] as `levelhead kernels --json` gives them.
nb::list kernel_list() {
  nb::list list;
  for (const KernelInfo& kernel : kernels()) {
    nb::list types;
    for (const DType type : kernel.types) types.append(std::string(name_of(type)));
    nb::dict one;
    one["name"] = kernel.name;
    one["available"] = kernel.available;
    one["types"] = types;
    one["why"] = kernel.why;
    list.append(one);
  }
  return list;
}

}  // namespace
}  // namespace levelhead::python

NB_MODULE(_core, module) {
  using namespace levelhead::python;
  nb::register_exception_translator(translate);
  module.attr("version") = std::string(levelhead::version);
  module.def("kernels", &kernel_list);
  module.def("cpu_name", &levelhead::cpu_name);
  bind_array(module);
  bind_settings(module);
  bind_rows(module);
  bind_attention(module);
  bind_backward(module);
  bind_check(module);
  bind_decode(module);
}
