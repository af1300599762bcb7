// Exact scaled dot-product attention with its statistics. Definitions: docs/numbers.md and docs/edges.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "levelhead/scale.hpp"
#include "levelhead/stats.hpp"
#include "levelhead/tensor.hpp"

namespace levelhead {

/// Wrong use: a sentence with the names and numbers that break a rule. Thrown before anything is allocated.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// How query positions line up with key positions when their numbers differ: key j is at the query's own
/// position when j = i + offset. There is no default: a window over unequal numbers must name one.
class Align {
 public:
  enum class Rule : std::uint8_t { unnamed, top_left, bottom_right, offset };

  constexpr Align() = default;                                            ///< unnamed: right only while every n_q = n_k
  static constexpr Align top_left() { return Align(Rule::top_left, 0); }  ///< offset 0
  static constexpr Align bottom_right() { return Align(Rule::bottom_right, 0); }  ///< offset n_k - n_q
  static constexpr Align at(std::int64_t offset) { return Align(Rule::offset, offset); }

  constexpr Rule rule() const { return rule_; }
  constexpr std::int64_t offset() const { return offset_; }

 private:
  constexpr Align(Rule rule, std::int64_t offset) : rule_(rule), offset_(offset) {}
  Rule rule_ = Rule::unnamed;
  std::int64_t offset_ = 0;
};

/// The keys a query sees by position: -left <= j - (i + offset) <= right, counted beside its own key.
/// An absent bound is unbounded. Causal is right = 0, so a causal window with a right bound can't be said.
class Window {
 public:
  using Bound = std::optional<std::int64_t>;

  static constexpr Window all(Align align = {}) { return Window({}, {}, align); }
  static constexpr Window causal(Align align = {}) { return Window({}, 0, align); }
  static constexpr Window sliding(Bound left, Bound right, Align align = {}) { return Window(left, right, align); }

  constexpr Bound left() const { return left_; }
  constexpr Bound right() const { return right_; }
  constexpr Align align() const { return align_; }

 private:
  constexpr Window(Bound left, Bound right, Align align) : left_(left), right_(right), align_(align) {}
  Bound left_, right_;
  Align align_;
};

/// Everything that is read. Shapes as given; floating tensors besides q, k, v are f32 (f64 too beside f64 q).
struct Inputs {
  TensorView q;                              ///< [B, Hq, Nq, D], f64 f32 bf16 f16; one type for q, k, v
  TensorView k;                              ///< [B, Hk, Nk, D], Hq a multiple of Hk
  TensorView v;                              ///< [B, Hk, Nk, Dv]
  std::optional<TensorView> mask{};          ///< broadcastable to [B, Hq, Nq, Nk], bool: true may attend
  std::optional<TensorView> bias{};          ///< broadcastable to [B, Hq, Nq, Nk], f32 or q's type; -inf hides
  std::optional<TensorView> alibi_slopes{};  ///< [Hq]: adds slope * (j - i - offset)
  std::optional<TensorView> sinks{};         ///< [Hq]: one more logit in the denominator, with no value
  std::optional<TensorView> q_lengths{};     ///< [B], i64 or i32: valid tokens at the start of each batch item
  std::optional<TensorView> k_lengths{};     ///< [B], i64 or i32
  std::optional<TensorView> q_offsets{};     ///< [documents + 1], i64 or i32: packed documents, B = 1
  std::optional<TensorView> k_offsets{};     ///< [documents + 1], i64 or i32
};

struct Options {
  Scale scale = InvSqrtDim{};
  Window window = Window::all();
  double softcap = 0;  ///< >= 0; 0 is off. Logits become softcap * tanh(scaled / softcap)
  Statistics statistics{};
  std::string_view kernel{};  ///< a name from kernels(); empty: chosen, and RunInfo says why
  /// > 0: forward cuts the keys of a row into that many ranges at most, each a multiple of 128 keys, and merges them in
  /// order; only kernels named -decode or -split do. 0: they cut as they see fit. Results agree within the stated
  /// error.
  std::int64_t splits = 0;
};

/// Everything forward writes. An absent output is not computed.
struct Outputs {
  std::optional<MutableTensorView> o{};    ///< [B, Hq, Nq, Dv], q's type; or f32 beside 16-bit q, for later merging
  std::optional<MutableTensorView> lse{};  ///< [B, Hq, Nq], f32 (f64 beside f64 q)
  std::span<RowState> state{};             ///< [B, Hq, Nq] dense, or empty
};

/// What backward needs of the forward pass.
struct Saved {
  std::span<const RowState> state;  ///< [B, Hq, Nq] dense, as forward wrote it
};

/// Incoming gradients; at least one. Statistics other than lse and entropy carry none, so none can be given.
struct OutputGradients {
  std::optional<TensorView> dout{};      ///< [B, Hq, Nq, Dv], q's type
  std::optional<TensorView> dlse{};      ///< [B, Hq, Nq], f32 (f64 too beside f64 q)
  std::optional<TensorView> dentropy{};  ///< [B, Hq, Nq], f32 (f64 too beside f64 q)
};

/// Everything backward writes. An absent one is not computed; one whose input is absent is an error.
struct Gradients {
  std::optional<MutableTensorView> dq{}, dk{}, dv{};  ///< shape and type of q, k, v
  std::optional<MutableTensorView> dbias{};           ///< shape of bias, f32 (f64 beside f64 q)
  std::optional<MutableTensorView> dsinks{};          ///< [Hq], f32 (f64 beside f64 q), as all below
  std::optional<MutableTensorView> dalibi_slopes{};   ///< [Hq]
  std::optional<MutableTensorView> dscale{};          ///< shape of PerHead or PerRow values
  std::optional<MutableTensorView> dssmax_s{};        ///< [Hq]
  std::optional<MutableTensorView> dqk_gain{};        ///< [Hq]
};

/// How a call was computed.
struct RunInfo {
  std::string kernel;               ///< the kernel that ran
  std::string reason;               ///< why this one
  int threads = 1;                  ///< that may take part
  double flops = 0;                 ///< of the products over visible-by-position pairs: 2 (D + Dv) a pair forward
  std::size_t workspace_bytes = 0;  ///< allocated beside the outputs
};

/// Owns threads and scratch memory. Use one per calling thread; it is neither copied nor shared.
class Context {
 public:
  /// threads: how many may take part, the caller among them; 0 is one per core this process may use.
  /// Throws Error if negative.
  explicit Context(int threads = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int threads() const noexcept;

  struct Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// o and, as asked, lse and the state of each row. Throws Error on wrong use.
RunInfo forward(Context& context, const Inputs& inputs, const Options& options, const Outputs& outputs);

/// The gradients of o, lse and entropy with respect to every input. Throws Error on wrong use.
RunInfo backward(Context& context, const Inputs& inputs, const Options& options, const Saved& saved,
                 const OutputGradients& output_gradients, const Gradients& gradients);

/// A row of attention weights to rebuild: batch item, query head, query.
struct RowIndex {
  std::int64_t b = 0, h = 0, i = 0;
};

/// Chosen rows of the weights p, rebuilt from m and l; never all of them at once.
/// out [rows.size(), Nk] dense; hidden keys get 0. Throws Error on wrong use.
void weights(Context& context, const Inputs& inputs, const Options& options, const Saved& saved,
             std::span<const RowIndex> rows, std::span<double> out);

/// One shard of the keys: what forward wrote for it without sinks.
struct Part {
  TensorView o;                     ///< [B, Hq, Nq, Dv], f32 or f64 (16-bit types lose the digits merging needs)
  std::span<const RowState> state;  ///< [B, Hq, Nq] dense
};

/// Combines disjoint key shards into the whole, exactly up to rounding; sinks [Hq] join here, once.
/// Window offsets and the state's first_key count keys inside their shard: shift them by the shard's start.
/// Throws Error on wrong use.
void merge(std::span<const Part> parts, const std::optional<TensorView>& sinks, const Outputs& outputs);

struct KernelInfo {
  std::string name;
  bool available = false;
  std::vector<DType> types;
  std::string why;  ///< what it needs, or what this CPU lacks
};

/// All kernels in order of preference.
std::vector<KernelInfo> kernels();

/// The CPU's own name and the vector extensions that matter here.
std::string cpu_name();

}  // namespace levelhead
