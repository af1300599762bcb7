#include "support/naive.hpp"

#include <algorithm>
#include <cmath>

#include "support/oracle.hpp"

namespace levelhead::test {
namespace {

// One sum and the sum of its terms' sizes.
template <class T>
struct Sum {
  T value = 0, absolute = 0;
  void add(T x, T size) {
    value += x;
    absolute += size;
  }
  void add(T x) { add(x, std::abs(x)); }
};

// Element n of the tensor that (b, h, i, j) reads when t broadcasts to [B, Hq, Nq, Nk].
std::int64_t broadcast_index(const Tensor& t, const Sizes& index) {
  std::int64_t n = 0;
  const std::size_t rank = t.sizes().size();
  for (std::size_t axis = 0; axis < rank; ++axis)
    n = n * t.sizes()[axis] + (t.sizes()[axis] == 1 ? 0 : index[4 - rank + axis]);
  return n;
}

template <class T>
class NaiveRun {
 public:
  NaiveRun(const Case& c, const Upstream& u) : c_(c), u_(u), s_(c.shape), oracle_(materialise(c)) {
    reserve("o", s_.B * s_.Hq * s_.Nq * s_.Dv);
    reserve("dq", c.q.elements());
    reserve("dk", c.k.elements());
    reserve("dv", c.v.elements());
    if (c.bias) reserve("dbias", c.bias->elements());
    if (c.sinks) reserve("dsinks", s_.Hq);
    if (c.slopes) reserve("dslopes", s_.Hq);
    if (c.policy == Policy::per_row) reserve("dscale", s_.B * s_.Hq * s_.Nq);
  }

  Materialised run() {
    for (std::int64_t b = 0; b < s_.B; ++b) {
      for (std::int64_t h = 0; h < s_.Hq; ++h) head(b, h);
    }
    Materialised out;
    for (auto& [name, sums] : sums_) {
      const bool of_q_type = name == "o" || name == "dq" || name == "dk" || name == "dv";
      out.values[name], out.absolute[name];  // there, though a size be 0
      for (const Sum<T>& sum : sums) {
        out.values[name].push_back(static_cast<double>(of_q_type ? round(sum.value) : sum.value));
        out.absolute[name].push_back(static_cast<double>(sum.absolute));
      }
    }
    return out;
  }

 private:
  void reserve(const char* name, std::int64_t n) { sums_[name].resize(static_cast<std::size_t>(n)); }
  Sum<T>& sum(const char* name, std::int64_t n) { return sums_.at(name)[static_cast<std::size_t>(n)]; }

  // One more matrix of the naive run is stored: in 16 bits beside 16-bit inputs.
  T round(T x) const {
    if (!std::is_same_v<T, float> || c_.dtype == DType::f32) return x;
    const auto y = static_cast<double>(x);
    return c_.dtype == DType::bf16 ? to_f32(to_bf16(y)) : to_f32(to_f16(y));
  }

  static T get(const Tensor& t, Tensor::Index index) { return static_cast<T>(t.get(index)); }

  // One head: its rows one by one, each over all keys.
  void head(std::int64_t b, std::int64_t h) {
    for (std::int64_t i = 0; i < s_.Nq; ++i) {
      row_ = oracle_.row_index(b, h, i);
      b_ = b, h_ = h, i_ = i, g_ = h / (s_.Hq / s_.Hk);
      keys_.clear();
      for (std::int64_t j = 0; j < s_.Nk; ++j) {
        if (oracle_.visible[pair(j)]) keys_.push_back(j);
      }
      forward();
      if (in_reach()) backward();
    }
  }

  std::size_t pair(std::int64_t j) const {
    return row_ * static_cast<std::size_t>(s_.Nk) + static_cast<std::size_t>(j);
  }
  bool in_reach() const { return !c_.q_lengths || i_ < static_cast<std::int64_t>(c_.q_lengths->flat(b_)); }

  void forward() {
    const std::size_t n = keys_.size();
    raw_.assign(n, 0), scaled_.assign(n, 0), e_.assign(n, 0), p_.assign(n, 0), logit_.assign(n, 0);
    T m = -std::numeric_limits<T>::infinity();
    for (std::size_t x = 0; x < n; ++x) {
      for (std::int64_t d = 0; d < s_.D; ++d) raw_[x] += get(c_.q, {b_, h_, i_, d}) * get(c_.k, {b_, g_, keys_[x], d});
      scaled_[x] = round(static_cast<T>(oracle_.multiplier[row_]) * raw_[x]);
      const T cap = static_cast<T>(c_.softcap);
      logit_[x] =
          (cap > 0 ? cap * std::tanh(scaled_[x] / cap) : scaled_[x]) + static_cast<T>(oracle_.extra[pair(keys_[x])]);
      logit_[x] = round(logit_[x]);
      m = std::max(m, logit_[x]);
    }
    const T sink = c_.sinks ? static_cast<T>(c_.sinks->flat(h_)) : -std::numeric_limits<T>::infinity();
    top_ = std::max(m, sink);
    l_ = 0;
    for (std::size_t x = 0; x < n; ++x) l_ += e_[x] = std::exp(logit_[x] - top_);
    const T of_sink = sink == -std::numeric_limits<T>::infinity() ? 0 : std::exp(sink - top_);
    total_ = l_ + of_sink;
    sink_mass_ = of_sink / total_;
    for (std::size_t x = 0; x < n; ++x) {
      p_[x] = round(e_[x] / total_);
      for (std::int64_t d = 0; d < s_.Dv; ++d)
        sum("o", static_cast<std::int64_t>(row_) * s_.Dv + d).add(p_[x] * get(c_.v, {b_, g_, keys_[x], d}));
    }
  }

  void backward() {
    const T dlse = u_.dlse ? get(*u_.dlse, {b_, h_, i_}) : 0;
    const T dentropy = u_.dentropy ? get(*u_.dentropy, {b_, h_, i_}) : 0;
    std::vector<Sum<T>> dp(keys_.size());
    Sum<T> delta;
    T entropy = 0;
    for (std::size_t x = 0; x < keys_.size(); ++x) {
      for (std::int64_t d = 0; u_.dout && d < s_.Dv; ++d)
        dp[x].add(get(*u_.dout, {b_, h_, i_, d}) * get(c_.v, {b_, g_, keys_[x], d}));
      dp[x].value = round(dp[x].value);
      delta.add(p_[x] * dp[x].value, p_[x] * dp[x].absolute);
      entropy -= e_[x] == 0 ? 0 : e_[x] / l_ * log_weight(x);
    }
    if (c_.sinks && (!keys_.empty() || u_.dlse))
      sum("dsinks", h_).add(sink_mass_ * (dlse - delta.value), sink_mass_ * (std::abs(dlse) + delta.absolute));
    for (std::size_t x = 0; x < keys_.size(); ++x) {
      const T pbar = e_[x] / l_, log_pbar = pbar == 0 ? 0 : log_weight(x);
      T ds = p_[x] * (dp[x].value - delta.value) + dlse * p_[x] - dentropy * pbar * (log_pbar + entropy);
      const T size = p_[x] * (dp[x].absolute + delta.absolute + std::abs(dlse)) +
                     std::abs(dentropy) * pbar * (std::abs(log_pbar) + entropy);
      ds = round(ds);
      push(x, ds, size);
    }
  }

  T log_weight(std::size_t x) const { return logit_[x] - top_ - std::log(l_); }

  // d loss / d logit of one pair, on to everything the logit is made of.
  void push(std::size_t x, T ds, T size) {
    const std::int64_t j = keys_[x];
    const T distance = static_cast<T>(oracle_.distance[pair(j)]), multiplier = static_cast<T>(oracle_.multiplier[row_]);
    if (c_.bias) sum("dbias", broadcast_index(*c_.bias, {b_, h_, i_, j})).add(ds, size);
    if (c_.slopes) sum("dslopes", h_).add(ds * distance, size * std::abs(distance));
    const T tanh = c_.softcap > 0 ? std::tanh(scaled_[x] / static_cast<T>(c_.softcap)) : 0;
    const T cap_factor = 1 - tanh * tanh;
    T raw_size = 0;
    for (std::int64_t d = 0; d < s_.D; ++d) {
      const T q = get(c_.q, {b_, h_, i_, d}), k = get(c_.k, {b_, g_, j, d});
      const T factor = cap_factor * multiplier;
      raw_size += std::abs(q * k);
      sum("dq", static_cast<std::int64_t>(row_) * s_.D + d).add(ds * factor * k, size * std::abs(factor * k));
      sum("dk", ((b_ * s_.Hk + g_) * s_.Nk + j) * s_.D + d).add(ds * factor * q, size * std::abs(factor * q));
    }
    if (c_.policy == Policy::per_row)
      sum("dscale", static_cast<std::int64_t>(row_)).add(ds * cap_factor * raw_[x], size * cap_factor * raw_size);
    for (std::int64_t d = 0; u_.dout && d < s_.Dv; ++d)
      sum("dv", ((b_ * s_.Hk + g_) * s_.Nk + j) * s_.Dv + d).add(p_[x] * get(*u_.dout, {b_, h_, i_, d}));
  }

  const Case& c_;
  const Upstream& u_;
  const Shape s_;
  const Oracle oracle_;
  std::map<std::string, std::vector<Sum<T>>> sums_;
  // the row at hand
  std::size_t row_ = 0;
  std::int64_t b_ = 0, h_ = 0, i_ = 0, g_ = 0;
  std::vector<std::int64_t> keys_;
  std::vector<T> raw_, scaled_, logit_, e_, p_;
  T top_ = 0, l_ = 0, total_ = 0, sink_mass_ = 0;
};

}  // namespace

template <class T>
Materialised materialised_run(const Case& c, const Upstream& upstream) {
  return NaiveRun<T>(c, upstream).run();
}
template Materialised materialised_run<float>(const Case&, const Upstream&);
template Materialised materialised_run<double>(const Case&, const Upstream&);
template Materialised materialised_run<long double>(const Case&, const Upstream&);

void Errors::add(const Tensor& got, const std::vector<double>& rough, const std::vector<double>& truth,
                 const std::vector<double>& absolute, double eps) {
  double kernel_squares = 0, naive_squares = 0, size = 0;
  for (std::size_t n = 0; n < truth.size(); ++n) {
    kernel_squares += std::pow(got.flat(static_cast<std::int64_t>(n)) - truth[n], 2);
    naive_squares += std::pow(rough[n] - truth[n], 2);
    size += absolute[n] * absolute[n];
  }
  if (size == 0) {
    exact_zeros = exact_zeros && kernel_squares == 0;
    return;
  }
  kernel += kernel_squares / size;
  naive += naive_squares / size;
  floor += eps * eps;
}

::testing::AssertionResult Errors::within_twice_naive() const {
  const double got = std::sqrt(kernel), bound = 2 * std::sqrt(naive) + std::sqrt(floor);
  if (!exact_zeros) return ::testing::AssertionFailure() << "what has no terms is not 0";
  if (got <= bound) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "error " << got << " above " << bound << " (naive " << std::sqrt(naive)
                                       << ", eps " << std::sqrt(floor) << ")";
}

}  // namespace levelhead::test
