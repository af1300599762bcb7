// Do two tensors share a byte? Views of one fused buffer interleave without sharing any, so extents alone can't tell.
#pragma once

#include "levelhead/tensor.hpp"

namespace levelhead {

/// True only if no byte belongs to both. Byte extents first; then, along the largest stride, the copies of the
/// rest that can meet at all are compared, recursively. What the walk cannot settle in bounded time is false.
/// Both views have passed check_view.
bool disjoint(const TensorView& a, const TensorView& b) noexcept;

/// True only if no two indices share an element: every stride steps over all that the smaller ones reach.
bool self_disjoint(const TensorView& view) noexcept;

}  // namespace levelhead
