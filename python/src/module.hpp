// One function per file of the module: each adds what its file binds.
#pragma once

#include <nanobind/nanobind.h>

namespace levelhead::python {

void bind_attention(nanobind::module_& module);
void bind_backward(nanobind::module_& module);
void bind_check(nanobind::module_& module);
void bind_decode(nanobind::module_& module);

}  // namespace levelhead::python
