#include "conformance/onnx_adapter.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/element.hpp"
#include "io/safetensors.hpp"

namespace levelhead::conformance {
namespace {

/// A rank-3 input [B, N, H * D] as [B, H, N, D]: heads lie beside each other in a token.
TensorView as_rank4(const Tensor& tensor, std::int64_t heads) {
  if (tensor.shape().size() == 4) return tensor.view();
  const std::int64_t B = tensor.shape()[0], N = tensor.shape()[1], D = tensor.shape()[2] / heads;
  return {tensor.bytes().data(), tensor.dtype(), {B, heads, N, D}, {N * heads * D, D, heads * D, 1}};
}

/// past [B, H, P, D] and then current [B, H, N, D] along the tokens.
Tensor concatenated(const Tensor& past, const TensorView& current) {
  const auto [B, H, N, D] = current.sizes;
  const std::int64_t P = past.shape()[2];
  Tensor whole(past.dtype(), {B, H, P + N, D});
  const auto row_bytes = static_cast<std::size_t>(D) * size_of(past.dtype());
  const auto* from = static_cast<const std::byte*>(current.data);
  std::byte* to = whole.bytes().data();
  for (std::int64_t head = 0; head < B * H; ++head) {
    std::memcpy(to, past.bytes().data() + static_cast<std::size_t>(head * P) * row_bytes, row_bytes * P);
    to += row_bytes * P;
    for (std::int64_t n = 0; n < N; ++n, to += row_bytes) {
      const std::int64_t at = head / H * current.strides[0] + head % H * current.strides[1] + n * current.strides[2];
      std::memcpy(to, from + static_cast<std::size_t>(at) * size_of(past.dtype()), row_bytes);
    }
  }
  return whole;
}

/// A mask [..., M] with M < keys hides the keys it does not reach: [..., keys].
Tensor padded(const Tensor& mask, std::int64_t keys) {
  std::vector<std::int64_t> shape = mask.shape();
  const std::int64_t M = std::exchange(shape.back(), keys);
  Tensor whole(mask.dtype(), shape);
  const std::int64_t rows = M == 0 ? 0 : static_cast<std::int64_t>(mask.bytes().size() / size_of(mask.dtype())) / M;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t j = 0; j < keys; ++j) {
      if (mask.dtype() == DType::boolean) {
        whole.bytes()[row * keys + j] = j < M ? mask.bytes()[row * M + j] : std::byte{0};
      } else {
        const double hidden = -std::numeric_limits<double>::infinity();
        store(whole.bytes().data(), whole.dtype(), row * keys + j,
              j < M ? load(mask.bytes().data(), mask.dtype(), row * M + j) : hidden);
      }
    }
  }
  return whole;
}

/// The element of a view that broadcasts to four axes, from the right.
double broadcast_at(const TensorView& view, const Dims& index) {
  std::int64_t at = 0;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.sizes[axis] != 1) at += index[max_rank - view.rank + axis] * view.strides[axis];
  }
  return load(view.data, view.dtype, at);
}

Window window_of(const OnnxCase& onnx) {
  const OnnxAttributes& a = onnx.attributes;
  // Without a cache positions are counted from the start, also when there are more keys than queries. With past keys
  // the queries stand behind them; with lengths they are the last of each batch item.
  const std::int64_t past = onnx.past_key ? onnx.past_key->shape()[2] : 0;
  const Align align = onnx.nonpad_kv_seqlen ? Align::bottom_right() : Align::at(past);
  const auto bound = [](std::int64_t size) { return size < 0 ? Window::Bound{} : Window::Bound{size}; };
  return Window::sliding(bound(a.left_window_size), a.is_causal ? Window::Bound{0} : bound(a.right_window_size), align);
}

OnnxAttributes attributes_of(const nlohmann::json& json, const std::string& path) {
  OnnxAttributes a;
  for (const auto& [name, value] : json.items()) {
    if (name == "scale") {
      a.scale = value.get<double>();
    } else if (name == "softcap") {
      a.softcap = value.get<double>();
    } else if (name == "is_causal") {
      a.is_causal = value.get<int>() != 0;
    } else if (name == "left_window_size") {
      a.left_window_size = value.get<std::int64_t>();
    } else if (name == "right_window_size") {
      a.right_window_size = value.get<std::int64_t>();
    } else if (name == "q_num_heads") {
      a.q_num_heads = value.get<std::int64_t>();
    } else if (name == "kv_num_heads") {
      a.kv_num_heads = value.get<std::int64_t>();
    } else if (name == "qk_matmul_output_mode") {
      a.score_mode = static_cast<ScoreMode>(value.get<int>());
    } else if (name != "softmax_precision") {  // the library's softmax is never below f32 in any case
      throw FileError(path + ": attribute " + name + " is not known");
    }
  }
  return a;
}

/// Every row of the weights, rounded to q's type. [B, Hq, Nq, Nk]
Tensor all_weights(Context& context, const OnnxCall& call, const std::vector<RowState>& state) {
  const auto [B, Hq, Nq, D] = call.inputs.q.sizes;
  const std::int64_t Nk = call.inputs.k.sizes[2];
  std::vector<RowIndex> rows;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < Hq; ++h)
      for (std::int64_t i = 0; i < Nq; ++i) rows.push_back({b, h, i});
  std::vector<double> p(rows.size() * static_cast<std::size_t>(Nk));
  weights(context, call.inputs, call.options, Saved{state}, rows, p);
  Tensor scores(call.inputs.q.dtype, {B, Hq, Nq, Nk});
  for (std::size_t at = 0; at < p.size(); ++at) {
    store(scores.bytes().data(), scores.dtype(), static_cast<std::int64_t>(at), p[at]);
  }
  return scores;
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.shape());
  std::memcpy(copy.bytes().data(), tensor.bytes().data(), tensor.bytes().size());
  return copy;
}

}  // namespace

OnnxCase load_onnx_case(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  const auto text = [&](std::string_view key) {
    const auto value = file.metadata().find(key);
    if (!value) throw FileError(path + ": metadata " + std::string(key) + " is missing");
    return std::string(*value);
  };
  const auto optional = [&](const char* name) -> std::optional<Tensor> {
    const TensorEntry* entry = file.find(name);
    return entry == nullptr ? std::nullopt : std::optional(file.read(*entry));
  };
  const auto required = [&](const char* name) {
    auto tensor = optional(name);
    if (!tensor) throw FileError(path + ": tensor " + name + " is missing");
    return std::move(*tensor);
  };
  OnnxCase onnx;
  onnx.name = text("name");
  onnx.attributes = attributes_of(nlohmann::json::parse(text("attributes")), path);
  onnx.q = required("in.Q");
  onnx.k = required("in.K");
  onnx.v = required("in.V");
  onnx.attn_mask = optional("in.attn_mask");
  onnx.past_key = optional("in.past_key");
  onnx.past_value = optional("in.past_value");
  onnx.nonpad_kv_seqlen = optional("in.nonpad_kv_seqlen");
  onnx.y = required("out.Y");
  onnx.present_key = optional("out.present_key");
  onnx.present_value = optional("out.present_value");
  onnx.scores = optional("out.qk_matmul_output");
  onnx.rtol = std::stod(text("rtol"));
  onnx.atol = std::stod(text("atol"));
  return onnx;
}

OnnxCall::OnnxCall(const OnnxCase& onnx) {
  const OnnxAttributes& a = onnx.attributes;
  inputs.q = as_rank4(onnx.q, a.q_num_heads);
  inputs.k = as_rank4(onnx.k, a.kv_num_heads);
  inputs.v = as_rank4(onnx.v, a.kv_num_heads);
  if (onnx.past_key) {
    key = concatenated(*onnx.past_key, inputs.k);
    value = concatenated(*onnx.past_value, inputs.v);
    inputs.k = key->view();
    inputs.v = value->view();
  }
  if (onnx.attn_mask) {
    mask = padded(*onnx.attn_mask, inputs.k.sizes[2]);
    (mask->dtype() == DType::boolean ? inputs.mask : inputs.bias) = mask->view();
  }
  if (onnx.nonpad_kv_seqlen) inputs.k_lengths = onnx.nonpad_kv_seqlen->view();
  if (a.scale) options.scale = Constant{*a.scale};
  options.softcap = a.softcap;
  options.window = window_of(onnx);
}

Tensor onnx_scores(const OnnxCall& call, ScoreMode mode) {
  const auto [B, Hq, Nq, D] = call.inputs.q.sizes;
  const std::int64_t Hk = call.inputs.k.sizes[1], Nk = call.inputs.k.sizes[2];
  const Problem problem = make_problem(call.inputs, call.options);  // for the keys of a row by position
  const auto* constant = std::get_if<Constant>(&call.options.scale);
  const double scale = constant != nullptr ? constant->value : 1 / std::sqrt(static_cast<double>(D));
  const double cap = call.options.softcap, hidden = -std::numeric_limits<double>::infinity();
  Tensor scores(call.inputs.q.dtype, {B, Hq, Nq, Nk});
  std::int64_t at = 0;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t h = 0; h < Hq; ++h) {
      for (std::int64_t i = 0; i < Nq; ++i) {
        for (std::int64_t j = 0; j < Nk; ++j, ++at) {
          double x = 0;
          for (std::int64_t c = 0; c < D; ++c) {
            x += broadcast_at(call.inputs.q, {b, h, i, c}) * broadcast_at(call.inputs.k, {b, h / (Hq / Hk), j, c});
          }
          x *= scale;
          if (mode != ScoreMode::scaled && cap > 0) x = cap * std::tanh(x / cap);
          if (mode == ScoreMode::biased) {
            const KeyRange keys = problem.keys(problem.segments[static_cast<std::size_t>(b)], i);
            if (j < keys.begin || j >= keys.end) x = hidden;
            if (call.inputs.mask && broadcast_at(*call.inputs.mask, {b, h, i, j}) == 0) x = hidden;
            if (call.inputs.bias) x += broadcast_at(*call.inputs.bias, {b, h, i, j});
          }
          store(scores.bytes().data(), scores.dtype(), at, x);
        }
      }
    }
  }
  return scores;
}

OnnxResult run_onnx_case(Context& context, const OnnxCase& onnx, std::string_view kernel) {
  OnnxCall call(onnx);
  call.options.kernel = kernel;
  const auto [B, Hq, Nq, D] = call.inputs.q.sizes;
  const std::int64_t Dv = call.inputs.v.sizes[3];
  OnnxResult result;
  std::vector<RowState> state(static_cast<std::size_t>(B * Hq * Nq));
  Outputs outputs;
  outputs.state = state;
  if (onnx.q.shape().size() == 4) {
    result.y = Tensor(onnx.q.dtype(), {B, Hq, Nq, Dv});
    outputs.o = result.y.mutable_view();
  } else {
    result.y = Tensor(onnx.q.dtype(), {B, Nq, Hq * Dv});
    outputs.o =
        MutableTensorView(result.y.bytes().data(), onnx.q.dtype(), {B, Hq, Nq, Dv}, {Nq * Hq * Dv, Dv, Hq * Dv, 1});
  }
  result.info = forward(context, call.inputs, call.options, outputs);
  if (onnx.present_key) result.present_key = copy_of(call.key.value());
  if (onnx.present_value) result.present_value = copy_of(call.value.value());
  if (onnx.scores) {
    const ScoreMode mode = onnx.attributes.score_mode;
    result.scores = mode == ScoreMode::weights ? all_weights(context, call, state) : onnx_scores(call, mode);
  }
  return result;
}

}  // namespace levelhead::conformance
