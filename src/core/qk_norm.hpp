// QK-norm is a step before the core: normalised copies of q and k, rounded once to their type.
#pragma once

#include <cstddef>
#include <vector>

#include "core/problem.hpp"

namespace levelhead {

/// Dense normalised copies [B, H, N, D] that stand in for the problem's q and k while they live.
struct Normalised {
  std::vector<std::byte> q, k;
  Readable original_q, original_k;  // the problem's views before, for backward
};

/// Replaces problem.q and problem.k by normalised copies. Tokens behind a length are not read (and stay zero).
Normalised normalise(Problem& problem, QkNorm::Kind kind);

/// Turns gradients with respect to the normalised tensor x^ [B, H, N, D] (dense, double) into those of the
/// original x: writes dx (strided, q's type). lengths: tokens of each segment only; others get 0.
void normalise_backward(const Problem& problem, QkNorm::Kind kind, bool keys, const Readable& original,
                        const std::vector<double>& dnormalised, const Writable& dx);

}  // namespace levelhead
