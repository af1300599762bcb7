#include <levelhead/levelhead.hpp>
#include <vector>

// A prompt of 100 tokens, then three steps of one token each. Returns how many keys the last step saw.
inline std::int64_t three_steps() {
  using namespace levelhead;
  const std::int64_t B = 1, Hq = 8, Hk = 2, D = 64;  // four query heads share each key/value head
  const std::vector<float> prompt(Hk * 100 * D, 0.5F), q(Hq * D, 1.0F), k(Hk * D, 0.25F), v(Hk * D, 2.0F);
  std::vector<float> o(Hq * D);
  std::vector<RowState> state(Hq);

  Context context;
  KvCache cache({.B = B, .Hk = Hk, .capacity = 4096, .D = D, .Dv = D, .dtype = DType::f32});
  const TensorView tokens = view(prompt.data(), {B, Hk, 100, D});
  cache.append(tokens, tokens);
  for (int step = 0; step < 3; ++step) {
    const DecodeInputs inputs{
        .q = view(q.data(), {B, Hq, 1, D}), .k = view(k.data(), {B, Hk, 1, D}), .v = view(v.data(), {B, Hk, 1, D})};
    decode(context, cache, inputs, {}, {.o = view(o.data(), {B, Hq, 1, D}), .state = state});
  }
  return state.front().count;
}
