// The ONNX operator Attention (opsets 23 to 25) in terms of the library: how its attributes and inputs become Inputs
// and Options, and its outputs are made. Where conventions differ, this file translates; the core knows none of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/tensor.hpp"
#include "levelhead/levelhead.hpp"

namespace levelhead::conformance {

/// The fourth output: scores after each step.
enum class ScoreMode : std::uint8_t { scaled = 0, capped = 1, biased = 2, weights = 3 };

struct OnnxAttributes {
  std::optional<double> scale;  ///< absent: 1 / sqrt(D)
  double softcap = 0;
  bool is_causal = false;
  std::int64_t left_window_size = -1, right_window_size = -1;  ///< -1: unbounded
  std::int64_t q_num_heads = 0, kv_num_heads = 0;              ///< of rank-3 inputs
  ScoreMode score_mode = ScoreMode::scaled;
};

/// One stored call: inputs and the outputs expected of it. Absent ones are not part of the call.
struct OnnxCase {
  std::string name;
  OnnxAttributes attributes;
  Tensor q, k, v;                   ///< [B, H, N, D], or [B, N, H * D]
  std::optional<Tensor> attn_mask;  ///< bool or float, right-aligned to [B, Hq, Nq, Nk], Nk perhaps cut short
  std::optional<Tensor> past_key, past_value;  ///< [B, Hk, P, D], [B, Hk, P, Dv]
  std::optional<Tensor> nonpad_kv_seqlen;      ///< [B], i64
  Tensor y;
  std::optional<Tensor> present_key, present_value, scores;
  double rtol = 0, atol = 0;
};

/// Throws FileError, also for an attribute that the adapter does not know.
OnnxCase load_onnx_case(const std::string& path);

/// A case as the library takes it. Keeps the tensors that had to be made; views into the case's own.
struct OnnxCall {
  explicit OnnxCall(const OnnxCase& onnx);

  std::optional<Tensor> key, value;  // past and present in one
  std::optional<Tensor> mask;        // padded to all keys
  Inputs inputs;
  Options options;
};

struct OnnxResult {
  Tensor y;
  std::optional<Tensor> present_key, present_value, scores;
  RunInfo info;
};

/// kernel: by name. Computes the outputs that the case expects.
OnnxResult run_onnx_case(Context& context, const OnnxCase& onnx, std::string_view kernel);

/// Scores of modes 0 to 2 in double, rounded once to q's type: what the operator shows and the library never stores.
/// [B, Hq, Nq, Nk]
Tensor onnx_scores(const OnnxCall& call, ScoreMode mode);

}  // namespace levelhead::conformance
