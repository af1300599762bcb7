// What heads need of a checked problem besides the states of their rows.
#pragma once

#include <span>
#include <vector>

#include "core/problem.hpp"
#include "levelhead/stats.hpp"

namespace levelhead {

/// True for a row whose result is NaN: a NaN or +Inf among its visible logits, or nothing but -Inf.
bool is_nan(const RowState& state) noexcept;

/// True when every segment has as many queries as keys, so that "the same key" has a meaning.
bool is_self_attention(const Problem& problem);

/// Throws Error unless there is a state for each row [B, Hq, Nq].
void check_state_size(const Problem& problem, std::span<const RowState> state);

/// Weight of rows on the same and the previous key, summed over rows that are neither empty nor NaN and divided by
/// their number: one per query head [Hq], rebuilt from m and l. Absent for a head without such rows.
std::vector<std::optional<double>> adjacent_mass(const Problem& problem, std::span<const RowState> state);

}  // namespace levelhead
