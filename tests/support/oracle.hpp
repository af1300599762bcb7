// All of docs/numbers.md and docs/edges.md, materialised [Nq, Nk] in double straight from the definitions: it shares no
// line with the library.
#pragma once

#include <vector>

#include "support/kit.hpp"

namespace levelhead::test {

struct Oracle {
  Shape shape;
  std::vector<bool> visible;        // [B, Hq, Nq, Nk]
  std::vector<double> logit, p;     // [B, Hq, Nq, Nk]; 0 where hidden
  std::vector<double> distance;     // [B, Hq, Nq, Nk]: j - (i + offset), what slopes multiply; 0 where hidden
  std::vector<double> extra;        // [B, Hq, Nq, Nk]: bias + alibi; 0 where hidden
  std::vector<double> multiplier;   // [B, Hq, Nq]
  std::vector<double> o;            // [B, Hq, Nq, Dv]
  std::vector<double> o_abs;        // sum_j p_ij |v_jc|: the floor of the error rule
  std::vector<double> magnitude;    // [B, Hq, Nq]: L of docs/numbers.md
  std::vector<RowStatistics> rows;  // [B, Hq, Nq]

  std::size_t row_index(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return static_cast<std::size_t>((b * shape.Hq + h) * shape.Nq + i);
  }
  const RowStatistics& row(std::int64_t h, std::int64_t i, std::int64_t b = 0) const {
    return rows.at(row_index(b, h, i));
  }
};

Oracle materialise(const Case& c);

/// The bound of docs/numbers.md on statistic `name` of a row whose true value is x and whose L is `magnitude`;
/// for frobenius_gain it bounds the square.
double statistic_tolerance(std::string_view name, DType type, Precision precision, double x, double magnitude);

/// Every statistic that `got` measured, and lse, against the oracle's row.
::testing::AssertionResult near_statistics(const RowStatistics& got, const Oracle& want, std::size_t row, DType type,
                                           Precision precision);
/// All rows of a run: statistics, and the written lse.
::testing::AssertionResult near_statistics(const Forward& got, const Oracle& want, const Case& c);
/// o of a run within `relative` of each true value plus `absolute` times sum_j p |v|.
::testing::AssertionResult near_o(const Forward& got, const Oracle& want, double relative, double absolute);

}  // namespace levelhead::test
