// Proof of the engine contract: a throw-away AVX512_BF16 engine behind the same driver as the portable one. It shows
// that the seam (accumulators handed to the softmax stage in registers) costs little against the unit's own peak.
// It skips edges that a product engine needs (D and Dv must be multiples of 64) and is no kernel of the library.
// Build with -DLEVELHEAD_BUILD_BENCH=ON on x86; run on a CPU that has AVX512_BF16. Numbers: docs/decisions/0002.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "core/problem.hpp"
#include "core/scale.hpp"
#include "kernels/driver/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

// Pairs of neighbouring components (or keys) share a 32-bit lane, as vdpbf16ps wants them.
struct Bf16Tile {
  using Query = std::uint16_t;   // [D]
  using Key = std::uint16_t;     // [D / 2][block_keys][2]
  using Value = std::uint16_t;   // [block_keys / 2][Dv][2]
  using Weight = std::uint16_t;  // [block_keys]

  static constexpr int tile_rows = 4, tile_vectors = 4, tile_keys = tile_vectors * lanes;

  // Degree 3: its error of 1e-4 disappears in the weight's rounding to 8 bits.
  static HWY_INLINE Vec exp(Vec t) {
    const __m512 z = _mm512_mul_ps(t.raw, _mm512_set1_ps(1.44269504f)), x = _mm512_reduce_ps(z, 9);
    __m512 p = _mm512_fmadd_ps(x, _mm512_set1_ps(0.05550411f), _mm512_set1_ps(0.24022651f));
    p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0.69314718f));
    p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(1.0f));
    return Vec{_mm512_scalef_ps(p, z)};
  }

  static constexpr std::int64_t query_elements(std::int64_t D) { return D; }
  static constexpr std::int64_t key_elements(std::int64_t D) { return D * block_keys; }
  static constexpr std::int64_t value_elements(std::int64_t Dv) { return Dv * block_keys; }

  static void pack_query(const void* q, DType, std::int64_t, std::int64_t D, Query* to) {
    __builtin_memcpy(to, q, static_cast<std::size_t>(D) * sizeof(Query));
  }
  static void clear_query(std::int64_t D, Query* to) { std::fill(to, to + D, Query{0}); }

  static void pack_keys(const void* k, DType, std::int64_t row_stride, std::int64_t, std::int64_t n, std::int64_t D,
                        float*, Key* to) {
    const auto* from = static_cast<const std::uint16_t*>(k);
    for (std::int64_t c = 0; c < D; c += 2) {
      for (std::int64_t j = 0; j < block_keys; ++j) {
        for (std::int64_t x = 0; x < 2; ++x) {
          to[(c / 2 * block_keys + j) * 2 + x] = j < n ? from[j * row_stride + c + x] : Key{0};
        }
      }
    }
  }

  static bool pack_values(const void* v, DType, std::int64_t row_stride, std::int64_t, std::int64_t n, std::int64_t Dv,
                          Value* to) {
    const auto* from = static_cast<const std::uint16_t*>(v);
    for (std::int64_t j = 0; j < block_keys; ++j) {
      for (std::int64_t c = 0; c < Dv; ++c) {
        to[(j / 2 * Dv + c) * 2 + j % 2] = j < n ? from[j * row_stride + c] : Value{0};
      }
    }
    return true;
  }

  template <int R, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    Vec s[R][tile_vectors];
    clear(s);
    pairs(q, D, k + 2 * offset, 2 * block_keys, D / 2, s);
    stage(s);
  }

  static HWY_INLINE void store_weights(const Vec (&p)[tile_vectors], Weight* to) {
    for (int v = 0; v < tile_vectors; v += 2) {
      const __m512bh both = _mm512_cvtne2ps_pbh(p[v + 1].raw, p[v].raw);
      __builtin_memcpy(to + v * lanes, &both, sizeof(both));
    }
  }
  static void clear_weights(Weight* to) { std::fill(to, to + tile_keys, Weight{0}); }
  static void rescale_weights(Weight* weights, int n, float factor) {
    for (int j = 0; j < n; ++j) weights[j] = round_to_bf16(to_f32(bf16{weights[j]}) * factor);
  }

  template <int R>
  static HWY_INLINE void weights_times_values(const Weight* weights, const std::uint64_t* words, int from, int to,
                                              const Value* v, std::int64_t width, float* o) {
    for (std::int64_t c = 0; c < width; c += tile_keys) {
      Vec s[R][tile_vectors];
      clear(s);
      const int first = from / 2, count = (to + 1) / 2 - first;
      pairs(weights + 2 * first, block_keys, v + (first * width + c) * 2, 2 * width, count, s);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        if (words[r] == 0) continue;
#pragma GCC unroll 8
        for (int x = 0; x < tile_vectors; ++x) {
          float* const at = o + r * width + c + x * lanes;
          store(hn::Add(load(at), s[r][x]), at);
        }
      }
    }
  }
  static void weights_times_visible_values(const Weight*, std::uint64_t, const Value*, std::int64_t, float*) {}

  template <int R>
  static HWY_INLINE void clear(Vec (&s)[R][tile_vectors]) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int x = 0; x < tile_vectors; ++x) s[r][x] = zero();
    }
  }

  // s[r][x] += <pair k of a[r], pair k of b[x]> over `count` pairs.
  template <int R>
  static HWY_INLINE void pairs(const std::uint16_t* a, std::int64_t a_stride, const std::uint16_t* b,
                               std::int64_t b_stride, std::int64_t count, Vec (&s)[R][tile_vectors]) {
    for (std::int64_t k = 0; k < count; ++k) {
      __m512bh column[tile_vectors];
#pragma GCC unroll 8
      for (int x = 0; x < tile_vectors; ++x) __builtin_memcpy(&column[x], b + k * b_stride + 2 * x * lanes, 64);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        int pair;
        __builtin_memcpy(&pair, a + r * a_stride + 2 * k, sizeof(pair));
        const __m512bh row = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 8
        for (int x = 0; x < tile_vectors; ++x) s[r][x].raw = _mm512_dpbf16_ps(s[r][x].raw, row, column[x]);
      }
    }
  }
};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Best of several, in thread CPU time: other processes share this machine.
template <class Body>
double best_seconds(int repeats, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = cpu_seconds();
    body();
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

// 16 independent chains from registers: what the unit can do.
double peak_gflops() {
  constexpr int steps = 2000000, chains = 16;
  volatile float sink = 0;
  const double s = best_seconds(9, [&] {
    __m512 x[chains];
    const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3F803F80), b = (__m512bh)_mm512_set1_epi32(0x3C003C00);
    for (auto& v : x) v = _mm512_setzero_ps();
    for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 16
      for (int c = 0; c < chains; ++c) x[c] = _mm512_dpbf16_ps(x[c], a, b);
    }
    for (const auto& v : x) sink = sink + _mm512_cvtss_f32(v);
  });
  return 64.0 * chains * steps / s / 1e9;
}

struct Call {
  std::int64_t H, n, D;
  std::vector<bf16> q, k, v, o;
  Problem p;
  ForwardOutputs out;

  Call(std::int64_t heads, std::int64_t keys, std::int64_t dim, StatisticsLevel level) : H(heads), n(keys), D(dim) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto* x : {&q, &k, &v}) {
      x->resize(static_cast<std::size_t>(H * n * D));
      for (bf16& e : *x) e = to_bf16(static_cast<double>(normal(random)));
    }
    o.resize(q.size());
    Inputs in;
    in.q = view(static_cast<const bf16*>(q.data()), {1, H, n, D});
    in.k = view(static_cast<const bf16*>(k.data()), {1, H, n, D});
    in.v = view(static_cast<const bf16*>(v.data()), {1, H, n, D});
    Options options;
    options.statistics.level = level;
    Outputs outputs;
    outputs.o = view(o.data(), {1, H, n, D});
    p = make_problem(in, options);
    out = make_outputs(p, in, outputs);
    fill_multipliers(p, in, options);
  }
};

// One group of 4 rows against one packed block of 64 keys, over and over: products, softmax, weights x values.
double tile_gflops(std::int64_t D) {
  Call call(1, 64, D, StatisticsLevel::lse_max);
  std::vector<std::byte> memory(forward_workspace<Bf16Tile>(call.p, 1) + 64);
  auto* base = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  forward<Bf16Tile>(call.p, call.out, *std::make_unique<Pool>(1), base);  // leaves packed keys, values and queries
  Arena arena(base);
  arena.take<std::int64_t>(2);
  Scratch<Bf16Tile> s = lay_out<Bf16Tile>(call.p, arena);
  constexpr int steps = 20000;
  const std::uint64_t words[4] = {~0ULL, ~0ULL, ~0ULL, ~0ULL};
  const GroupBlock g{0, 4, 0, words, nullptr};
  const double seconds = best_seconds(9, [&] {
    for (int i = 0; i < steps; ++i) {
      Bf16Tile::product_tile<4>(s.rows.q, s.keys, 0, D, [&](Vec(&x)[4][4]) {
        softmax_tile<Bf16Tile, StatisticsLevel::lse_max, true, 4>(s.rows, g, 0, x);
      });
      Bf16Tile::weights_times_values<4>(s.rows.weights, words, 0, 64, s.values, s.rows.o_stride, s.rows.o);
    }
  });
  return 4.0 * 4 * 64 * static_cast<double>(D) * steps / seconds / 1e9;
}

double score_gflops(std::int64_t D) {
  std::vector<std::uint16_t> q(static_cast<std::size_t>(4 * D), 0x3F80), k(static_cast<std::size_t>(64 * D), 0x3C00);
  volatile float sink = 0;
  constexpr int steps = 50000;
  const double seconds = best_seconds(9, [&] {
    for (int i = 0; i < steps; ++i) {
      Bf16Tile::product_tile<4>(q.data(), k.data(), 0, D, [&](Vec(&x)[4][4]) {
        Vec all = zero();
        for (auto& row : x) {
          for (const Vec& v : row) all = hn::Max(all, v);
        }
        sink = hn::GetLane(all);
      });
    }
  });
  return 2.0 * 4 * 64 * static_cast<double>(D) * steps / seconds / 1e9;
}

double forward_gflops(std::int64_t D, StatisticsLevel level) {
  Call call(2, 1024, D, level);
  Pool pool(1);
  std::vector<std::byte> memory(forward_workspace<Bf16Tile>(call.p, 1) + 64);
  auto* base = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  const double seconds = best_seconds(9, [&] { forward<Bf16Tile>(call.p, call.out, pool, base); });
  return 4.0 * static_cast<double>(call.H * call.n * call.n * D) / seconds / 1e9;
}

void print(const char* what, double gflops, double peak) {
  std::printf("%-52s %6.1f GFLOP/s  %.3f\n", what, gflops, gflops / peak);
}

}  // namespace

int run() {
  if (!__builtin_cpu_supports("avx512bf16")) {
    std::puts("skipped: this CPU has no AVX512_BF16");
    return 0;
  }
  const double peak = peak_gflops();
  print("vdpbf16ps from registers", peak, peak);
  for (const std::int64_t D : {64, 128}) {
    std::printf("D = %d\n", static_cast<int>(D));
    print("  score tile 4 x 64 alone", score_gflops(D), peak);
    print("  score tile, softmax stage, weights x values", tile_gflops(D), peak);
    print("  whole forward, n 1024, packing included", forward_gflops(D, StatisticsLevel::lse_max), peak);
    print("  whole forward with all statistics", forward_gflops(D, StatisticsLevel::all), peak);
  }
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

int main() { return levelhead::HWY_NAMESPACE::run(); }
