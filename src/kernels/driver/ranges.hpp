// How a call of few rows is cut: each head's keys into ranges of a fixed size, so that threads share one row's keys and
// the cut never depends on how many threads there are. Plain code, no vectors.
#pragma once

#include <cstdint>

#include "kernels/driver/key_bits.hpp"
#include "kernels/driver/tasks.hpp"

namespace levelhead {
namespace {

/// Keys of one range, counted from the segment's first key.
inline constexpr std::int64_t range_keys = 512;
/// Rows that share a walk over the keys, at most. The plan takes these kernels unasked while no head has more: those
/// that read keys where they lie up to streamed_rows_limit, from where on a packed copy of the keys pays.
inline constexpr std::int64_t few_rows_limit = 64, streamed_rows_limit = 16;
/// Bytes of keys and values, times rows by four, below which waking another thread costs more than it saves.
inline constexpr std::int64_t bytes_worth_a_thread = std::int64_t{192} << 10;

inline std::int64_t longest_queries(const Problem& p) {
  std::int64_t most = 0;
  for (const Segment& s : p.segments) most = s.q_end - s.q_begin > most ? s.q_end - s.q_begin : most;
  return most;
}

/// Whether no head has more than `limit` rows.
inline bool rows_within(const Problem& p, std::int64_t limit) {
  const std::int64_t longest = longest_queries(p);
  return longest == 0 || (longest <= limit && p.group() <= limit / longest);
}

/// Kernel::fits of the kernels that walk ranges of keys as they lie, and of packed ones. Asked for splits, the two
/// share out all problems.
inline bool fits_streamed(const Problem& p) noexcept {
  return rows_within(p, streamed_rows_limit) && (p.splits != 0 || longest_queries(p) > 0);
}
inline bool fits_split(const Problem& p) noexcept {
  return !rows_within(p, streamed_rows_limit) && (p.splits != 0 || rows_within(p, few_rows_limit));
}

inline std::int64_t divide_up(std::int64_t n, std::int64_t unit) { return n / unit + (n % unit != 0 ? 1 : 0); }

/// Queries of one chunk: with their head group they are the rows of a walk.
inline std::int64_t queries_per_chunk(const Problem& p) {
  const std::int64_t group = p.group(), longest = longest_queries(p);  // no heads at all: group 0
  const std::int64_t most = group > 0 && group < few_rows_limit ? few_rows_limit / group : 1;
  return most < longest ? most : longest;
}

/// A multiple of the block, so that the block grid is that of an uncut walk.
inline std::int64_t keys_per_range(const Problem& p, const Segment& s) {
  if (p.splits == 0) return range_keys;
  const std::int64_t blocks = divide_up(divide_up(s.k_end - s.k_begin, p.splits), block_keys);
  return (blocks < 1 ? 1 : blocks) * block_keys;
}

/// Ranges that some query of a chunk sees by position.
struct RangeSpan {
  std::int64_t first = 0, count = 0;
};

inline RangeSpan visible_ranges(const Problem& p, const Segment& s, std::int64_t i_begin, std::int64_t i_end) {
  // Both bounds of a row's keys only rise with the row.
  const std::int64_t begin = p.keys(s, i_begin).begin - s.k_begin, end = p.keys(s, i_end - 1).end - s.k_begin;
  if (end <= begin) return {};
  const std::int64_t keys = keys_per_range(p, s), first = begin / keys;
  return {first, divide_up(end, keys) - first};
}

/// The most that any chunk of a segment sees.
inline std::int64_t most_ranges(const Problem& p, const Segment& s, std::int64_t queries) {
  const std::int64_t keys = keys_per_range(p, s), all = divide_up(s.k_end - s.k_begin, keys);
  if (p.left == unbounded || p.right == unbounded) return all;
  const std::int64_t window = (p.left + p.right + queries) / keys + 2;
  return window < all ? window : all;
}

/// One wave: chunk number `chunk` of every segment that has one.
class Wave {
 public:
  /// starts, slot_starts [segments + 1]: first task, and first slot for the parts of rows, of each segment.
  Wave(const Problem& p, std::int64_t queries, std::int64_t chunk, std::int64_t* starts, std::int64_t* slot_starts)
      : p_(p), queries_(queries), chunk_(chunk), starts_(starts), slot_starts_(slot_starts) {
    std::int64_t tasks = 0, slots = 0;
    for (std::size_t s = 0; s < p.segments.size(); ++s) {
      starts[s] = tasks;
      slot_starts[s] = slots;
      const std::int64_t ranges = ranges_of(p.segments[s]);
      tasks += ranges * p.Hk;
      slots += ranges > 1 ? ranges * p.Hk : 0;
    }
    starts[p.segments.size()] = tasks;
  }

  std::int64_t tasks() const { return starts_[p_.segments.size()]; }

  /// One range of one head; a chunk that sees no key has one empty range, for its rows must be written.
  struct Item {
    Task task;
    std::int64_t number = 0;  // of the segment's head, for its count of ranges still to come
    std::int64_t ranges = 0, range = 0;
    std::int64_t slot = 0;  // of the head's first range
    KeyRange keys;          // counted from the segment's first key
  };

  Item item(std::int64_t index) const {
    std::size_t low = 0, high = p_.segments.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (starts_[middle] <= index ? low : high) = middle;
    }
    const Segment& s = p_.segments[low];
    const std::int64_t begin = s.q_begin + chunk_ * queries_;
    const std::int64_t end = begin + queries_ < s.q_end ? begin + queries_ : s.q_end;
    const RangeSpan span = visible_ranges(p_, s, begin, end);
    const std::int64_t ranges = span.count > 1 ? span.count : 1, keys = keys_per_range(p_, s);
    const std::int64_t local = index - starts_[low], head = local / ranges;
    Item x;
    x.task = {&s, head, begin, end};
    x.number = static_cast<std::int64_t>(low) * p_.Hk + head;
    x.ranges = ranges;
    x.range = local % ranges;
    x.slot = slot_starts_[low] + head * ranges;
    x.keys = {(span.first + x.range) * keys, span.count == 0 ? 0 : (span.first + x.range + 1) * keys};
    const std::int64_t n_k = s.k_end - s.k_begin;
    if (x.keys.end > n_k) x.keys.end = n_k;
    return x;
  }

 private:
  std::int64_t ranges_of(const Segment& s) const {
    const std::int64_t begin = s.q_begin + chunk_ * queries_;
    if (begin >= s.q_end) return 0;
    const RangeSpan span = visible_ranges(p_, s, begin, begin + queries_ < s.q_end ? begin + queries_ : s.q_end);
    return span.count > 1 ? span.count : 1;
  }

  const Problem& p_;
  std::int64_t queries_, chunk_;
  std::int64_t* starts_;
  std::int64_t* slot_starts_;
};

/// The call's keys and values in bytes, times the walks of four rows that each byte feeds.
inline std::int64_t work_bytes(const Problem& p, std::int64_t queries) {
  std::int64_t keys = 0;
  for (const Segment& s : p.segments) {
    if (s.q_begin < s.q_end) keys += visible_ranges(p, s, s.q_begin, s.q_end).count * keys_per_range(p, s);
  }
  const std::int64_t walks = divide_up(queries * p.group(), 4);
  return keys * p.Hk * (p.D + p.Dv) * static_cast<std::int64_t>(size_of(p.dtype)) * walks;
}

}  // namespace
}  // namespace levelhead
