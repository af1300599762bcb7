// Given logits through the library's own forward: q and k are one zero, so that logit = 0 + bias, exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/experiment.hpp"
#include "lab/moments.hpp"

namespace levelhead::lab {

/// Weights of one row of logits, in f64.
std::vector<double> softmax(Context& context, std::span<const double> logits);

/// Means over rows of n independent Gaussian logits of deviation s (f32), no mask.
struct GaussianMeans {
  Moments entropy, top1, effective_keys, trace_gain, frobenius_gain, max, saturated;
};

/// stream: tells experiments and their cells apart. Rows are measured with statistics level all.
GaussianMeans gaussian_rows(Context& context, Lab& lab, std::uint64_t stream, std::int64_t n, double s,
                            std::int64_t rows);

}  // namespace levelhead::lab
