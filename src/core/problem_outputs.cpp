// The writable side of a call: shapes and types, and that nothing written is read or written by another name.
#include <vector>

#include "core/check.hpp"
#include "core/problem.hpp"

namespace levelhead {
namespace {

TensorView bytes_of(const void* data, std::size_t bytes) {
  return TensorView(data, DType::u8, {static_cast<std::int64_t>(bytes)});
}

void add(Tensors& tensors, std::string_view name, const std::optional<TensorView>& view) {
  if (view) tensors.push_back({name, *view});
}
void add(Tensors& tensors, std::string_view name, const std::optional<MutableTensorView>& view) {
  if (view) tensors.push_back({name, *view});
}

Tensors tensors_of(const Problem& p, const Inputs& in) {
  Tensors tensors{{"q", in.q}, {"k", in.k}, {"v", in.v}};
  add(tensors, "mask", in.mask), add(tensors, "bias", in.bias);
  add(tensors, "alibi_slopes", in.alibi_slopes), add(tensors, "sinks", in.sinks);
  add(tensors, "q_lengths", in.q_lengths), add(tensors, "k_lengths", in.k_lengths);
  add(tensors, "q_offsets", in.q_offsets), add(tensors, "k_offsets", in.k_offsets);
  if (p.scale_tensor) tensors.push_back(*p.scale_tensor);
  return tensors;
}

Tensors tensors_of(const Outputs& out) {
  Tensors tensors;
  add(tensors, "o", out.o), add(tensors, "lse", out.lse);
  if (!out.state.empty()) tensors.push_back({"state", bytes_of(out.state.data(), out.state.size_bytes())});
  return tensors;
}

Tensors tensors_of(const Gradients& g) {
  Tensors tensors;
  add(tensors, "dq", g.dq), add(tensors, "dk", g.dk), add(tensors, "dv", g.dv);
  add(tensors, "dbias", g.dbias), add(tensors, "dsinks", g.dsinks), add(tensors, "dalibi_slopes", g.dalibi_slopes);
  add(tensors, "dscale", g.dscale), add(tensors, "dssmax_s", g.dssmax_s), add(tensors, "dqk_gain", g.dqk_gain);
  return tensors;
}

void check_state(const Problem& p, const void* data, std::size_t size, std::string_view rule) {
  const std::int64_t rows = p.B * p.Hq * p.Nq;
  if (static_cast<std::int64_t>(size) != rows)
    fail("state holds ", size, " rows but ", rule, " B * Hq * Nq = ", p.B, " * ", p.Hq, " * ", p.Nq, " = ", rows);
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(RowState) != 0)
    fail("state starts at an address that is no multiple of ", alignof(RowState));
}

DType number_type(const Problem& p) { return p.dtype == DType::f64 ? DType::f64 : DType::f32; }
std::string_view number_rule(const Problem& p) {
  return p.dtype == DType::f64 ? "as everything measured beside f64 q"
                               : "as everything measured beside f32 or 16-bit q";
}

// o takes the type of q, or f32 beside 16-bit q.
void check_o(const Named& o, const Problem& p) {
  check_shape(o, {{"B", p.B}, {"Hq", p.Hq}, {"Nq", p.Nq}, {"Dv", p.Dv}});
  const bool half = p.dtype == DType::bf16 || p.dtype == DType::f16;
  if (half && o.view.dtype == DType::f32) return;
  check_type(o, p.dtype, half ? "the type of q, or f32" : "the type of q");
}

void check_rows(const Named& tensor, const Problem& p) {
  check_shape(tensor, {{"B", p.B}, {"Hq", p.Hq}, {"Nq", p.Nq}});
}

void check_incoming(const Problem& p, const OutputGradients& g) {
  if (!g.dout && !g.dlse && !g.dentropy) fail("backward needs at least one of dout, dlse and dentropy");
  if (g.dout) {
    const Named dout{"dout", *g.dout};
    check_shape(dout, {{"B", p.B}, {"Hq", p.Hq}, {"Nq", p.Nq}, {"Dv", p.Dv}});
    check_type(dout, p.dtype, "the type of q");
  }
  if (g.dlse) check_rows({"dlse", *g.dlse}, p), check_number_type({"dlse", *g.dlse}, p.dtype);
  if (g.dentropy) check_rows({"dentropy", *g.dentropy}, p), check_number_type({"dentropy", *g.dentropy}, p.dtype);
}

// The gradient of an input: shape and type of that input.
void check_like(const Named& gradient, const Named& input) {
  check_view(gradient);
  const TensorView &a = gradient.view, &b = input.view;
  bool same = a.rank == b.rank;
  for (int axis = 0; same && axis < a.rank; ++axis) same = a.sizes[axis] == b.sizes[axis];
  if (!same) fail(text(gradient), " must have the shape of ", text(input));
}

void check_gradient(std::string_view name, const std::optional<MutableTensorView>& gradient, std::string_view of,
                    const std::optional<TensorView>& input, const Problem& p) {
  if (!gradient) return;
  const Named named{name, *gradient};
  if (!input) fail(text(named), " is asked for but there is no ", of, " it could be the gradient of");
  check_like(named, {of, *input});
  check_type(named, number_type(p), number_rule(p));
}

void check_policy_gradients(const Problem& p, const Options& options, const Gradients& g) {
  const auto* head = std::get_if<PerHead>(&options.scale);
  const auto* row = std::get_if<PerRow>(&options.scale);
  const auto* ssmax = std::get_if<Ssmax>(&options.scale);
  const auto* norm = std::get_if<QkNorm>(&options.scale);
  std::optional<TensorView> scale, s, gain;
  if (head != nullptr) scale = head->values;
  if (row != nullptr) scale = row->values;
  if (ssmax != nullptr) s = ssmax->s;
  if (norm != nullptr) gain = norm->gain;
  check_gradient("dscale", g.dscale, "per-head or per-row scale", scale, p);
  check_gradient("dssmax_s", g.dssmax_s, "ssmax_s", s, p);
  check_gradient("dqk_gain", g.dqk_gain, "qk_gain", gain, p);
}

std::int64_t size_or_1(const MutableTensorView& view, int axis) { return axis < view.rank ? view.sizes[axis] : 1; }

void check_outgoing(const Problem& p, const Inputs& in, const Options& options, const Gradients& g) {
  const auto check_qkv = [&p](std::string_view name, const std::optional<MutableTensorView>& gradient,
                              const Named& input) {
    if (!gradient) return;
    check_like({name, *gradient}, input);
    check_type({name, *gradient}, p.dtype, "the type of " + std::string(input.name));
  };
  check_qkv("dq", g.dq, {"q", in.q}), check_qkv("dk", g.dk, {"k", in.k}), check_qkv("dv", g.dv, {"v", in.v});
  check_gradient("dbias", g.dbias, "bias", in.bias, p);
  check_gradient("dsinks", g.dsinks, "sinks", in.sinks, p);
  check_gradient("dalibi_slopes", g.dalibi_slopes, "alibi_slopes", in.alibi_slopes, p);
  check_policy_gradients(p, options, g);
  if (g.dbias &&
      !fits({size_or_1(*g.dbias, 0), size_or_1(*g.dbias, 1), size_or_1(*g.dbias, 2), size_or_1(*g.dbias, 3), 8}))
    fail(text({"dbias", *g.dbias}), " overflows: its sums of 8 bytes exceed 64 bits");
}

// A checked [B, Hq, Nq] tensor, addressed by its first three axes.
template <class Pointer, class Byte>
Strided<Pointer> by_rows(const BasicTensorView<Byte>& view) {
  return {view.data, view.dtype, {view.strides[0], view.strides[1], view.strides[2], 0}};
}

}  // namespace

ForwardOutputs make_outputs(const Problem& p, const Inputs& inputs, const Outputs& outputs) {
  if (outputs.o) check_o({"o", *outputs.o}, p);
  if (outputs.lse) {
    check_rows({"lse", *outputs.lse}, p);
    check_type({"lse", *outputs.lse}, number_type(p), number_rule(p));
  }
  if (!outputs.state.empty()) check_state(p, outputs.state.data(), outputs.state.size(), "must be empty or hold");
  check_apart(tensors_of(p, inputs), tensors_of(outputs));

  ForwardOutputs out;
  if (outputs.o) out.o = strided<void*>(*outputs.o);
  if (outputs.lse) out.lse = by_rows<void*>(*outputs.lse);
  out.state = outputs.state.empty() ? nullptr : outputs.state.data();
  return out;
}

BackwardTensors make_backward(const Problem& p, const Inputs& inputs, const Options& options, const Saved& saved,
                              const OutputGradients& output_gradients, const Gradients& gradients) {
  check_incoming(p, output_gradients);
  check_state(p, saved.state.data(), saved.state.size(), "backward needs");
  check_outgoing(p, inputs, options, gradients);
  Tensors read = tensors_of(p, inputs);
  add(read, "dout", output_gradients.dout), add(read, "dlse", output_gradients.dlse);
  add(read, "dentropy", output_gradients.dentropy);
  read.push_back({"state", bytes_of(saved.state.data(), saved.state.size_bytes())});
  check_apart(read, tensors_of(gradients));

  BackwardTensors t;
  t.state = saved.state.data();
  if (output_gradients.dout) t.dout = readable(*output_gradients.dout);
  if (output_gradients.dlse) t.dlse = by_rows<const void*>(*output_gradients.dlse);
  if (output_gradients.dentropy) t.dentropy = by_rows<const void*>(*output_gradients.dentropy);
  if (gradients.dq) t.dq = strided<void*>(*gradients.dq);
  if (gradients.dk) t.dk = strided<void*>(*gradients.dk);
  if (gradients.dv) t.dv = strided<void*>(*gradients.dv);
  return t;
}

}  // namespace levelhead
