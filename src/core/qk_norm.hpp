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

/// Replaces problem.q and problem.k by normalised copies: x^ = x / sqrt(S + 1e-6), S = sum of x^2 over D (l2) or its
/// mean (rms). Summed in double, rounded once. A zero token stays zero, a NaN in a token makes all of it NaN.
/// Tokens behind a length are not read; their copies are zero.
Normalised normalise(Problem& problem, QkNorm::Kind kind);

/// Turns gradients with respect to the normalised tensor x^ [B, H, N, D] (dense, double) into those of the
/// original x [B, H, N, D] of q, or of k: every element of dx (strided, q's type) is written. A token whose
/// gradient is 0 keeps 0, whatever bits it holds, and so do those behind a length, which are not read.
void normalise_backward(const Problem& problem, QkNorm::Kind kind, bool keys, const Readable& original,
                        const std::vector<double>& dnormalised, const Writable& dx);

}  // namespace levelhead
