// The walk for few rows: one query of a token or a few over a long cache, where 128 rows per task do not exist.
//
// A task is one key/value head, all its rows (up to 64) and one range of keys: it is ForwardTask over that range alone.
// A head of several ranges leaves m, the sums and the unnormalised o of each row per range in scratch; who finishes the
// head's last range merges them in the order of the keys, so no thread waits for another and the bits are the same for
// any number of threads. A head of one range is finished where it is, and a call of one task wakes nobody.
//
// More rows than that (asked for by name) go in waves of one chunk of rows each. The engine is one that reads keys
// where they lie (stream-inl.h), or one that packs them, for 17 rows and more.
#if defined(LEVELHEAD_DRIVER_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_DECODE_INL_H_
#undef LEVELHEAD_DRIVER_DECODE_INL_H_
#else
#define LEVELHEAD_DRIVER_DECODE_INL_H_
#endif

#include "kernels/driver/forward-inl.h"
#include "kernels/driver/ranges.hpp"
#include "kernels/driver/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

/// What o and lse need of a part of a row.
struct PartSums {
  double max = 0, sum = 0;  // sum relative to max
  std::int64_t count = 0;

  RowState state() const {
    RowState s;
    s.max = max, s.sum = sum, s.count = count;
    return s;
  }
};

/// What ranges leave of their rows, and who still has to come; all in scratch.
struct Parts {
  std::int64_t* starts = nullptr;       // [segments + 1]
  std::int64_t* slot_starts = nullptr;  // [segments + 1]
  std::int64_t* remaining = nullptr;    // [segments][Hk]
  PartSums* sums = nullptr;             // [slots][rows]
  RowState* states = nullptr;           // [slots][rows], if states are asked for
  float* o = nullptr;                   // [slots][rows][o_stride]
  std::int64_t rows = 0, o_stride = 0;
};

/// Ranges whose rows leave a part, over all heads.
inline std::int64_t count_slots(const Problem& p, std::int64_t queries) {
  std::int64_t slots = 0;
  for (const Segment& s : p.segments) {
    const std::int64_t ranges = most_ranges(p, s, queries);
    slots += ranges > 1 ? ranges * p.Hk : 0;
  }
  return slots;
}

inline Parts lay_out_parts(const Problem& p, std::int64_t queries, Arena& arena) {
  const auto segments = static_cast<std::int64_t>(p.segments.size());
  const std::int64_t slots = count_slots(p, queries);
  Parts parts;
  parts.rows = queries * p.group();
  parts.o_stride = round_up(p.Dv, lanes);
  parts.starts = arena.take<std::int64_t>(segments + 1);
  parts.slot_starts = arena.take<std::int64_t>(segments + 1);
  parts.remaining = arena.take<std::int64_t>(segments * p.Hk);
  parts.sums = arena.take<PartSums>(slots * parts.rows);
  parts.states = arena.take<RowState>(slots * parts.rows);
  parts.o = arena.take<float>(slots * parts.rows * parts.o_stride);
  return parts;
}

/// Scratch of a call: O(threads x block), and for every range of every head m, the sums and o of each row.
template <class Engine>
std::size_t decode_workspace(const Problem& p, int threads) noexcept {
  const std::int64_t queries = queries_per_chunk(p);
  // Strides of 0 make sizes legal that no memory holds: what would overflow is asked for as what no one has.
  constexpr double most = 0x1p62;
  const auto row_bytes =
      static_cast<double>(sizeof(PartSums) + sizeof(RowState)) + 4.0 * static_cast<double>(p.Dv + lanes);
  const double rows = static_cast<double>(queries) * static_cast<double>(p.group());
  if (static_cast<double>(count_slots(p, queries)) * rows * row_bytes > most) return static_cast<std::size_t>(most);
  Arena arena(nullptr);
  lay_out_parts(p, queries, arena);
  for (int t = 0; t < threads; ++t) lay_out<Engine>(p, queries, arena);
  return arena.used();
}

/// All that the tasks of one wave share.
template <class Engine, StatisticsLevel kLevel>
class DecodeWave {
 public:
  DecodeWave(const Problem& p, const ForwardOutputs& out, const Parts& parts, const Wave& wave)
      : p_(p), out_(out), parts_(parts), wave_(wave) {}

  void run(std::int64_t index, Scratch<Engine>& scratch) const {
    const Wave::Item item = wave_.item(index);
    ForwardTask<Engine, kLevel> task(p_, out_, item.task, scratch);
    if constexpr (!Engine::packs) end_streams(p_, item.task, scratch.keys, scratch.values);
    task.walk(item.keys);
    if (item.ranges == 1) return task.finish();
    leave(task, item);
    // The last one of the head sees what the others have left.
    if (__atomic_sub_fetch(parts_.remaining + item.number, 1, __ATOMIC_ACQ_REL) == 0) merge_head(item, task, scratch);
  }

 private:
  void leave(ForwardTask<Engine, kLevel>& task, const Wave::Item& item) const {
    for (int r = 0; r < task.rows(); ++r) {
      const std::int64_t at = place(item, item.range, r);
      const float* const from = task.o_of(r);
      float* const to = parts_.o + at * parts_.o_stride;
      for (std::int64_t c = 0; c < parts_.o_stride; c += lanes) store(load(from + c), to + c);
      const RowState state = task.state_of(r);
      parts_.sums[at] = {state.max, state.sum, state.count};
      if (out_.state != nullptr) parts_.states[at] = task.measured(r, state);
    }
  }

  void merge_head(const Wave::Item& item, ForwardTask<Engine, kLevel>& task, Scratch<Engine>& scratch) const {
    const std::int64_t b = item.task.segment->b;
    for (int r = 0; r < task.rows(); ++r) {
      RowState sums, state;
      state.level = kLevel;
      for (std::int64_t range = 0; range < item.ranges; ++range) {
        const std::int64_t at = place(item, range, r);
        sums = merge(sums, parts_.sums[at].state());
        if (out_.state != nullptr) state = merge(state, parts_.states[at]);
      }
      float* const o = task.o_of(r);
      for (std::int64_t c = 0; c < parts_.o_stride; c += lanes) store(zero(), o + c);
      for (std::int64_t range = 0; range < item.ranges; ++range) add_part(place(item, range, r), sums, o);
      const RowPlace& row = scratch.places[r];
      write_row(p_, out_, b, row, sums, o);
      if (out_.state != nullptr) out_.state_at(p_, b, row.h, row.i) = state;
    }
  }

  std::int64_t place(const Wave::Item& item, std::int64_t range, int r) const {
    return (item.slot + range) * parts_.rows + r;
  }

  // o += e^(m_part - m) o_part; a part without a key says nothing.
  void add_part(std::int64_t at, const RowState& whole, float* o) const {
    const PartSums& part = parts_.sums[at];
    if (part.count == 0) return;
    const bool nothing = part.max == -std::numeric_limits<double>::infinity();  // only -inf logits: no weight yet
    const Vec by = set(nothing ? 0.0f : static_cast<float>(std::exp(part.max - whole.max)));
    const float* const from = parts_.o + at * parts_.o_stride;
    for (std::int64_t c = 0; c < parts_.o_stride; c += lanes) {
      store(hn::MulAdd(by, load(from + c), load(o + c)), o + c);
    }
  }

  const Problem& p_;
  const ForwardOutputs& out_;
  const Parts& parts_;
  const Wave& wave_;
};

template <class Engine, StatisticsLevel kLevel>
void decode_level(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* memory) {
  const std::int64_t queries = queries_per_chunk(p), longest = longest_queries(p);
  Arena whole(memory), measure_one(nullptr);
  const Parts parts = lay_out_parts(p, queries, whole);
  lay_out<Engine>(p, queries, measure_one);
  std::byte* const scratches = whole.take<std::byte>(0);
  const bool alone = work_bytes(p, queries) < bytes_worth_a_thread;
  for (std::int64_t chunk = 0; chunk * queries < longest; ++chunk) {
    const Wave wave(p, queries, chunk, parts.starts, parts.slot_starts);
    const DecodeWave<Engine, kLevel> tasks(p, out, parts, wave);
    const std::int64_t count = wave.tasks(), threads = pool.threads();
    for (std::int64_t index = 0; index < count;) {
      const Wave::Item item = wave.item(index);
      parts.remaining[item.number] = item.ranges;
      index += item.ranges;
    }
    const auto body = [&](std::int64_t index, int thread) HWY_ATTR {
      Arena arena(scratches + static_cast<std::size_t>(thread) * measure_one.used());
      Scratch<Engine> scratch = lay_out<Engine>(p, queries, arena);
      scratch.rows.measured = out.state != nullptr;
      tasks.run(index, scratch);
    };
    if (alone || threads == 1) {
      for (std::int64_t index = 0; index < count; ++index) body(index, 0);
      continue;
    }
    // Handed out in turns from as many stretches as there are threads: each reads pages of its own in order.
    const std::int64_t turns = divide_up(count, threads);
    pool.run(turns * threads, [&](std::int64_t turn, int thread) HWY_ATTR {
      const std::int64_t index = turn % threads * turns + turn / threads;
      if (index < count) body(index, thread);
    });
  }
  finish_uncovered(p, out);
}

template <class Engine>
void decode(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  // What a level costs is only paid for rows whose state somebody reads.
  switch (out.state == nullptr ? StatisticsLevel::lse_max : p.statistics.level) {
    case StatisticsLevel::lse_max: return decode_level<Engine, StatisticsLevel::lse_max>(p, out, pool, scratch);
    case StatisticsLevel::entropy: return decode_level<Engine, StatisticsLevel::entropy>(p, out, pool, scratch);
    case StatisticsLevel::all: return decode_level<Engine, StatisticsLevel::all>(p, out, pool, scratch);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
