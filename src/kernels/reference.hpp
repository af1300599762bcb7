// The reference kernel: double arithmetic, plain loops, every type and option, forward and backward.
// Its two passes share how a row meets its keys.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "core/logits.hpp"
#include "kernels/kernel.hpp"

namespace levelhead {

extern const Kernel reference_kernel;

namespace reference {

/// A query and a key that it sees.
struct Pair {
  std::int64_t j = 0;
  double raw = 0;
  Logit logit;
};

/// Scratch of one thread. Keys and values are those of one segment and one key head, at their absolute index.
struct Workspace {
  double* k = nullptr;    // [Nk, D]
  double* v = nullptr;    // [Nk, Dv]
  double* q = nullptr;    // [D]
  double* o = nullptr;    // [Dv]
  Pair* pairs = nullptr;  // [Nk]
  // backward only
  double* dk = nullptr;    // [Nk, D]
  double* dv = nullptr;    // [Nk, Dv]
  double* dq = nullptr;    // [D]
  double* dout = nullptr;  // [Dv]
  double* dp = nullptr;    // [Nk], <dout_i, v_j> of each pair
};

/// Hands out arrays from scratch; without memory it only adds up their bytes.
class Arena {
 public:
  explicit Arena(std::byte* memory) : memory_(memory) {}

  /// [a, b] of T, not initialised. All T here are 8-byte aligned and a multiple of 8 bytes long.
  template <class T>
  T* take(std::int64_t a, std::int64_t b = 1) {
    T* const array = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    std::size_t bytes = sizeof(T);
    if (__builtin_mul_overflow(bytes, a, &bytes) || __builtin_mul_overflow(bytes, b, &bytes) ||
        __builtin_add_overflow(bytes_, bytes, &bytes_)) {
      bytes_ = std::numeric_limits<std::size_t>::max();
    }
    return array;
  }
  /// Bytes taken so far; the largest std::size_t once that overflowed, so that no allocation succeeds.
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_ = 0;
};

/// The segments of batch item b.
std::span<const Segment> segments_of(const Problem& p, std::int64_t b);

enum class Direction { forward, backward };

Workspace take_workspace(const Problem& p, Direction direction, Arena& arena);
/// One workspace per thread.
std::size_t workspaces_bytes(const Problem& p, Direction direction, int threads);

/// Reads keys [k_begin, k_end) of a segment: nothing behind a length is touched.
void load_keys(const Problem& p, const Segment& s, std::int64_t key_head, const Workspace& w);
/// Reads q_i into w.q and lists the pairs of row i, in the order of the keys.
std::span<Pair> load_row(const Problem& p, const Segment& s, std::int64_t h, std::int64_t i, const Workspace& w);

std::size_t forward_workspace(const Problem& p, int threads) noexcept;
void forward(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept;
std::size_t backward_workspace(const Problem& p, const BackwardTensors& t, int threads) noexcept;
void backward(const Problem& p, const BackwardTensors& t, Pool& pool, std::byte* scratch) noexcept;

}  // namespace reference
}  // namespace levelhead
