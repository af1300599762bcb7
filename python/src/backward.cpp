// backward: the gradients of one call.
#include <nanobind/stl/string.h>

#include <list>

#include "answer.hpp"
#include "callers/batch.hpp"
#include "contexts.hpp"
#include "module.hpp"

namespace levelhead::python {
namespace {

DType accumulator_of(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

std::vector<std::int64_t> shape_of(const TensorView& view) {
  return {view.sizes.begin(), view.sizes.begin() + view.rank};
}

/// New arrays for what can have a gradient.
class NewGradients {
 public:
  NewGradients(const Call& call, const Problem& p, const nb::callable& empty) : empty_(empty) {
    gradients.dq = add("dq", shape_of(call.inputs.q), p.dtype);
    gradients.dk = add("dk", shape_of(call.inputs.k), p.dtype);
    gradients.dv = add("dv", shape_of(call.inputs.v), p.dtype);
    const auto add_like = [&](std::string_view input, const char* name, std::optional<MutableTensorView>& gradient) {
      if (const auto view = call.find(input)) gradient = add(name, shape_of(*view), accumulator_of(p.dtype));
    };
    add_like("bias", "dbias", gradients.dbias);
    add_like("sinks", "dsinks", gradients.dsinks);
    add_like("alibi_slopes", "dslopes", gradients.dalibi_slopes);
    add_like("scale", "dscale", gradients.dscale);
    add_like("ssmax_s", "dssmax_s", gradients.dssmax_s);
    add_like("qk_gain", "dqk_gain", gradients.dqk_gain);
    // Per-row scales of rank-3 q are [Hq, Nq] to their caller, and so is their gradient.
    if (std::holds_alternative<PerRow>(call.options.scale)) gradients.dscale = callers::with_rank(*gradients.dscale, 3);
  }

  Gradients gradients;
  nb::dict arrays;  ///< by name

 private:
  MutableTensorView add(const char* name, const std::vector<std::int64_t>& shape, DType type) {
    const NewArray& made = made_.emplace_back(new_array(empty_, shape, type));
    arrays[name] = made.result;
    return made.memory.view();
  }

  const nb::callable& empty_;
  std::list<NewArray> made_;
};

OutputGradients incoming(const Call& call, bool batched) {
  const int full = batched ? 0 : max_rank, rows = batched ? 0 : 3;
  return {call.find("dout", full), call.find("dlse", rows), call.find("dentropy", rows)};
}

// ({name: gradient}, info)
nb::tuple gradients_of(const nb::dict& arrays, const Settings& settings, int threads, const nb::callable& empty) {
  const Call call(arrays, settings);
  const OutputGradients output_gradients = incoming(call, call.batched());
  const Problem p = make_problem(call.inputs, call.options);  // shapes are checked before anything is allocated
  Context& context = context_of(threads);
  NewGradients made(call, p, empty);
  std::vector<RowState> state(static_cast<std::size_t>(p.B * p.Hq * p.Nq));
  Run run;
  run([&] {
    forward(context, call.inputs, call.options, {.state = state});
    return backward(context, call.inputs, call.options, Saved{state}, output_gradients, made.gradients);
  });
  return nb::make_tuple(made.arrays, run.info());
}

}  // namespace

void bind_backward(nb::module_& module) {
  module.def("backward", &gradients_of, nb::arg("arrays"), nb::arg("settings"), nb::arg("threads"), nb::arg("empty"));
}

}  // namespace levelhead::python
