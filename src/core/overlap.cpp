#include "core/overlap.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace levelhead {
namespace {

struct Step {
  std::int64_t size = 1, stride = 0;
};

// Nested repetitions, largest stride first.
struct Steps {
  std::array<Step, max_rank + 1> at{};
  int count = 0;

  void insert(Step step) {
    int place = count++;
    for (; place > 0 && at[place - 1].stride < step.stride; --place) at[place] = at[place - 1];
    at[place] = step;
  }
  // What steps [from, count) reach.
  std::int64_t length(int from) const {
    std::int64_t sum = 1;
    for (int i = from; i < count; ++i) sum += (at[i].size - 1) * at[i].stride;
    return sum;
  }
};

// A view as repetitions of one byte.
struct Region {
  std::uintptr_t start = 0;
  Steps steps;

  std::int64_t length(int from) const { return steps.length(from); }
  std::int64_t stride(int at) const { return at < steps.count ? steps.at[at].stride : 0; }
};

Region region_of(const TensorView& view) {
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  Steps steps;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.sizes[axis] > 1 && view.strides[axis] != 0)
      steps.insert({view.sizes[axis], std::abs(view.strides[axis]) * width});
  }
  if (width > 1) steps.insert({width, 1});
  return {reinterpret_cast<std::uintptr_t>(view.data) + static_cast<std::uintptr_t>(byte_extent(view)->low), steps};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// Steps [ia, count) of a against steps [ib, count) of b, whose start lies `shift` bytes behind a's.
bool apart(const Region& a, int ia, const Region& b, int ib, std::int64_t shift, int& budget) {
  if (shift >= a.length(ia) || -shift >= b.length(ib)) return true;
  const std::int64_t stride = std::max(a.stride(ia), b.stride(ib));
  if (stride == 0 || --budget < 0) return false;  // one and the same byte, or too hard to tell
  const bool step_a = a.stride(ia) == stride, step_b = b.stride(ib) == stride;
  const std::int64_t copies_a = step_a ? a.steps.at[ia].size : 1, copies_b = step_b ? b.steps.at[ib].size : 1;
  const int inner_a = ia + step_a, inner_b = ib + step_b;
  // Copy x of a and copy y of b lie shift + stride * (y - x) bytes apart; few differences bring them into reach.
  const std::int64_t first = std::max(1 - copies_a, floor_div(-b.length(inner_b) - shift, stride) + 1);
  const std::int64_t last = std::min(copies_b - 1, -floor_div(shift - a.length(inner_a), stride) - 1);
  for (std::int64_t difference = first; difference <= last; ++difference)
    if (!apart(a, inner_a, b, inner_b, shift + stride * difference, budget)) return false;
  return true;
}

}  // namespace

bool disjoint(const TensorView& a, const TensorView& b) noexcept {
  if (!has_elements(a) || !has_elements(b)) return true;
  const Region x = region_of(a), y = region_of(b);
  const auto length_x = static_cast<std::uintptr_t>(x.length(0)), length_y = static_cast<std::uintptr_t>(y.length(0));
  if (y.start >= x.start ? y.start - x.start >= length_x : x.start - y.start >= length_y) return true;
  int budget = 4096;
  return apart(x, 0, y, 0, static_cast<std::int64_t>(y.start - x.start), budget);
}

bool self_disjoint(const TensorView& view) noexcept {
  Steps steps;
  for (int axis = 0; axis < view.rank; ++axis)
    if (view.sizes[axis] > 1) steps.insert({view.sizes[axis], view.strides[axis]});
  for (int i = 0; i < steps.count; ++i)
    if (steps.at[i].stride < steps.length(i + 1)) return false;
  return true;
}

}  // namespace levelhead
