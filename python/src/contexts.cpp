#include "contexts.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace levelhead::python {
namespace {

struct Kept {
  int threads = 0;
  std::unique_ptr<Context> context;
};

// Two, so that a caller who compares two numbers of threads starts none anew; more would keep idle threads.
thread_local std::array<Kept, 2> kept;

}  // namespace

Context& context_of(int threads) {
  const auto fits = [threads](const Kept& one) { return one.context != nullptr && one.threads == threads; };
  const auto found = std::find_if(kept.begin(), kept.end(), fits);
  if (found == kept.end()) kept.back() = {threads, std::make_unique<Context>(threads)};
  std::rotate(kept.begin(), found == kept.end() ? kept.end() - 1 : found, kept.end());
  return *kept.front().context;
}

}  // namespace levelhead::python
