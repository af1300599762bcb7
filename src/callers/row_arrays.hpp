// The statistics of rows as arrays, one for each name.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "levelhead/stats.hpp"
#include "levelhead/tensor.hpp"

namespace levelhead::callers {

/// Writes each statistic that `level` measures. state [rows]: measured at that level. number: the type of those that
/// are no count and no flag, f32 or f64. sink(row): its sink logit, if it has one. add(name, type) makes the array of a
/// statistic and returns its memory, dense over the rows.
void write_row_arrays(std::span<const RowState> state, StatisticsLevel level, DType number,
                      const std::function<std::optional<double>(std::size_t)>& sink,
                      const std::function<MutableTensorView(std::string_view, DType)>& add);

}  // namespace levelhead::callers
