// What a call hands back: o, lse, the states of its rows when asked for, and how it ran.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace levelhead::python {

/// A computation with the interpreter let go, and how it ran.
class Run {
 public:
  /// compute() -> RunInfo
  template <class Compute>
  void operator()(Compute&& compute) {
    using Clock = std::chrono::steady_clock;
    const nb::gil_scoped_release others_run;
    const auto start = Clock::now();
    info_ = compute();
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// (kernel, reason, threads, seconds, flops, workspace_bytes)
  nb::tuple info() const;

 private:
  RunInfo info_;
  double seconds_ = 0;
};

class Answer {
 public:
  /// Allocates. o_shape: [B, Hq, Nq, Dv]; type: of q.
  Answer(const Settings& settings, const nb::callable& empty, const std::array<std::int64_t, 4>& o_shape, DType type);

  Outputs outputs();

  /// (o, lse, Rows or None, info). p: the call's problem, looked at only for statistics.
  nb::tuple finish(std::shared_ptr<const Call> call, const Problem& p);

  Run run;

 private:
  NewArray o_, lse_;
  std::optional<std::vector<RowState>> state_;  // [B, Hq, Nq]
};

}  // namespace levelhead::python
