#include "core/qk_norm.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

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

// Calls f(T{}) for the type T of q, k and v.
template <class F>
void with_type(DType type, F&& f) {
  switch (type) {
    case DType::f64: return f(double{});
    case DType::f32: return f(float{});
    case DType::bf16: return f(bf16{});
    case DType::f16: return f(f16{});
    default: assert(false && "q is floating");
  }
}

// One token x [D] as doubles: the type is looked at once, not per component.
void load_token(const Readable& x, std::int64_t b, std::int64_t h, std::int64_t n, std::span<double> token) {
  const std::int64_t first = x.at(b, h, n, 0);
  with_type(x.dtype, [&]<class T>(T) {
    const T* data = static_cast<const T*>(x.data);
    for (std::size_t c = 0; c < token.size(); ++c) {
      const T value = data[first + static_cast<std::int64_t>(c) * x.strides[3]];
      if constexpr (std::is_floating_point_v<T>)
        token[c] = value;
      else
        token[c] = to_f32(value);
    }
  });
}

void store_token(const Writable& x, std::int64_t b, std::int64_t h, std::int64_t n, std::span<const double> token) {
  const std::int64_t first = x.at(b, h, n, 0);
  for (std::size_t c = 0; c < token.size(); ++c)
    store(x.data, x.dtype, first + static_cast<std::int64_t>(c) * x.strides[3], token[c]);
}

// 1 / sqrt(S + eps) of one token.
double inverse_norm(std::span<const double> token, QkNorm::Kind kind) {
  double squares = 0;
  for (const double value : token) squares += value * value;
  if (kind == QkNorm::Kind::rms && !token.empty()) squares /= static_cast<double>(token.size());
  return 1 / std::sqrt(squares + epsilon);
}

// A dense copy [B, H, N, D] of x, normalised; replaces x.
std::vector<std::byte> normalised_copy(const Problem& p, QkNorm::Kind kind, bool keys, Readable& x) {
  const std::int64_t H = keys ? p.Hk : p.Hq, N = keys ? p.Nk : p.Nq;
  std::vector<std::byte> copy(static_cast<std::size_t>(p.B * H * N * p.D) * size_of(p.dtype));
  std::vector<double> token(static_cast<std::size_t>(p.D));
  const Writable out{copy.data(), p.dtype, {H * N * p.D, N * p.D, p.D, 1}};
  for_each_token(p, keys, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    load_token(x, b, h, n, token);
    const double r = inverse_norm(token, kind);
    for (double& value : token) value *= r;
    store_token(out, b, h, n, token);
  });
  x = {out.data, out.dtype, out.strides};
  return copy;
}

// x^ = r x with r = (S + eps)^(-1/2), so dx = r dx^ - w r^3 <dx^, x> x, where dS/dx = 2 w x: w = 1 (l2) or 1/D (rms).
// token: x, overwritten by dx.
void token_backward(QkNorm::Kind kind, std::span<const double> dnormalised, std::span<double> token) {
  const double r = inverse_norm(token, kind);
  double dot = 0;
  for (std::size_t c = 0; c < token.size(); ++c) dot += dnormalised[c] * (token[c] * r);
  if (kind == QkNorm::Kind::rms) dot /= static_cast<double>(token.size());
  for (std::size_t c = 0; c < token.size(); ++c) token[c] = r * (dnormalised[c] - dot * (token[c] * r));
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
  const auto D = static_cast<std::size_t>(p.D);
  std::vector<double> token(D);
  clear(dx, p.B, H, N, p.D);
  for_each_token(p, keys, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    const auto at = static_cast<std::size_t>((b * H + h) * N + n);
    const auto gradient = std::span(dnormalised).subspan(at * D, D);
    // A hidden token may hold NaN, which must not reach its gradient.
    if (std::all_of(gradient.begin(), gradient.end(), [](double x) { return x == 0; })) return;
    load_token(original, b, h, n, token);
    token_backward(kind, gradient, token);
    store_token(dx, b, h, n, token);
  });
}

}  // namespace levelhead
