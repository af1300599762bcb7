// A capture, measured and judged: what text and JSON are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "callers/capture.hpp"
#include "levelhead/verdict.hpp"

namespace levelhead::callers {

/// A part of a model; all of it when nothing is set.
struct Selection {
  std::optional<std::int64_t> layer, head;
};

/// What the model is judged by: H75, or the spread of every head (untrained weights).
enum class Rule : std::uint8_t { h75, fresh };

struct MeasuredHead {
  std::int64_t number = 0;
  HeadStatistics statistics;
  std::optional<double> expected_spread, suggested_scale;  ///< only with Rule::fresh
  std::vector<RowState> rows;                              ///< [Nq], kept only when one head was asked for
};

struct MeasuredLayer {
  std::int64_t number = 0;
  std::vector<MeasuredHead> heads;  ///< those asked for
};

struct Judged {
  std::vector<MeasuredLayer> layers;  ///< those asked for
  std::vector<NamedScale> scale_is;   ///< names that hold in every layer
  Verdict verdict;                    ///< with Rule::fresh name, mistake and reason are those of `fresh`
  std::optional<FreshVerdict> fresh;  ///< only with Rule::fresh
  Scope scope = Scope::whole;
  std::string kernel;
  std::int64_t heads = 0, kv_heads = 0, D = 0, Nq = 0, Nk = 0;  ///< of the first layer

  Rule rule() const { return fresh ? Rule::fresh : Rule::h75; }
};

/// on_layer is told the number of each layer before it is measured.
/// Throws Error on tensors that do not fit each other, and if the selection names what is not there.
Judged measure(
    const Capture& capture, const Selection& selection, Rule rule, int threads,
    const std::function<void(std::int64_t)>& on_layer = [](std::int64_t) {});

}  // namespace levelhead::callers
