// Sample moments with their standard errors.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace levelhead::lab {

/// Sums of powers about `centre`, a number near the mean that is known before; adding parts in index order gives
/// the same bits for any number of threads.
class Moments {
 public:
  explicit Moments(double centre = 0) : centre_(centre) {}

  void push(double x) noexcept {
    const double y = x - centre_, y2 = y * y;
    ++count_;
    sum1_ += y;
    sum2_ += y2;
    sum3_ += y2 * y;
    sum4_ += y2 * y2;
  }

  /// Both must have the same centre.
  void add(const Moments& other) noexcept {
    count_ += other.count_;
    sum1_ += other.sum1_;
    sum2_ += other.sum2_;
    sum3_ += other.sum3_;
    sum4_ += other.sum4_;
  }

  std::int64_t count() const noexcept { return count_; }
  double mean() const noexcept { return centre_ + over_count(sum1_); }
  /// About the sample's own mean, divided by the count.
  double variance() const noexcept { return std::fmax(0, over_count(sum2_) - offset() * offset()); }
  double sd() const noexcept { return std::sqrt(variance()); }

  double mean_error() const noexcept { return std::sqrt(over_count(variance())); }
  /// sqrt((m4 - variance^2) / count): no shape of the distribution is assumed.
  double variance_error() const noexcept {
    const double a = offset(), v = variance();
    const double m4 = over_count(sum4_) - 4 * a * over_count(sum3_) + 6 * a * a * over_count(sum2_) - 3 * a * a * a * a;
    return std::sqrt(over_count(std::fmax(0, m4 - v * v)));
  }
  /// By the derivative of sqrt.
  double sd_error() const noexcept { return variance_error() / (2 * sd()); }

 private:
  double over_count(double x) const noexcept {
    return count_ > 0 ? x / static_cast<double>(count_) : std::numeric_limits<double>::quiet_NaN();
  }
  double offset() const noexcept { return over_count(sum1_); }

  double centre_;
  std::int64_t count_ = 0;
  double sum1_ = 0, sum2_ = 0, sum3_ = 0, sum4_ = 0;
};

/// The larger; NaN when either is, so that no later number hides it.
inline double worse(double a, double b) noexcept { return std::isnan(a) || a >= b ? a : b; }

/// A number and its standard error.
struct Measured {
  double value = 0, error = 0;
};

/// a / b of independent samples, errors to first order.
inline Measured ratio(Measured a, Measured b) noexcept {
  const double r = a.value / b.value;
  return {r, std::fabs(r) * std::hypot(a.error / a.value, b.error / b.value)};
}

/// How many standard errors the worst of `count` sound numbers may be off when all of them together may raise no more
/// false alarms than one does at 3 (0.27 %).
double worst_of(std::int64_t count);

}  // namespace levelhead::lab
