// What the seam between engine and driver costs: the avx512bf16 engine's product tile alone and the whole forward, as
// shares of the peak of vdpbf16ps measured in the same run. Build with -DLEVELHEAD_BUILD_BENCH=ON on x86; run on a CPU
// that has AVX512_BF16. Numbers: docs/decisions/0002.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "core/problem.hpp"
#include "core/scale.hpp"
#include "kernels/driver/forward-inl.h"

#define LEVELHEAD_AVX512_BF16 1
#include "kernels/engines/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

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
  std::vector<RowState> state;

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
    if (level != StatisticsLevel::lse_max) {
      state.resize(static_cast<std::size_t>(H * n));
      outputs.state = state;
    }
    p = make_problem(in, options);
    out = make_outputs(p, in, outputs);
    fill_multipliers(p, in, options);
  }
};

double score_gflops(std::int64_t D) {
  std::vector<std::uint16_t> q(static_cast<std::size_t>(4 * D), 0x3F80), k(static_cast<std::size_t>(64 * D), 0x3C00);
  volatile float sink = 0;
  constexpr int steps = 50000;
  const double seconds = best_seconds(9, [&] {
    for (int i = 0; i < steps; ++i) {
      Bf16Pairs::product_tile<4, 4>(q.data(), k.data(), 0, D, [&](int, int, Vec(&x)[4][4]) HWY_ATTR LEVELHEAD_INLINE {
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
  std::vector<std::byte> memory(forward_workspace<Bf16Pairs>(call.p, 1) + 64);
  auto* base = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  const double seconds = best_seconds(9, [&] { forward<Bf16Pairs>(call.p, call.out, pool, base); });
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
    print("  whole forward, n 1024, packing included", forward_gflops(D, StatisticsLevel::lse_max), peak);
    print("  whole forward with all statistics", forward_gflops(D, StatisticsLevel::all), peak);
  }
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

int main() { return levelhead::HWY_NAMESPACE::run(); }
