// Rank-3 q, k and v mean B = 1, and so do what belongs to them; beside rank-4 q every axis is named.
#pragma once

#include "levelhead/tensor.hpp"

namespace levelhead::callers {

/// False if q, k and v have 3 axes each. Throws Error if q has 3 and another has not.
bool is_batched(std::size_t q_axes, std::size_t k_axes, std::size_t v_axes);

/// The view with an axis of size 1 in front if it has rank - 1 axes, else as it is.
TensorView with_rank(const TensorView& view, int rank);

}  // namespace levelhead::callers
