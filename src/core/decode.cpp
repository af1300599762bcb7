// A step of decoding: the new tokens join the cache, then forward runs over it. All checks come before the first write,
// and the cache counts the tokens once forward is through.
#include "levelhead/decode.hpp"

#include "core/check.hpp"
#include "core/forward.hpp"
#include "core/kv_cache.hpp"

namespace levelhead {
namespace {

// The first `tokens` tokens of each batch item.
TensorView cut(TensorView view, std::int64_t tokens) {
  view.sizes[2] = tokens;
  return view;
}

// New tokens stand at the end and are causal unless a right bound says otherwise.
Window at_the_end(const Window& window) {
  const Align::Rule rule = window.align().rule();
  if (rule != Align::Rule::unnamed && rule != Align::Rule::bottom_right)
    fail("decode places the new tokens at the end of the cache: the alignment must be bottom_right or unnamed");
  return Window::sliding(window.left(), window.right().value_or(0), Align::bottom_right());
}

void check_new_tokens(const TensorView& q) {
  check_view({"q", q});
  if (q.rank != 4) fail(text({"q", q}), " has rank ", q.rank, " but must have 4: [B, Hq, new tokens, D]");
  if (q.sizes[2] < 1 || q.sizes[2] > decode_tokens)
    fail(text({"q", q}), " has ", q.sizes[2], " new tokens but decode takes 1 to ", decode_tokens,
         ": append longer runs and call forward");
}

void check_apart_from_cache(const KvCache& cache, const DecodeInputs& inputs, const Outputs& outputs) {
  Tensors written;
  if (outputs.o) written.push_back({"o", *outputs.o});
  if (outputs.lse) written.push_back({"lse", *outputs.lse});
  Tensors read{{"k of the cache", cache.k()}, {"v of the cache", cache.v()}, {"k", inputs.k}, {"v", inputs.v}};
  if (inputs.counts) read.push_back({"counts", *inputs.counts});
  check_apart(read, written);
}

}  // namespace

RunInfo decode(Context& context, KvCache& cache, const DecodeInputs& in, const Options& options,
               const Outputs& outputs) {
  check_new_tokens(in.q);
  if (in.k.rank == 4 && in.k.sizes[2] != in.q.sizes[2])
    fail("q has ", in.q.sizes[2], " new tokens but k has ", in.k.sizes[2], ": ", text({"q", in.q}), " and ",
         text({"k", in.k}), " must agree on axis 2");
  CacheWriter writer(cache, in.k, in.v, in.counts);
  check_apart_from_cache(cache, in, outputs);
  std::int64_t longest_item = 0;
  for (const std::int64_t length : writer.lengths()) longest_item = std::max(longest_item, length);

  Inputs inputs{in.q, cut(cache.k(), longest_item), cut(cache.v(), longest_item)};
  inputs.mask = in.mask, inputs.bias = in.bias;
  inputs.alibi_slopes = in.alibi_slopes, inputs.sinks = in.sinks;
  inputs.q_lengths = in.counts;
  inputs.k_lengths = view(writer.lengths().data(), {static_cast<std::int64_t>(writer.lengths().size())});
  Options placed = options;
  placed.window = at_the_end(options.window);
  CheckedForward call = check_forward(context, inputs, placed, outputs);

  writer.write();
  RunInfo info = run_forward(context, call, inputs, placed);
  writer.commit();
  return info;
}

}  // namespace levelhead
