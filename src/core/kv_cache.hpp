// What append and decode share: new tokens are checked first and written afterwards.
#pragma once

#include <vector>

#include "levelhead/decode.hpp"

namespace levelhead {

/// Tokens that are about to join a cache.
class CacheWriter {
 public:
  /// k [B, Hk, n, D], v [B, Hk, n, Dv], counts [B]. Throws Error if they do not fit the cache or its room.
  CacheWriter(KvCache& cache, const TensorView& k, const TensorView& v, const std::optional<TensorView>& counts);

  /// The lengths once they are there, [B].
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// Writes them behind the tokens of the cache, which does not count them yet.
  void write() const;
  /// Makes the cache count them.
  void commit() noexcept { cache_.lengths_.swap(lengths_); }

 private:
  KvCache& cache_;
  TensorView k_, v_;
  std::vector<std::int64_t> lengths_;
};

}  // namespace levelhead
