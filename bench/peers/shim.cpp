// A C entry to forward for comparisons from Python, until there are bindings.
#include <cstdint>
#include <cstdio>

#include "levelhead/levelhead.hpp"

namespace {

levelhead::DType type_of(int code) {
  return code == 0 ? levelhead::DType::f32 : code == 1 ? levelhead::DType::bf16 : levelhead::DType::f16;
}

}  // namespace

extern "C" {

void* shim_context(int threads) { return new levelhead::Context(threads); }

/// q, o [1, Hq, n, D]; k, v [1, Hk, n, D], dense. level 0: o alone, 1: + entropy, 2: + all statistics.
/// type 0: f32, 1: bf16, 2: f16. Returns 0, or 1 after printing why not.
int shim_forward(void* context, int type, std::int64_t Hq, std::int64_t Hk, std::int64_t n, std::int64_t D, int causal,
                 int level, const char* kernel, const void* q, const void* k, const void* v, void* o,
                 levelhead::RowState* state) {
  using namespace levelhead;
  try {
    const DType dtype = type_of(type);
    Inputs in;
    in.q = TensorView(q, dtype, {1, Hq, n, D});
    in.k = TensorView(k, dtype, {1, Hk, n, D});
    in.v = TensorView(v, dtype, {1, Hk, n, D});
    Options options;
    options.kernel = kernel;
    options.statistics.level = static_cast<StatisticsLevel>(level);
    if (causal != 0) options.window = Window::causal();
    Outputs out;
    out.o = MutableTensorView(o, dtype, {1, Hq, n, D});
    if (state != nullptr) out.state = {state, static_cast<std::size_t>(Hq * n)};
    forward(*static_cast<Context*>(context), in, options, out);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

/// A cache over k, v [1, Hk, n, D], dense, all of whose tokens but the last are there.
void* shim_cache(int type, std::int64_t Hk, std::int64_t n, std::int64_t D, void* k, void* v) {
  using namespace levelhead;
  const std::int64_t length = n - 1;
  return new KvCache(MutableTensorView(k, type_of(type), {1, Hk, n, D}),
                     MutableTensorView(v, type_of(type), {1, Hk, n, D}), {&length, 1});
}
void shim_free_cache(void* cache) { delete static_cast<levelhead::KvCache*>(cache); }

/// One step: the last token (k, v [1, Hk, 1, D]) joins and q, o [1, Hq, 1, D] attends to all. Returns 0, or 1 after
/// printing why not.
int shim_decode(void* context, void* cache, int type, std::int64_t Hq, std::int64_t Hk, std::int64_t D,
                const char* kernel, const void* q, const void* k, const void* v, void* o) {
  using namespace levelhead;
  try {
    auto& tokens = *static_cast<KvCache*>(cache);
    tokens.truncate(0, tokens.capacity() - 1);
    const DType dtype = type_of(type);
    const DecodeInputs in{TensorView(q, dtype, {1, Hq, 1, D}), TensorView(k, dtype, {1, Hk, 1, D}),
                          TensorView(v, dtype, {1, Hk, 1, D})};
    Options options;
    options.kernel = kernel;
    Outputs out;
    out.o = MutableTensorView(o, dtype, {1, Hq, 1, D});
    decode(*static_cast<Context*>(context), tokens, in, options, out);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
}
