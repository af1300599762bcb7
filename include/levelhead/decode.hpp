// Decoding: a cache of keys and values that grows by a few tokens a call, and attention of those tokens to all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "levelhead/attention.hpp"

namespace levelhead {

/// The order of a cache in memory. Both are read at the same speed: the components of a row lie side by side in either.
enum class CacheLayout : std::uint8_t {
  row_major,   ///< [B, Hk, capacity, D]: the rows of a head follow each other
  token_major  ///< [B, capacity, Hk, D]: the heads of a token do
};

struct CacheShape {
  std::int64_t B = 1, Hk = 1;
  std::int64_t capacity = 0;  ///< tokens that a batch item has room for
  std::int64_t D = 0, Dv = 0;
  DType dtype = DType::f32;  ///< f64, f32, bf16 or f16
  CacheLayout layout = CacheLayout::row_major;
};

/// Keys and values of each batch item, the first length(b) tokens of which are there. What lies behind them is never
/// read. Move-only: a copy of a cache is rarely meant.
class KvCache {
 public:
  /// Owns its memory, which the system hands out when it is first written. Throws Error on a negative size, a type that
  /// is not floating, or sizes that overflow.
  explicit KvCache(const CacheShape& shape);
  /// Over memory of the caller, which must outlive it: k [B, Hk, capacity, D], v [B, Hk, capacity, Dv] with any
  /// positive strides. lengths [B]: tokens already there, none if empty. Throws Error on views that do not fit.
  KvCache(const MutableTensorView& k, const MutableTensorView& v, std::span<const std::int64_t> lengths = {});

  KvCache(KvCache&&) noexcept = default;
  KvCache& operator=(KvCache&&) noexcept = default;
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;
  ~KvCache() = default;

  std::int64_t capacity() const noexcept { return k_.sizes[2]; }
  /// Tokens of batch item b.
  std::int64_t length(std::int64_t b) const { return lengths_.at(static_cast<std::size_t>(b)); }
  /// [B]
  std::span<const std::int64_t> lengths() const noexcept { return lengths_; }

  /// [B, Hk, capacity, D] and [B, Hk, capacity, Dv]; beside lengths_view() they can stand in Inputs.
  TensorView k() const noexcept { return k_; }
  TensorView v() const noexcept { return v_; }
  /// [B], i64
  TensorView lengths_view() const noexcept;

  /// Adds tokens: k [B, Hk, n, D], v [B, Hk, n, Dv], of the cache's type. counts [B], i64 or i32: how many of the n are
  /// real, all if absent. Throws Error, before anything is written, if one does not fit.
  void append(const TensorView& k, const TensorView& v, const std::optional<TensorView>& counts = {});

  /// Forgets the tokens of batch item b from `length` on. Throws Error if it has fewer.
  void truncate(std::int64_t b, std::int64_t length);
  /// Forgets all tokens.
  void clear() noexcept;

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  friend class CacheWriter;

  std::unique_ptr<std::byte, Free> memory_;  // null over memory of the caller
  MutableTensorView k_, v_;
  std::vector<std::int64_t> lengths_;
};

/// New tokens that one decode takes at most.
inline constexpr std::int64_t decode_tokens = 16;

/// What a step of decoding reads beside the cache. Nk is the longest batch item once the tokens are appended, and keys
/// count from the start of the cache. The rest is as in Inputs.
struct DecodeInputs {
  TensorView q;                              ///< [B, Hq, n, D], 1 <= n <= 16
  TensorView k;                              ///< [B, Hk, n, D]
  TensorView v;                              ///< [B, Hk, n, Dv]
  std::optional<TensorView> counts{};        ///< [B], i64 or i32: how many of the n tokens are real; all if absent
  std::optional<TensorView> mask{};          ///< broadcastable to [B, Hq, n, Nk]
  std::optional<TensorView> bias{};          ///< broadcastable to [B, Hq, n, Nk]
  std::optional<TensorView> alibi_slopes{};  ///< [Hq]
  std::optional<TensorView> sinks{};         ///< [Hq]
};

/// Appends k and v to the cache, then attends from q to all of it. The new tokens stand at the end: token x of n has
/// the position length + x, so windows and slopes count from the cache's start. They are causal among each other unless
/// the window names a right bound (Window::sliding({}, 15) lets them all see each other); its alignment may be unnamed
/// or bottom_right. Rows behind a count are empty rows. Throws Error on wrong use, a full cache among it, and then
/// neither cache nor outputs have changed.
RunInfo decode(Context& context, KvCache& cache, const DecodeInputs& inputs, const Options& options,
               const Outputs& outputs);

}  // namespace levelhead
