// KvCache and decode: a cache over arrays of Python, and a step over it.
#include "levelhead/decode.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "answer.hpp"
#include "contexts.hpp"
#include "module.hpp"

namespace levelhead::python {
namespace {

/// The arrays, kept alive, and the cache over them.
struct Cache {
  Cache(const WritableArray& k, const WritableArray& v, const std::vector<std::int64_t>& lengths)
      : k_memory(k), v_memory(v), cache(k.view(), v.view(), lengths) {}

  WritableArray k_memory, v_memory;
  KvCache cache;
};

std::optional<TensorView> view_of(const std::optional<Array>& array) {
  return array ? std::optional(array->view()) : std::nullopt;
}

TensorView first_tokens(TensorView view, std::int64_t tokens) {
  view.sizes[2] = tokens;
  return view;
}

/// A step, and afterwards the call over the whole cache that it was.
struct Step {
  Step(const nb::dict& arrays, const Settings& settings) : call(std::make_shared<Call>(arrays, settings)) {
    const Window& window = call->options.window;
    call->options.window = Window::sliding(window.left(), window.right().value_or(0), Align::bottom_right());
    Inputs& in = call->inputs;
    inputs = {in.q, in.k, in.v, call->find("counts"), in.mask, in.bias, in.alibi_slopes, in.sinks};
  }

  // What the outputs will be; nothing for a q that decode refuses, so that it is refused before much is allocated.
  std::array<std::int64_t, 4> o_shape(const KvCache& cache) const {
    const TensorView& q = inputs.q;
    if (q.rank != 4 || q.sizes[2] > decode_tokens) return {};
    return {q.sizes[0], q.sizes[1], q.sizes[2], cache.v().sizes[3]};
  }

  void finish(const KvCache& cache) {
    call->lengths.assign(cache.lengths().begin(), cache.lengths().end());
    const std::int64_t longest =
        call->lengths.empty() ? 0 : *std::max_element(call->lengths.begin(), call->lengths.end());
    call->inputs.k = first_tokens(cache.k(), longest);
    call->inputs.v = first_tokens(cache.v(), longest);
    call->inputs.q_lengths = inputs.counts;
    call->inputs.k_lengths = levelhead::view(std::as_const(call->lengths).data(), {cache.k().sizes[0]});
  }

  std::shared_ptr<Call> call;
  DecodeInputs inputs;
};

// (o, lse, Rows or None, info). cache: a Cache.
nb::tuple decode_step(const nb::object& cache, const nb::dict& arrays, const Settings& settings, int threads,
                      const nb::callable& empty) {
  KvCache& kv = nb::cast<Cache&>(cache).cache;
  Step step(arrays, settings);
  step.call->keep(cache);
  Context& context = context_of(threads);
  Answer answer(settings, empty, step.o_shape(kv), kv.k().dtype);
  answer.run([&] { return decode(context, kv, step.inputs, step.call->options, answer.outputs()); });
  step.finish(kv);
  const Problem p = settings.statistics ? make_problem(step.call->inputs, step.call->options) : Problem();
  return answer.finish(step.call, p);
}

void append(Cache& cache, const Array& k, const Array& v, const std::optional<Array>& counts) {
  const nb::gil_scoped_release others_run;
  cache.cache.append(k.view(), v.view(), view_of(counts));
}

std::vector<std::int64_t> lengths_of(const Cache& cache) {
  const std::span<const std::int64_t> lengths = cache.cache.lengths();
  return {lengths.begin(), lengths.end()};
}

}  // namespace

void bind_decode(nb::module_& module) {
  nb::class_<Cache>(module, "Cache", "A cache over two arrays.")
      .def(nb::init<const WritableArray&, const WritableArray&, const std::vector<std::int64_t>&>(), nb::arg("k"),
           nb::arg("v"), nb::arg("lengths"))
      .def_prop_ro("lengths", &lengths_of)
      .def("append", &append, nb::arg("k"), nb::arg("v"), nb::arg("counts").none())
      .def(
          "truncate", [](Cache& cache, std::int64_t b, std::int64_t length) { cache.cache.truncate(b, length); },
          nb::arg("b"), nb::arg("length"))
      .def("clear", [](Cache& cache) { cache.cache.clear(); });
  module.def("decode", &decode_step, nb::arg("cache"), nb::arg("arrays"), nb::arg("settings"), nb::arg("threads"),
             nb::arg("empty"));
}

}  // namespace levelhead::python
