// Rows of the attention weights, rebuilt from the saved m and l; never all of them at once.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/logits.hpp"
#include "core/qk_norm.hpp"
#include "core/scale.hpp"
#include "levelhead/attention.hpp"

namespace levelhead {
namespace {

void check(const Problem& p, const Saved& saved, std::span<const RowIndex> rows, std::span<double> out) {
  const auto states = static_cast<std::size_t>(p.B * p.Hq * p.Nq);
  if (saved.state.size() != states) {
    throw Error("weights needs the saved state of " + std::to_string(states) + " rows but got " +
                std::to_string(saved.state.size()));
  }
  const std::size_t wanted = rows.size() * static_cast<std::size_t>(p.Nk);
  if (out.size() != wanted) {
    throw Error("weights of " + std::to_string(rows.size()) + " rows over " + std::to_string(p.Nk) + " keys need " +
                std::to_string(wanted) + " numbers but out holds " + std::to_string(out.size()));
  }
  for (const RowIndex& r : rows) {
    if (r.b < 0 || r.b >= p.B || r.h < 0 || r.h >= p.Hq || r.i < 0 || r.i >= p.Nq) {
      throw Error("row (b " + std::to_string(r.b) + ", h " + std::to_string(r.h) + ", i " + std::to_string(r.i) +
                  ") is outside [" + std::to_string(p.B) + ", " + std::to_string(p.Hq) + ", " + std::to_string(p.Nq) +
                  "]");
    }
  }
}

// out [Nk]: p_ij = e^(logit - m) / (l + e^(sink - m)), 0 where hidden.
void rebuild(const Problem& p, const RowState& state, const RowIndex& r, double* out) {
  std::fill(out, out + p.Nk, 0.0);
  const auto holds = [&](const Segment& s) { return s.b == r.b && r.i >= s.q_begin && r.i < s.q_end; };
  const auto segment = std::find_if(p.segments.begin(), p.segments.end(), holds);
  if (segment == p.segments.end()) return;
  const auto sink = p.sink(r.h);
  const double denominator = state.sum + (sink ? std::exp(*sink - state.max) : 0.0);
  const KeyRange keys = p.keys(*segment, r.i);
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    if (!passes(p, r.b, r.h, r.i, j)) continue;
    out[j] = std::exp(logit(p, *segment, r.h, r.i, j).value - state.max) / denominator;
  }
}

}  // namespace

void weights(Context& /*context*/, const Inputs& inputs, const Options& options, const Saved& saved,
             std::span<const RowIndex> rows, std::span<double> out) {
  Problem p = make_problem(inputs, options);
  check(p, saved, rows, out);
  std::optional<Normalised> norm;
  if (const auto* asked = std::get_if<QkNorm>(&options.scale)) norm = normalise(p, asked->kind);
  fill_multipliers(p, inputs, options);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const RowIndex& row = rows[r];
    const RowState& state = saved.state[static_cast<std::size_t>((row.b * p.Hq + row.h) * p.Nq + row.i)];
    rebuild(p, state, row, out.data() + r * static_cast<std::size_t>(p.Nk));
  }
}

}  // namespace levelhead
