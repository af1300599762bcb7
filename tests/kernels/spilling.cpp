// A loop of multiply-adds with more sums than x86-64-v2 has registers: spills.py has to see it.
namespace levelhead::test {

using Lanes [[gnu::vector_size(16)]] = float;

void spilling(const float* a, const Lanes* b, long n, Lanes* to) {
  Lanes sums[24] = {};
  for (long j = 0; j < n; ++j) {
#pragma GCC unroll 24
    for (int x = 0; x < 24; ++x) sums[x] += a[j] * b[j * 24 + x];
  }
#pragma GCC unroll 24
  for (int x = 0; x < 24; ++x) to[x] = sums[x];
}

}  // namespace levelhead::test
