// Scale policies become one number per query row here; kernels know none of them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/problem.hpp"

namespace levelhead {

/// The multiplier of every row, rounded to its type (f32; f64 for f64 q); nothing if rows or heads differ.
/// Finite at D = 0, where it multiplies 0: D counts as 1 there.
std::optional<double> shared_multiplier(const Scale& scale, std::int64_t D, DType q);

/// Fills problem.multipliers from the policy (docs/numbers.md). Allocates at most [B, Hq, Nq].
void fill_multipliers(Problem& problem, const Inputs& inputs, const Options& options);

/// Reduces d loss / d multiplier [B, Hq, Nq] to the gradients of the policy's own parameters
/// (dscale, dssmax_s, dqk_gain), and writes those asked for.
void reduce_dmultiplier(const Problem& problem, const Options& options, std::span<const double> dmultiplier,
                        const Gradients& gradients);

/// Visible keys of one row by every rule of docs/edges.md, mask and bias included.
std::int64_t count_visible(const Problem& problem, const Segment& segment, std::int64_t h, std::int64_t i);

}  // namespace levelhead
