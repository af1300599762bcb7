// The eight tile registers of AMX, each 16 rows of 64 bytes: 16 sums in f32, or 16 pairs of bf16.
//
// Where LEVELHEAD_AMX is 1, a Tile is a register of the calling thread, and every operation one instruction. Elsewhere
// it is plain memory of the thread: slow, with the same numbers in the same order, and just as unusable outside a
// TileSession. The instructions are written by hand, because g++ 12's own functions say neither that loading a
// configuration reads 64 bytes nor that loading a tile reads memory.
#if defined(LEVELHEAD_ENGINES_TILE_REGISTERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_ENGINES_TILE_REGISTERS_INL_H_
#undef LEVELHEAD_ENGINES_TILE_REGISTERS_INL_H_
#else
#define LEVELHEAD_ENGINES_TILE_REGISTERS_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int tile_registers = 8, register_rows = 16, register_words = 16;

#if LEVELHEAD_AMX

/// Gives the thread its tiles; ends them, so that the operating system need not save them.
class TileSession {
 public:
  TileSession() {
    struct {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    static_assert(sizeof(shape) == 64);
    for (int t = 0; t < tile_registers; ++t) {
      shape.row_bytes[t] = 4 * register_words;
      shape.rows[t] = register_rows;
    }
    asm volatile("ldtilecfg %0" : : "m"(shape));
  }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
  ~TileSession() { asm volatile("tilerelease"); }
};

template <int T>
struct Tile {
  static HWY_INLINE void clear() { asm volatile("tilezero %%tmm%c0" : : "i"(T)); }

  /// 16 rows of 64 bytes, the next `stride` bytes further; a stride of 0 repeats one row.
  static HWY_INLINE void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(T), "r"(from), "r"(stride) : "memory");
  }

  /// The same for what is used once and lies in L2: leaves L1 to others.
  static HWY_INLINE void stream(const void* from, std::int64_t stride) {
    asm volatile("tileloaddt1 (%1,%2,1), %%tmm%c0" : : "i"(T), "r"(from), "r"(stride) : "memory");
  }

  static HWY_INLINE void store(float* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(T), "r"(to), "r"(stride) : "memory");
  }

  /// += A x B: sums [16][16], A pairs [16][16], B pairs [16][16] with the pairs of a column below each other.
  template <int A, int B>
  static HWY_INLINE void add_product() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(T), "i"(A), "i"(B));
  }
};

#else

class TileSession;
thread_local TileSession* tiles_of_thread = nullptr;

class TileSession {
 public:
  TileSession() { tiles_of_thread = this; }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
  ~TileSession() { tiles_of_thread = nullptr; }

  alignas(64) std::uint32_t words[tile_registers][register_rows][register_words] = {};
};

template <int T>
struct Tile {
  static void clear() { __builtin_memset(words(), 0, row_bytes * register_rows); }

  static void load(const void* from, std::int64_t stride) {
    for (int r = 0; r < register_rows; ++r)
      __builtin_memcpy(words()[r], static_cast<const std::byte*>(from) + r * stride, row_bytes);
  }

  static void stream(const void* from, std::int64_t stride) { load(from, stride); }

  static void store(float* to, std::int64_t stride) {
    for (int r = 0; r < register_rows; ++r)
      __builtin_memcpy(reinterpret_cast<std::byte*>(to) + r * stride, words()[r], row_bytes);
  }

  // As Intel describes it: the first halves of all pairs in one chain from zero, the second halves in another, then
  // the sum of both. The instruction also takes and leaves subnormal numbers as 0, which this does not.
  template <int A, int B>
  static void add_product() {
    alignas(64) float first[register_rows][register_words], second[register_rows][register_words];
    for (int k = 0; k < register_rows; ++k) split(Tile<B>::words()[k], first[k], second[k]);
    for (int r = 0; r < register_rows; ++r) {
      alignas(64) float a_first[register_words], a_second[register_words];
      split(Tile<A>::words()[r], a_first, a_second);
      for (int c = 0; c < register_words; c += step) {
        auto even = hn::Zero(tag), odd = hn::Zero(tag);
        // Unrolled, all of B would be kept from row to row, in more registers than there are.
#pragma GCC unroll 1
        for (int k = 0; k < register_rows; ++k) {
          even = hn::MulAdd(hn::Set(tag, a_first[k]), hn::Load(tag, first[k] + c), even);
          odd = hn::MulAdd(hn::Set(tag, a_second[k]), hn::Load(tag, second[k] + c), odd);
        }
        auto* const sum = words()[r] + c;
        const auto before = hn::BitCast(tag, hn::Load(integers, sum));
        hn::Store(hn::BitCast(integers, hn::Add(before, hn::Add(even, odd))), integers, sum);
      }
    }
  }

 private:
  template <int>
  friend struct Tile;

  using Words = std::uint32_t[register_words];
  static constexpr std::size_t row_bytes = sizeof(Words);
  static constexpr hn::CappedTag<float, register_words> tag{};
  static constexpr hn::RebindToUnsigned<decltype(tag)> integers{};
  static constexpr int step = static_cast<int>(hn::MaxLanes(tag));

  static Words* words() { return tiles_of_thread->words[T]; }

  static void split(const Words& pairs, float* first, float* second) {
    for (int k = 0; k < register_words; ++k) {
      first[k] = std::bit_cast<float>(pairs[k] << 16);
      second[k] = std::bit_cast<float>(pairs[k] & 0xFFFF0000U);
    }
  }
};

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
