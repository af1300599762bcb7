#include "core/qk_norm.hpp"

#include <algorithm>
#include <cmath>

#include "core/element.hpp"

namespace levelhead {
namespace {

constexpr double epsilon = 1e-6;

// Calls visit(b, h, token) for each token of q, or of k, that lies inside its lengths.
template <class Visit>
void for_each_token(const Problem& p, bool keys, Visit&& visit) {
  const std::int64_t heads = keys ? p.Hk : p.Hq;
  for (const Segment& s : p.segments)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t token = keys ? s.k_begin : s.q_begin; token < (keys ? s.k_end : s.q_end); ++token)
        visit(s.b, h, token);
}

// 1 / sqrt(S + eps) of one token.
double inverse_norm(const Readable& x, std::int64_t D, QkNorm::Kind kind, std::int64_t b, std::int64_t h,
                    std::int64_t n) {
  double squares = 0;
  for (std::int64_t c = 0; c < D; ++c) {
    const double value = load(x, b, h, n, c);
    squares += value * value;
  }
  if (kind == QkNorm::Kind::rms && D > 0) squares /= static_cast<double>(D);
  return 1 / std::sqrt(squares + epsilon);
}

// A dense copy [B, H, N, D] of x, normalised; replaces x.
std::vector<std::byte> normalised_copy(const Problem& p, QkNorm::Kind kind, bool keys, Readable& x) {
  const std::int64_t H = keys ? p.Hk : p.Hq, N = keys ? p.Nk : p.Nq;
  std::vector<std::byte> copy(static_cast<std::size_t>(p.B * H * N * p.D) * size_of(p.dtype));
  const Writable out{copy.data(), p.dtype, {H * N * p.D, N * p.D, p.D, 1}};
  for_each_token(p, keys, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    const double r = inverse_norm(x, p.D, kind, b, h, n);
    for (std::int64_t c = 0; c < p.D; ++c) store(out, b, h, n, c, load(x, b, h, n, c) * r);
  });
  x = {out.data, out.dtype, out.strides};
  return copy;
}

// x^ = r x with r = (S + eps)^(-1/2), so dx = r dx^ - w r^3 <dx^, x> x, where dS/dx = 2 w x: w = 1 (l2) or 1/D (rms).
void token_backward(const Readable& x, std::int64_t D, QkNorm::Kind kind, std::int64_t b, std::int64_t h,
                    std::int64_t n, const double* dnormalised, const Writable& dx) {
  const double r = inverse_norm(x, D, kind, b, h, n);
  double dot = 0;
  for (std::int64_t c = 0; c < D; ++c) dot += dnormalised[c] * (load(x, b, h, n, c) * r);
  if (kind == QkNorm::Kind::rms) dot /= static_cast<double>(D);
  for (std::int64_t c = 0; c < D; ++c) store(dx, b, h, n, c, r * (dnormalised[c] - dot * (load(x, b, h, n, c) * r)));
}

void clear(const Writable& dx, std::int64_t B, std::int64_t H, std::int64_t N, std::int64_t D) {
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t n = 0; n < N; ++n)
        for (std::int64_t c = 0; c < D; ++c) store(dx, b, h, n, c, 0);
}

}  // namespace

Normalised normalise(Problem& p, QkNorm::Kind kind) {
  Normalised n;
  n.original_q = p.q, n.original_k = p.k;
  n.q = normalised_copy(p, kind, false, p.q);
  n.k = normalised_copy(p, kind, true, p.k);
  return n;
}

void normalise_backward(const Problem& p, QkNorm::Kind kind, bool keys, const Readable& original,
                        const std::vector<double>& dnormalised, const Writable& dx) {
  const std::int64_t H = keys ? p.Hk : p.Hq, N = keys ? p.Nk : p.Nq;
  clear(dx, p.B, H, N, p.D);
  for_each_token(p, keys, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    const double* token = dnormalised.data() + ((b * H + h) * N + n) * p.D;
    // A hidden token may hold NaN, which must not reach its gradient.
    if (std::all_of(token, token + p.D, [](double x) { return x == 0; })) return;
    token_backward(original, p.D, kind, b, h, n, token, dx);
  });
}

}  // namespace levelhead
