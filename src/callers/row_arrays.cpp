#include "callers/row_arrays.hpp"

#include <type_traits>
#include <vector>

namespace levelhead::callers {
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

void write_row_arrays(std::span<const RowState> state, StatisticsLevel level, DType number,
                      const std::function<std::optional<double>(std::size_t)>& sink,
                      const std::function<MutableTensorView(std::string_view, DType)>& add) {
  std::vector<MutableTensorView> arrays;
  RowStatistics names;
  names.level = level;
  for_each_statistic(names, [&](std::string_view name, auto example) {
    using T = decltype(example);
    arrays.push_back(add(name, std::is_same_v<T, double> ? number : dtype_of<T>()));
  });
  for (std::size_t row = 0; row < state.size(); ++row) {
    std::size_t at = 0;
    for_each_statistic(row_statistics(state[row], sink(row)),
                       [&](std::string_view, auto x) { put(arrays[at++], row, x); });
  }
}

}  // namespace levelhead::callers
