// A checked call. make_problem is the one place that rejects input; everything to its right asserts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "levelhead/attention.hpp"

namespace levelhead {

/// A rank-4 view whose broadcast axes have stride 0. data is null when the tensor is absent.
template <class Pointer>
struct Strided {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  Dims strides{};

  explicit operator bool() const { return data != nullptr; }
  std::int64_t at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
  }
};
using Readable = Strided<const void*>;
using Writable = Strided<void*>;

/// A tensor and what the user calls it.
struct Named {
  std::string_view name;
  TensorView view;
};

/// Keys [begin, end), absolute indices; end <= begin is no key.
struct KeyRange {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return end <= begin; }
};

/// A batch item or a packed document: the rows and keys that may meet.
struct Segment {
  std::int64_t b = 0;
  std::int64_t q_begin = 0, q_end = 0;  // absolute rows
  std::int64_t k_begin = 0, k_end = 0;  // absolute keys
  std::int64_t offset = 0;              // of the alignment, between positions counted inside the segment
};

/// left and right are clamped to this, so that position arithmetic cannot overflow.
inline constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max() / 4;

struct Problem {
  // sizes
  std::int64_t B = 0, Hq = 0, Hk = 0, Nq = 0, Nk = 0, D = 0, Dv = 0;
  std::int64_t group() const { return Hk == 0 ? 1 : Hq / Hk; }  // 1 without heads: h / group() stays defined

  DType dtype = DType::f32;
  Readable q, k, v;               // [B, H, N, D]
  Readable mask, bias;            // over [B, Hq, Nq, Nk]
  std::vector<double> slopes;     // [Hq] or empty
  std::vector<double> sinks;      // [Hq] or empty
  std::vector<Segment> segments;  // in order, none if there is no row; rows in none of them are empty rows
  std::int64_t left = unbounded, right = unbounded;
  double softcap = 0;
  Statistics statistics{};
  std::int64_t splits = 0;  // key ranges of a row, at most; 0: ranges of a fixed size

  std::optional<Named> scale_tensor;  // what the policy reads: its values, s or gain

  /// One number per query row, already rounded to f32 (not for f64 inputs).
  /// Stride 0 where rows share it; [B, Hq, Nq] strides.
  std::vector<double> multipliers;
  std::array<std::int64_t, 3> multiplier_strides{};

  double multiplier(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return multipliers[static_cast<std::size_t>(b * multiplier_strides[0] + h * multiplier_strides[1] +
                                                i * multiplier_strides[2])];
  }

  std::optional<double> sink(std::int64_t h) const {
    return sinks.empty() ? std::nullopt : std::optional(sinks[static_cast<std::size_t>(h)]);
  }

  /// Position of key j relative to row i's own key: the distance that window bounds and slopes count.
  std::int64_t distance(const Segment& s, std::int64_t i, std::int64_t j) const {
    return (j - s.k_begin) - (i - s.q_begin + s.offset);
  }

  /// Keys of row i by position: lengths, document and window; mask and bias not included.
  KeyRange keys(const Segment& s, std::int64_t i) const {
    const std::int64_t own = s.k_begin + (i - s.q_begin) + s.offset;
    return {std::max(s.k_begin, own - left), std::min(s.k_end, own + right + 1)};
  }
};

/// The writable side of forward, resolved by make_outputs. Absent ones are null.
struct ForwardOutputs {
  Writable o;                 // [B, Hq, Nq, Dv]
  Writable lse;               // [B, Hq, Nq], strides in the first three
  RowState* state = nullptr;  // [B, Hq, Nq] dense

  RowState& state_at(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i) const {
    return state[(b * p.Hq + h) * p.Nq + i];
  }
};

/// Backward's incoming and outgoing tensors, resolved. Gradients that are reduced (over rows, broadcast axes,
/// policies) are accumulated in zero-filled double buffers that attention.cpp owns, rounds once and hands out.
struct BackwardTensors {
  const RowState* state = nullptr;  // [B, Hq, Nq] dense; m, l and count: other fields may be unmeasured
  Readable dout, dlse, dentropy;
  Writable dq, dk, dv;            // any floating type; every element is written
  Writable dbias;                 // f64, the bias's own shape: stride 0 along its broadcast axes
  double* dsinks = nullptr;       // [Hq]
  double* dslopes = nullptr;      // [Hq]
  double* dmultiplier = nullptr;  // [B, Hq, Nq] dense: d loss / d multiplier of a row
};

/// Checks every rule for inputs and options and resolves views, segments and bounds. Allocates nothing that
/// depends on a size before the checks are through. Multipliers are filled by fill_multipliers (scale.hpp).
/// Throws Error.
Problem make_problem(const Inputs& inputs, const Options& options);

/// Checks outputs against the problem and each other. Throws Error.
ForwardOutputs make_outputs(const Problem& problem, const Inputs& inputs, const Outputs& outputs);

/// Checks backward's tensors. dbias, dsinks, dslopes and dmultiplier stay null: attention.cpp owns those buffers.
/// Throws Error.
BackwardTensors make_backward(const Problem& problem, const Inputs& inputs, const Options& options, const Saved& saved,
                              const OutputGradients& output_gradients, const Gradients& gradients);

}  // namespace levelhead
