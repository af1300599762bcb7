// Rank-3 q, k and v mean B = 1, and so do what belongs to them; beside rank-4 q every axis is named.
#pragma once

#include <algorithm>
#include <cstddef>

#include "levelhead/tensor.hpp"

namespace levelhead::callers {

/// False if q, k and v have 3 axes each. Throws Error if q has 3 and another has not.
bool is_batched(std::size_t q_axes, std::size_t k_axes, std::size_t v_axes);

/// The view with an axis of size 1 in front if it has rank - 1 axes, else as it is.
template <class View>
View with_rank(const View& view, int rank) {
  if (view.rank != rank - 1) return view;
  View wider = view;
  std::copy_n(view.sizes.begin(), view.rank, wider.sizes.begin() + 1);
  std::copy_n(view.strides.begin(), view.rank, wider.strides.begin() + 1);
  wider.sizes[0] = 1;
  wider.strides[0] = 0;
  wider.rank = rank;
  return wider;
}

}  // namespace levelhead::callers
