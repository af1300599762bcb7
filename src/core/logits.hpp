// The logit of one pair, in double, from raw = <q_i, k_j>: what the reference and `weights` share.
#pragma once

#include <cmath>
#include <limits>

#include "core/element.hpp"
#include "core/problem.hpp"

namespace levelhead {

struct Logit {
  double scaled = 0;  // multiplier * <q_i, k_j>
  double capped = 0;  // softcap * tanh(scaled / softcap), or scaled
  double value = 0;   // capped + bias + alibi
};

/// Mask and bias let query i see key j; position is Problem::keys' matter.
inline bool passes(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (p.mask && load(p.mask, b, h, i, j) == 0) return false;
  return !p.bias || load(p.bias, b, h, i, j) != -std::numeric_limits<double>::infinity();
}

inline Logit logit_of(const Problem& p, const Segment& s, std::int64_t h, std::int64_t i, std::int64_t j, double raw) {
  Logit x;
  x.scaled = p.multiplier(s.b, h, i) * raw;
  x.capped = p.softcap > 0 ? p.softcap * std::tanh(x.scaled / p.softcap) : x.scaled;
  x.value = x.capped;
  if (p.bias) x.value += load(p.bias, s.b, h, i, j);
  if (!p.slopes.empty()) x.value += p.slopes[static_cast<std::size_t>(h)] * static_cast<double>(p.distance(s, i, j));
  return x;
}

inline Logit logit(const Problem& p, const Segment& s, std::int64_t h, std::int64_t i, std::int64_t j) {
  double raw = 0;
  for (std::int64_t c = 0; c < p.D; ++c) raw += load(p.q, s.b, h, i, c) * load(p.k, s.b, h / p.group(), j, c);
  return logit_of(p, s, h, i, j, raw);
}

}  // namespace levelhead
