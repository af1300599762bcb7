#include "rows.hpp"

#include <nanobind/stl/string.h>

#include <list>
#include <utility>

#include "callers/json.hpp"
#include "callers/row_arrays.hpp"

namespace levelhead::python {
Rows::Rows(std::shared_ptr<const Call> call, const Problem& p, std::vector<RowState> state)
    : call_(std::move(call)),
      state_(std::move(state)),
      sinks_(p.sinks),
      shape_{p.B, p.Hq, p.Nq},
      accumulator_(p.dtype == DType::f64 ? DType::f64 : DType::f32) {}

nb::dict Rows::arrays(const nb::callable& empty) const {
  nb::dict arrays;
  std::list<NewArray> made;  // their memory is written after all of them are there
  const auto sink = [this](std::size_t row) -> std::optional<double> {
    if (sinks_.empty()) return std::nullopt;
    return sinks_[row / static_cast<std::size_t>(shape_[2]) % sinks_.size()];
  };
  callers::write_row_arrays(state_, call_->options.statistics.level, accumulator_, sink,
                            [&](std::string_view name, DType type) {
                              const NewArray& array = made.emplace_back(new_array(empty, shape_, type));
                              arrays[nb::str(name.data(), name.size())] = array.result;
                              return array.memory.view();
                            });
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
