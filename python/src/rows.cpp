#include "rows.hpp"

#include <nanobind/stl/string.h>

#include <type_traits>
#include <utility>

#include "callers/json.hpp"

namespace levelhead::python {
namespace {

void put(const MutableTensorView& array, std::size_t row, double x) {
  if (array.dtype == DType::f64)
    static_cast<double*>(array.data)[row] = x;
  else
    static_cast<float*>(array.data)[row] = static_cast<float>(x);
}
void put(const MutableTensorView& array, std::size_t row, std::int64_t x) {
  static_cast<std::int64_t*>(array.data)[row] = x;
}
void put(const MutableTensorView& array, std::size_t row, bool x) { static_cast<bool*>(array.data)[row] = x; }

}  // namespace

Rows::Rows(std::shared_ptr<const Call> call, const Problem& p, std::vector<RowState> state)
    : call_(std::move(call)),
      state_(std::move(state)),
      sinks_(p.sinks),
      shape_{p.B, p.Hq, p.Nq},
      accumulator_(p.dtype == DType::f64 ? DType::f64 : DType::f32) {}

nb::dict Rows::arrays(const nb::callable& empty) const {
  std::vector<std::pair<std::string_view, NewArray>> made;
  RowStatistics names;
  names.level = call_->options.statistics.level;
  for_each_statistic(names, [&](std::string_view name, auto example) {
    using T = decltype(example);
    const DType type = std::is_same_v<T, double> ? accumulator_ : dtype_of<T>();
    made.emplace_back(name, new_array(empty, shape_, type));
  });
  for (std::size_t row = 0; row < state_.size(); ++row) {
    const std::size_t head = row / static_cast<std::size_t>(shape_[2]) % static_cast<std::size_t>(shape_[1]);
    const RowStatistics statistics =
        row_statistics(state_[row], sinks_.empty() ? std::nullopt : std::optional(sinks_[head]));
    std::size_t at = 0;
    for_each_statistic(statistics, [&](std::string_view, auto x) { put(made[at++].second.memory.view(), row, x); });
  }
  nb::dict arrays;
  for (const auto& [name, array] : made) arrays[nb::str(name.data(), name.size())] = array.result;
  return arrays;
}

std::string Rows::heads_json() const {
  callers::Json heads = callers::Json::array();
  std::int64_t number = 0;
  for (const HeadStatistics& head : head_statistics(call_->inputs, call_->options, state_))
    heads.push_back(callers::to_json(number++, head));
  return callers::to_line(heads);
}

void bind_rows(nb::module_& module) {
  nb::class_<Rows>(module, "Rows", "The states of a call's rows.")
      .def("arrays", &Rows::arrays, nb::arg("empty"), "{name: array [B, Hq, Nq]} of each statistic that was measured.")
      .def("heads_json", &Rows::heads_json, "Numbers and flags of each query head as JSON.");
}

}  // namespace levelhead::python
