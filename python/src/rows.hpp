// The states of a call's rows, and what follows from them when asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "call.hpp"
#include "core/problem.hpp"

namespace levelhead::python {

class Rows {
 public:
  /// call: one that has passed make_problem, which gave p. state [B, Hq, Nq]: as forward wrote it.
  Rows(std::shared_ptr<const Call> call, const Problem& p, std::vector<RowState> state);

  /// {name: array [B, Hq, Nq]} of each statistic that was measured; empty makes the arrays.
  nb::dict arrays(const nb::callable& empty) const;

  /// Numbers and flags of each query head as JSON. Reads q and k again.
  std::string heads_json() const;

 private:
  std::shared_ptr<const Call> call_;
  std::vector<RowState> state_;  // [B, Hq, Nq]
  std::vector<double> sinks_;    // [Hq] or empty
  std::vector<std::int64_t> shape_;
  DType accumulator_;
};

void bind_rows(nb::module_& module);

}  // namespace levelhead::python
