// attention: one call from Python's arguments to what it returns.
#include <memory>

#include "answer.hpp"
#include "contexts.hpp"
#include "module.hpp"

namespace levelhead::python {
namespace {

// (o, lse, Rows or None, info)
nb::tuple attention(const nb::dict& arrays, const Settings& settings, int threads, const nb::callable& empty) {
  const auto call = std::make_shared<const Call>(arrays, settings);
  const Problem p = make_problem(call->inputs, call->options);  // shapes are checked before anything is allocated
  Context& context = context_of(threads);
  Answer answer(settings, empty, {p.B, p.Hq, p.Nq, p.Dv}, p.dtype);
  answer.run([&] { return forward(context, call->inputs, call->options, answer.outputs()); });
  return answer.finish(call, p);
}

}  // namespace

void bind_attention(nb::module_& module) {
  module.def("attention", &attention, nb::arg("arrays"), nb::arg("settings"), nb::arg("threads"), nb::arg("empty"));
}

}  // namespace levelhead::python
