// How a forward pass is cut into tasks, and how scratch memory is handed out. Plain code, no vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/problem.hpp"

namespace levelhead {
namespace {

/// Rows of one task, about: enough that packing a key block, once per task, is a small part of using it, and half as
/// many, down to least_rows, where a thread would have fewer than tasks_per_thread of them. No row's bits depend on it.
/// Products of 16-bit pairs are quick enough for more rows to cost more in cache misses than they save in packing.
inline constexpr std::int64_t least_rows = 128, tasks_per_thread = 4;
constexpr std::int64_t most_rows(std::size_t bytes_of_key) { return bytes_of_key == sizeof(float) ? 512 : 256; }

/// Queries of one task: their whole head group shares the packed keys.
inline std::int64_t queries_per_task(const Problem& p, int threads, std::size_t bytes_of_key) {
  std::int64_t queries = 0;
  for (const Segment& s : p.segments) queries += s.q_end - s.q_begin;
  std::int64_t rows = most_rows(bytes_of_key);
  while (rows > least_rows && queries * p.Hq < rows * tasks_per_thread * threads) rows /= 2;
  return std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, p.group()));
}

inline std::int64_t tasks_per_head(const Segment& s, std::int64_t queries) {
  return (s.q_end - s.q_begin + queries - 1) / queries;
}

/// One segment, key/value head and run of queries.
struct Task {
  const Segment* segment = nullptr;
  std::int64_t kv_head = 0;
  std::int64_t i_begin = 0, i_end = 0;
};

/// starts [segments + 1]: index of each segment's first task of so many queries. Returns the number of tasks.
inline std::int64_t index_tasks(const Problem& p, std::int64_t queries, std::int64_t* starts) {
  std::int64_t total = 0;
  for (std::size_t s = 0; s < p.segments.size(); ++s) {
    starts[s] = total;
    total += tasks_per_head(p.segments[s], queries) * p.Hk;
  }
  starts[p.segments.size()] = total;
  return total;
}

/// Later queries first: under a causal window they see the most keys, and the longest task should not come last.
inline Task task_at(const Problem& p, std::int64_t queries, const std::int64_t* starts, std::int64_t index) {
  std::size_t low = 0, high = p.segments.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (starts[middle] <= index ? low : high) = middle;
  }
  const Segment& s = p.segments[low];
  const std::int64_t runs = tasks_per_head(s, queries), local = index - starts[low];
  const std::int64_t run = runs - 1 - local / p.Hk;
  const std::int64_t begin = s.q_begin + run * queries;
  return {&s, local % p.Hk, begin, begin + queries < s.q_end ? begin + queries : s.q_end};
}

/// Hands out parts of one allocation, each aligned to 64 bytes. From a null base it only measures.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}

  template <class T>
  T* take(std::int64_t count) {
    T* const part = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return part;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace
}  // namespace levelhead
