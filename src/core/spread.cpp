// The spread within rows that the moments of the components let expect. With q_ic and k_jc of the same token
// correlated and all else independent, row i over n keys has
//   E sum over j of (s_ij - mean_i)^2 = m_i^2 ((n - 1) V + (1 - 1/n) (sum over c of cov_c^2 + (sum over c of
//   cov_c)^2)), V = sum over c of var(k_c) E(q_c^2);
// the second term only where the row sees the key of its own token. docs/numbers.md derives it.
#include <cmath>

#include "core/head.hpp"
#include "core/logits.hpp"
#include "core/qk_norm.hpp"
#include "core/scale.hpp"
#include "levelhead/verdict.hpp"

namespace levelhead {
namespace {

/// Of one component over the tokens of every segment.
struct Component {
  double q_square = 0;    // mean of q^2
  double k_variance = 0;  // unbiased
  double covariance = 0;  // unbiased, of q and k at the same token; 0 unless queries are keys
};

struct Tokens {
  std::int64_t queries = 0, keys = 0;
};

Tokens count_tokens(const Problem& p) {
  Tokens tokens;
  for (const Segment& s : p.segments) tokens.queries += s.q_end - s.q_begin, tokens.keys += s.k_end - s.k_begin;
  return tokens;
}

/// Calls visit(b, token) for each query, or each key.
template <class Visit>
void for_each_token(const Problem& p, std::int64_t Segment::*begin, std::int64_t Segment::*end, Visit&& visit) {
  for (const Segment& s : p.segments)
    for (std::int64_t token = s.*begin; token < s.*end; ++token) visit(s.b, token);
}

Component measure(const Problem& p, std::int64_t h, std::int64_t c, const Tokens& tokens, bool paired) {
  const std::int64_t g = h / p.group();
  double q_sum = 0, q_squares = 0, k_sum = 0;
  for_each_token(p, &Segment::q_begin, &Segment::q_end, [&](std::int64_t b, std::int64_t i) {
    const double q = load(p.q, b, h, i, c);
    q_sum += q, q_squares += q * q;
  });
  for_each_token(p, &Segment::k_begin, &Segment::k_end,
                 [&](std::int64_t b, std::int64_t j) { k_sum += load(p.k, b, g, j, c); });
  const double q_mean = q_sum / static_cast<double>(tokens.queries), k_mean = k_sum / static_cast<double>(tokens.keys);
  double k_squares = 0, products = 0;
  for_each_token(p, &Segment::k_begin, &Segment::k_end, [&](std::int64_t b, std::int64_t j) {
    const double k = load(p.k, b, g, j, c) - k_mean;
    k_squares += k * k;
    if (paired) products += (load(p.q, b, h, j, c) - q_mean) * k;  // in self-attention rows and keys have one index
  });
  const auto freedom = static_cast<double>(tokens.keys - 1);
  return {q_squares / static_cast<double>(tokens.queries), k_squares / freedom, products / freedom};
}

std::optional<double> expected_of_head(const Problem& p, std::int64_t h, const Tokens& tokens, bool paired,
                                       std::span<const RowState> state) {
  double other = 0, cov = 0, cov_squares = 0;  // V, and the sums over the covariances
  for (std::int64_t c = 0; c < p.D; ++c) {
    const Component component = measure(p, h, c, tokens, paired);
    other += component.k_variance * component.q_square;
    cov += component.covariance;
    cov_squares += component.covariance * component.covariance;
  }
  double m2 = 0, pairs = 0;
  for (const Segment& s : p.segments)
    for (std::int64_t i = s.q_begin; i < s.q_end; ++i) {
      const auto n = static_cast<double>(state[static_cast<std::size_t>((s.b * p.Hq + h) * p.Nq + i)].count);
      if (n < 2) continue;
      const std::int64_t own = s.k_begin + (i - s.q_begin);
      const KeyRange keys = p.keys(s, i);
      const bool sees_own = paired && own >= keys.begin && own < keys.end && passes(p, s.b, h, i, own);
      const double multiplier = p.multiplier(s.b, h, i);
      m2 += multiplier * multiplier * ((n - 1) * other + (sees_own ? (1 - 1 / n) * (cov_squares + cov * cov) : 0));
      pairs += n;
    }
  return pairs > 0 ? std::optional(std::sqrt(m2 / pairs)) : std::nullopt;
}

}  // namespace

std::vector<std::optional<double>> expected_spread(const Inputs& inputs, const Options& options,
                                                   std::span<const RowState> state) {
  Problem p = make_problem(inputs, options);
  check_state_size(p, state);
  std::optional<Normalised> norm;
  if (const auto* asked = std::get_if<QkNorm>(&options.scale)) norm = normalise(p, asked->kind);
  fill_multipliers(p, inputs, options);
  const Tokens tokens = count_tokens(p);
  const bool paired = is_self_attention(p);
  std::vector<std::optional<double>> expected(static_cast<std::size_t>(p.Hq));
  for (std::int64_t h = 0; h < p.Hq; ++h)
    expected[static_cast<std::size_t>(h)] = expected_of_head(p, h, tokens, paired, state);
  return expected;
}

}  // namespace levelhead
