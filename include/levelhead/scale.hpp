// Scale policies: what multiplies <q_i, k_j>. Each becomes one number per query row before a kernel starts,
// computed in double and rounded once (to f32; f64 inputs keep f64). Parameters are finite, and so must the number be
// that they give; D counts as 1 where it is 0, as every product is 0 there.
#pragma once

#include <optional>
#include <variant>

#include "levelhead/tensor.hpp"

namespace levelhead {

/// 1 / sqrt(D), D the true head dimension, never a padded one; 1 when D = 0. Vaswani et al. 2017.
struct InvSqrtDim {};

/// The number itself: 0 and negative numbers are legal and mean what they say. T5 uses Constant{1}.
struct Constant {
  double value = 1;
};

/// sqrt(base) / D: equals 1 / sqrt(D) at D = base. base > 0. muP, Yang et al. 2022.
struct InvDim {
  double base = 1;
};

/// One number per query head. values [Hq], f32 (or f64 with f64 inputs).
struct PerHead {
  TensorView values;
};

/// One number per query row. values [B, Hq, Nq], f32 (or f64 with f64 inputs).
struct PerRow {
  TensorView values;
};

/// ln(n) / ln(n0) / sqrt(D), n the visible keys of the row; a row with one key (or none) gets 0. n0 > 1.
/// Chiang and Cholak 2022.
struct LogKeys {
  double n0 = 512;
};

/// s[h] * ln(n) / sqrt(D). s [Hq], f32 (or f64 with f64 inputs). Scalable softmax, Nakanishi 2025.
struct Ssmax {
  TensorView s;
};

/// (0.1 * mscale * ln(factor) + 1)^2 / sqrt(D). factor > 0. YaRN, Peng et al. 2023.
struct Yarn {
  double factor = 1;
  double mscale = 1;
};

/// Normalises q and k over D before the core (eps 1e-6, a zero vector stays zero, rounded once to their
/// type), then multiplies by a gain per head: gain[h] with l2 (sqrt(D) if absent), gain[h] / sqrt(D) with rms
/// (1 if absent). It stands among the policies so that no scale can be given beside it.
/// gain [Hq], f32 (or f64 with f64 inputs). Henry et al. 2020 (l2), Dehghani et al. 2023 (rms).
struct QkNorm {
  enum class Kind : std::uint8_t { l2, rms };
  Kind kind = Kind::l2;
  std::optional<TensorView> gain;
};

using Scale = std::variant<InvSqrtDim, Constant, InvDim, PerHead, PerRow, LogKeys, Ssmax, Yarn, QkNorm>;

}  // namespace levelhead
