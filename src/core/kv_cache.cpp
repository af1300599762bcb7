// The cache: its memory, what may join it, and how that is written.
#include "core/kv_cache.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/check.hpp"

namespace levelhead {
namespace {

// Pages of 2 MB: a step of decoding reads every page of the cache, and one entry of the TLB then stands for 512 of 4
// KB.
constexpr std::align_val_t huge_page{std::size_t{2} << 20};

std::byte* map(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, huge_page));
#if defined(__linux__)
  if (bytes >= static_cast<std::size_t>(huge_page))
    madvise(memory, bytes, MADV_HUGEPAGE);  // a hint, nothing depends on it
#endif
  return memory;
}

void check_cache_type(DType type) {
  if (type != DType::f64 && type != DType::f32 && type != DType::bf16 && type != DType::f16)
    fail("a cache can't hold ", name_of(type), ": it must be f64, f32, bf16 or f16");
}

void check_cache_shape(const CacheShape& s) {
  check_cache_type(s.dtype);
  for (const auto& [name, size] :
       {std::pair{"B", s.B}, {"Hk", s.Hk}, {"capacity", s.capacity}, {"D", s.D}, {"Dv", s.Dv}}) {
    if (size < 0) fail("a cache can't have ", name, " = ", size, ": no size is negative");
  }
  const auto width = static_cast<std::int64_t>(size_of(s.dtype));
  std::int64_t components = 0;
  if (__builtin_add_overflow(s.D, s.Dv, &components) || !fits({s.B, s.Hk, s.capacity, components, width, 8}))
    fail("a cache of B * Hk * capacity * (D + Dv) = ", s.B, " * ", s.Hk, " * ", s.capacity, " * (", s.D, " + ", s.Dv,
         ") overflows: its bytes exceed 64 bits");
}

// [B, Hk, capacity, width]
MutableTensorView lay_out(std::byte* data, const CacheShape& s, std::int64_t width) {
  const std::int64_t head = s.layout == CacheLayout::row_major ? s.capacity * width : width;
  const std::int64_t token = s.layout == CacheLayout::row_major ? width : s.Hk * width;
  return {data, s.dtype, {s.B, s.Hk, s.capacity, width}, {s.Hk * s.capacity * width, head, token, 1}};
}

std::int64_t integer_at(const TensorView& view, std::int64_t at) {
  const std::int64_t index = at * view.strides[0];
  return view.dtype == DType::i64 ? static_cast<const std::int64_t*>(view.data)[index]
                                  : static_cast<const std::int32_t*>(view.data)[index];
}

void check_counts(const Named& counts, std::int64_t B, std::int64_t n) {
  check_shape(counts, {{"B", B}});
  if (counts.view.dtype != DType::i64 && counts.view.dtype != DType::i32)
    fail(text(counts), " is ", name_of(counts.view.dtype), " but must be i64 or i32");
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t count = integer_at(counts.view, b);
    if (count < 0 || count > n)
      fail(text(counts), " holds ", count, " at ", b, " but must stay within 0 and the ", n, " new tokens");
  }
}

// Tokens [0, count) of batch item b of `from` to tokens [at, at + count) of `to`.
void copy_tokens(const TensorView& from, const MutableTensorView& to, std::int64_t b, std::int64_t at,
                 std::int64_t count) {
  const auto width = static_cast<std::int64_t>(size_of(from.dtype)), D = from.sizes[3];
  const auto* const source = static_cast<const std::byte*>(from.data);
  auto* const target = static_cast<std::byte*>(to.data);
  const auto copy = [width](const std::byte* x, std::byte* y, std::int64_t n) {
    std::memcpy(y, x, static_cast<std::size_t>(n * width));
  };
  for (std::int64_t h = 0; h < from.sizes[1]; ++h) {
    for (std::int64_t j = 0; j < count && D > 0; ++j) {
      const std::byte* const x = source + (b * from.strides[0] + h * from.strides[1] + j * from.strides[2]) * width;
      std::byte* const y = target + (b * to.strides[0] + h * to.strides[1] + (at + j) * to.strides[2]) * width;
      if (from.strides[3] == 1 && to.strides[3] == 1) {
        copy(x, y, D);
      } else {
        for (std::int64_t c = 0; c < D; ++c) copy(x + c * from.strides[3] * width, y + c * to.strides[3] * width, 1);
      }
    }
  }
}

}  // namespace

void KvCache::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, huge_page); }

KvCache::KvCache(const CacheShape& shape) {
  check_cache_shape(shape);
  const auto width = static_cast<std::int64_t>(size_of(shape.dtype));
  const std::int64_t tokens = shape.B * shape.Hk * shape.capacity;
  // v starts on a line of its own.
  const std::int64_t k_bytes = (tokens * shape.D * width + 63) / 64 * 64;
  memory_.reset(map(static_cast<std::size_t>(k_bytes + tokens * shape.Dv * width)));
  lengths_.assign(static_cast<std::size_t>(shape.B), 0);
  k_ = lay_out(memory_.get(), shape, shape.D);
  v_ = lay_out(memory_.get() + k_bytes, shape, shape.Dv);
}

KvCache::KvCache(const MutableTensorView& k, const MutableTensorView& v, std::span<const std::int64_t> lengths)
    : k_(k), v_(v) {
  check_view({"k of the cache", k});
  if (k.rank != 4) fail(text({"k of the cache", k}), " has rank ", k.rank, " but must have 4: [B, Hk, capacity, D]");
  check_cache_type(k.dtype);
  check_shape({"v of the cache", v},
              {{"B", k.sizes[0]}, {"Hk", k.sizes[1]}, {"capacity", k.sizes[2]}, {"Dv", v.sizes[3]}});
  check_type({"v of the cache", v}, k.dtype, "the type of k");
  check_apart({}, {{"k of the cache", k}, {"v of the cache", v}});
  const auto B = static_cast<std::size_t>(k.sizes[0]);
  if (!lengths.empty() && lengths.size() != B)
    fail("the lengths of a cache hold ", lengths.size(), " numbers but it has B = ", B);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > capacity())
      fail("batch item ", b, " of the cache has length ", lengths[b], " but room for ", capacity(), " tokens");
  }
  lengths_.assign(B, 0);
  std::copy(lengths.begin(), lengths.end(), lengths_.begin());
}

TensorView KvCache::lengths_view() const noexcept { return view(lengths_.data(), {k_.sizes[0]}); }

void KvCache::append(const TensorView& k, const TensorView& v, const std::optional<TensorView>& counts) {
  CacheWriter writer(*this, k, v, counts);
  writer.write();
  writer.commit();
}

void KvCache::truncate(std::int64_t b, std::int64_t length) {
  if (b < 0 || b >= k_.sizes[0]) fail("the cache has no batch item ", b, ": B = ", k_.sizes[0]);
  std::int64_t& now = lengths_[static_cast<std::size_t>(b)];
  if (length < 0 || length > now)
    fail("batch item ", b, " of the cache can't be cut to ", length, " tokens: it holds ", now);
  now = length;
}

void KvCache::clear() noexcept { std::fill(lengths_.begin(), lengths_.end(), 0); }

CacheWriter::CacheWriter(KvCache& cache, const TensorView& k, const TensorView& v,
                         const std::optional<TensorView>& counts)
    : cache_(cache), k_(k), v_(v), lengths_(cache.lengths_) {
  const MutableTensorView &to_k = cache.k_, &to_v = cache.v_;
  check_view({"k", k});
  if (k.rank != 4) fail(text({"k", k}), " has rank ", k.rank, " but must have 4: [B, Hk, new tokens, D]");
  const std::int64_t B = to_k.sizes[0], n = k.sizes[2];
  check_shape({"k", k}, {{"B", B}, {"Hk", to_k.sizes[1]}, {"new tokens", n}, {"D", to_k.sizes[3]}});
  check_shape({"v", v}, {{"B", B}, {"Hk", to_k.sizes[1]}, {"new tokens", n}, {"Dv", to_v.sizes[3]}});
  check_type({"k", k}, to_k.dtype, "the type of the cache");
  check_type({"v", v}, to_k.dtype, "the type of the cache");
  if (counts) check_counts({"counts", *counts}, B, n);
  check_apart({{"k", k}, {"v", v}}, {{"k of the cache", to_k}, {"v of the cache", to_v}});
  for (std::int64_t b = 0; b < B; ++b) {
    std::int64_t& length = lengths_[static_cast<std::size_t>(b)];
    const std::int64_t more = counts ? integer_at(*counts, b) : n;
    if (more > cache.capacity() - length)
      fail("the cache of batch item ", b, " holds ", length, " of ", cache.capacity(), " tokens; ", more, " more do",
           more == 1 ? "es" : "", "n't fit");
    length += more;
  }
}

void CacheWriter::write() const {
  for (std::int64_t b = 0; b < cache_.k_.sizes[0]; ++b) {
    const std::int64_t at = cache_.length(b), count = lengths_[static_cast<std::size_t>(b)] - at;
    copy_tokens(k_, cache_.k_, b, at, count);
    copy_tokens(v_, cache_.v_, b, at, count);
  }
}

}  // namespace levelhead
