#include "answer.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace levelhead::python {

nb::tuple Run::info() const {
  return nb::make_tuple(info_.kernel, info_.reason, info_.threads, seconds_, info_.flops, info_.workspace_bytes);
}

Answer::Answer(const Settings& settings, const nb::callable& empty, const std::array<std::int64_t, 4>& o_shape,
               DType type)
    : o_(new_array(empty, {o_shape.begin(), o_shape.end()}, type)),
      lse_(new_array(empty, {o_shape.begin(), o_shape.end() - 1}, type == DType::f64 ? DType::f64 : DType::f32)) {
  if (settings.statistics) state_.emplace(static_cast<std::size_t>(o_shape[0] * o_shape[1] * o_shape[2]));
}

Outputs Answer::outputs() {
  Outputs outputs{.o = o_.memory.view(), .lse = lse_.memory.view()};
  if (state_) outputs.state = *state_;
  return outputs;
}

nb::tuple Answer::finish(std::shared_ptr<const Call> call, const Problem& p) {
  nb::object rows = nb::none();
  if (state_) rows = nb::cast(std::make_shared<Rows>(std::move(call), p, std::move(*state_)));
  return nb::make_tuple(o_.result, lse_.result, rows, run.info());
}

}  // namespace levelhead::python
