// Every kernel of the table on this CPU, by type, head dimension, length, window and level of statistics, one thread:
//     build/bench/bench/kernels --benchmark_filter='avx512bf16/bf16/D:128'
// Rates count the visible pairs, 4 D flops each, over thread CPU time: other processes share most machines.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "levelhead/levelhead.hpp"

namespace {

using levelhead::DType;
using levelhead::StatisticsLevel;

struct Case {
  std::string kernel;
  DType type = DType::f32;
  std::int64_t D = 64, n = 1024;
  bool causal = false;
  StatisticsLevel level = StatisticsLevel::lse_max;
};

std::string_view name_of(StatisticsLevel level) {
  return level == StatisticsLevel::lse_max ? "lse_max" : level == StatisticsLevel::entropy ? "entropy" : "all";
}

std::vector<std::byte> normals(std::int64_t n, DType type, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * levelhead::size_of(type));
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = normal(random);
    if (type == DType::f32) reinterpret_cast<float*>(bytes.data())[i] = x;
    if (type == DType::bf16) reinterpret_cast<levelhead::bf16*>(bytes.data())[i] = levelhead::to_bf16(double{x});
    if (type == DType::f16) reinterpret_cast<levelhead::f16*>(bytes.data())[i] = levelhead::to_f16(double{x});
  }
  return bytes;
}

void run(benchmark::State& state, const Case& c) {
  const std::int64_t heads = c.n > 1024 ? 2 : 8;
  const std::int64_t size = heads * c.n * c.D;
  const auto q = normals(size, c.type, 1), k = normals(size, c.type, 2), v = normals(size, c.type, 3);
  std::vector<std::byte> o(q.size());
  std::vector<levelhead::RowState> rows(static_cast<std::size_t>(heads * c.n));
  levelhead::Context context(1);
  const auto view = [&](const void* data) { return levelhead::TensorView(data, c.type, {1, heads, c.n, c.D}); };
  const levelhead::Inputs in{view(q.data()), view(k.data()), view(v.data())};
  levelhead::Options options;
  options.kernel = c.kernel;
  options.statistics.level = c.level;
  if (c.causal) options.window = levelhead::Window::causal();
  levelhead::Outputs out;
  out.o = levelhead::MutableTensorView(o.data(), c.type, {1, heads, c.n, c.D});
  if (c.level != StatisticsLevel::lse_max) out.state = rows;
  double flops = 0;
  for (auto _ : state) flops += forward(context, in, options, out).flops;
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}

double least(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

void register_case(const Case& c) {
  const std::string name = c.kernel + '/' + std::string(levelhead::name_of(c.type)) + "/D:" + std::to_string(c.D) +
                           "/n:" + std::to_string(c.n) + (c.causal ? "/causal/" : "/full/") +
                           std::string(name_of(c.level));
  benchmark::RegisterBenchmark(name.c_str(), run, c)->ComputeStatistics("min", least)->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const levelhead::KernelInfo& kernel : levelhead::kernels()) {
    if (!kernel.available || kernel.name == "reference") continue;
    for (const DType type : kernel.types) {
      for (const std::int64_t D : {64, 128}) {
        for (const std::int64_t n : {16, 64, 256, 1024, 4096}) {
          for (const bool causal : {false, true}) {
            for (const auto level : {StatisticsLevel::lse_max, StatisticsLevel::entropy, StatisticsLevel::all})
              register_case({kernel.name, type, D, n, causal, level});
          }
        }
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
