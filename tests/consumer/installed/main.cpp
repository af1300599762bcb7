#include <cstdio>
#include <levelhead/levelhead.hpp>
#include <vector>

int main() {
  using namespace levelhead;
  const std::int64_t B = 1, Hq = 4, Hk = 2, N = 8, D = 16;  // four query heads share two key/value heads
  std::vector<float> q(B * Hq * N * D, 1.0F), k(B * Hk * N * D, 0.5F), v(B * Hk * N * D, 2.0F), o(q.size());
  std::vector<RowState> state(B * Hq * N);

  Context context;  // owns the threads; one per calling thread
  Options options;  // scale 1/sqrt(D) unless said otherwise
  options.window = Window::causal();
  options.statistics.level = StatisticsLevel::all;
  const Inputs inputs{
      .q = view(q.data(), {B, Hq, N, D}), .k = view(k.data(), {B, Hk, N, D}), .v = view(v.data(), {B, Hk, N, D})};
  forward(context, inputs, options, {.o = view(o.data(), {B, Hq, N, D}), .state = state});

  const RowStatistics last = row_statistics(state.back(), {});  // the last query: it sees all 8 keys
  std::printf("o %.1f, keys %d, entropy %.4f, effective keys %.1f\n", o.back(), static_cast<int>(last.count),
              last.entropy, last.effective_keys);
}
