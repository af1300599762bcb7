// Which rows and keys may meet: lengths, documents, window, alignment.
#include <algorithm>

#include "core/check.hpp"
#include "core/problem_parts.hpp"

namespace levelhead {
namespace {

std::int64_t integer_at(const TensorView& view, std::int64_t at) {
  const std::int64_t index = at * view.strides[0];
  return view.dtype == DType::i64 ? static_cast<const std::int64_t*>(view.data)[index]
                                  : static_cast<const std::int32_t*>(view.data)[index];
}

void check_integer_type(const Named& tensor) {
  const DType type = tensor.view.dtype;
  if (type != DType::i64 && type != DType::i32) fail(text(tensor), " is ", name_of(type), " but must be i64 or i32");
}

// Lengths [B]; tokens: Nq or Nk.
void check_lengths(const Named& lengths, std::int64_t B, std::string_view axis, std::int64_t tokens) {
  check_shape(lengths, {{"B", B}});
  check_integer_type(lengths);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t length = integer_at(lengths.view, b);
    if (length < 0 || length > tokens)
      fail(text(lengths), " holds ", length, " at ", b, " but must stay within 0 and ", axis, " = ", tokens);
  }
}

// Offsets [documents + 1]; tokens: Nq or Nk.
void check_offsets(const Named& offsets, std::string_view axis, std::int64_t tokens) {
  check_view(offsets);
  check_integer_type(offsets);
  const TensorView& view = offsets.view;
  if (view.rank != 1 || view.sizes[0] < 1) fail(text(offsets), " must be [documents + 1], with at least one number");
  const std::int64_t last = view.sizes[0] - 1;
  if (integer_at(view, 0) != 0) fail(text(offsets), " starts with ", integer_at(view, 0), " but must start with 0");
  for (std::int64_t d = 0; d < last; ++d) {
    const std::int64_t here = integer_at(view, d), next = integer_at(view, d + 1);
    if (next < here) fail(text(offsets), " falls from ", here, " to ", next, " at ", d + 1, " but may only rise");
  }
  if (integer_at(view, last) != tokens)
    fail(text(offsets), " ends with ", integer_at(view, last), " but must end with ", axis, " = ", tokens);
}

void check_documents(const Problem& p, const Inputs& inputs) {
  if (!inputs.q_offsets || !inputs.k_offsets)
    fail(inputs.q_offsets ? "q_offsets" : "k_offsets", " is given without ",
         inputs.q_offsets ? "k_offsets" : "q_offsets", ": packed documents need both");
  const Named q{"q_offsets", *inputs.q_offsets}, k{"k_offsets", *inputs.k_offsets};
  if (inputs.q_lengths || inputs.k_lengths)
    fail(text(q), " is given together with ", inputs.q_lengths ? "q_lengths" : "k_lengths",
         ": documents are packed or padded, not both");
  if (p.B != 1) fail(text(q), " packs documents into one batch item but q has B = ", p.B);
  check_offsets(q, "Nq", p.Nq);
  check_offsets(k, "Nk", p.Nk);
  if (q.view.sizes[0] != k.view.sizes[0])
    fail(text(q), " holds ", q.view.sizes[0] - 1, " documents but ", text(k), " holds ", k.view.sizes[0] - 1);
}

// Calls visit(segment) for each batch item or document, offset still 0.
template <class Visit>
void for_each_segment(const Problem& p, const Inputs& inputs, Visit&& visit) {
  if (inputs.q_offsets) {
    const TensorView &q = *inputs.q_offsets, &k = *inputs.k_offsets;
    for (std::int64_t d = 0; d + 1 < q.sizes[0]; ++d)
      visit(Segment{0, integer_at(q, d), integer_at(q, d + 1), integer_at(k, d), integer_at(k, d + 1), 0});
    return;
  }
  for (std::int64_t b = 0; b < p.B; ++b) {
    const std::int64_t q_end = inputs.q_lengths ? integer_at(*inputs.q_lengths, b) : p.Nq;
    const std::int64_t k_end = inputs.k_lengths ? integer_at(*inputs.k_lengths, b) : p.Nk;
    visit(Segment{b, 0, q_end, 0, k_end, 0});
  }
}

// There is no default alignment where it matters (docs/edges.md).
void check_alignment(const Segment& s, std::int64_t index, bool documents, bool bounded) {
  const std::int64_t n_q = s.q_end - s.q_begin, n_k = s.k_end - s.k_begin;
  if (n_q != n_k)
    fail(documents ? "document " : "batch item ", index, " has ", n_q, " queries but ", n_k, " keys, and ",
         bounded ? "the window has a bound" : "alibi_slopes are given",
         ": name the alignment, top_left, bottom_right or an offset");
}

void check_window(const Window& window) {
  for (const auto& [name, bound] : {std::pair{"left", window.left()}, std::pair{"right", window.right()}}) {
    if (bound && *bound < 0)
      fail("the window's ", name, " bound is ", *bound, " but counts keys beside the query's own: it must be >= 0");
  }
}

// No two positions lie further apart than `longest`, so offsets beyond it all mean the same.
std::int64_t clamped_offset(const Align& align) { return std::clamp(align.offset(), -longest, longest); }

std::int64_t clamped_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? -longest : longest;
  return std::clamp(sum, -longest, longest);
}

// The band is offset - left <= j - i <= offset + right. Its ends are clamped as numbers of their own: clamping offset
// and bounds one by one would move them.
void resolve_bounds(Problem& p, const Window& window) {
  const std::int64_t offset = window.align().offset(), clamped = clamped_offset(window.align());
  if (window.left()) p.left = std::min(clamped - clamped_sum(offset, -*window.left()), unbounded);
  if (window.right()) p.right = std::min(clamped_sum(offset, *window.right()) - clamped, unbounded);
}

}  // namespace

void resolve_positions(Problem& p, const Inputs& inputs, const Window& window) {
  check_window(window);
  if (inputs.q_lengths) check_lengths({"q_lengths", *inputs.q_lengths}, p.B, "Nq", p.Nq);
  if (inputs.k_lengths) check_lengths({"k_lengths", *inputs.k_lengths}, p.B, "Nk", p.Nk);
  if (inputs.q_offsets || inputs.k_offsets) check_documents(p, inputs);

  const Align align = window.align();
  const bool bounded = window.left() || window.right();
  if (inputs.alibi_slopes && clamped_offset(align) != align.offset())
    fail("the alignment's offset is ", align.offset(), " but beside alibi_slopes it must stay within ", -longest,
         " and ", longest);
  if ((bounded || inputs.alibi_slopes) && align.rule() == Align::Rule::unnamed) {
    std::int64_t index = 0;
    const bool same_everywhere = !inputs.q_offsets && !inputs.q_lengths && !inputs.k_lengths && p.Nq == p.Nk;
    if (!same_everywhere)
      for_each_segment(p, inputs,
                       [&](const Segment& s) { check_alignment(s, index++, inputs.q_offsets.has_value(), bounded); });
  }
  resolve_bounds(p, window);
  if (p.B == 0 || p.Hq == 0 || p.Nq == 0) return;  // no row, however many batch items
  // At once: what cannot be had fails here, not after filling the memory.
  p.segments.reserve(static_cast<std::size_t>(inputs.q_offsets ? inputs.q_offsets->sizes[0] : p.B));
  for_each_segment(p, inputs, [&](Segment s) {
    if (align.rule() == Align::Rule::bottom_right) s.offset = (s.k_end - s.k_begin) - (s.q_end - s.q_begin);
    if (align.rule() == Align::Rule::offset) s.offset = clamped_offset(align);
    p.segments.push_back(s);
  });
}

}  // namespace levelhead
