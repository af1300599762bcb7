// attention: one call from Python's arguments to what it returns.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <memory>

#include "call.hpp"
#include "contexts.hpp"
#include "module.hpp"
#include "rows.hpp"

namespace levelhead::python {
namespace {

using Clock = std::chrono::steady_clock;

// (kernel, reason, threads, seconds, flops, workspace_bytes)
nb::tuple to_tuple(const RunInfo& info, double seconds) {
  return nb::make_tuple(info.kernel, info.reason, info.threads, seconds, info.flops, info.workspace_bytes);
}

// (o, lse, Rows or None, info)
nb::tuple attention(const nb::dict& arrays, const Settings& settings, int threads, const nb::callable& empty) {
  const auto call = std::make_shared<const Call>(arrays, settings);
  const Problem p = make_problem(call->inputs, call->options);  // shapes are checked before anything is allocated
  Context& context = context_of(threads);
  const NewArray o(empty, {p.B, p.Hq, p.Nq, p.Dv}, p.dtype);
  const NewArray lse(empty, {p.B, p.Hq, p.Nq}, p.dtype == DType::f64 ? DType::f64 : DType::f32);
  Outputs outputs{.o = o.view(), .lse = lse.view()};
  std::shared_ptr<Rows> rows;
  if (settings.statistics) {
    rows = std::make_shared<Rows>(call, p);
    outputs.state = rows->state();
  }
  RunInfo info;
  const auto start = Clock::now();
  {
    const nb::gil_scoped_release others_run;
    info = forward(context, call->inputs, call->options, outputs);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return nb::make_tuple(o.result(), lse.result(), rows ? nb::cast(rows) : nb::none(), to_tuple(info, seconds));
}

}  // namespace

void bind_attention(nb::module_& module) {
  module.def("attention", &attention, nb::arg("arrays"), nb::arg("settings"), nb::arg("threads"), nb::arg("empty"));
}

}  // namespace levelhead::python
