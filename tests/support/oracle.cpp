#include "support/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

// Element of a tensor that broadcasts to [B, Hq, Nq, Nk].
double broadcast(const Tensor& t, const Sizes& index) {
  const std::size_t rank = t.sizes().size();
  Sizes own(rank);
  for (std::size_t axis = 0; axis < rank; ++axis)
    own[axis] = t.sizes()[axis] == 1 ? 0 : index[index.size() - rank + axis];
  return t.get(own);
}

// A position inside its batch item or document; none behind a length.
struct Place {
  bool valid = false;
  std::int64_t position = 0, size = 0, document = 0;
};

Place place(const std::optional<Tensor>& lengths, const std::optional<Tensor>& offsets, std::int64_t tokens,
            std::int64_t b, std::int64_t token) {
  if (offsets) {
    for (std::int64_t d = 0; d + 1 < offsets->elements(); ++d) {
      const auto begin = static_cast<std::int64_t>(offsets->flat(d));
      const auto end = static_cast<std::int64_t>(offsets->flat(d + 1));
      if (token >= begin && token < end) return {true, token - begin, end - begin, d};
    }
    return {};
  }
  const std::int64_t size = lengths ? static_cast<std::int64_t>(lengths->flat(b)) : tokens;
  return {token < size, token, size, 0};
}

// Keys of the document or batch item that query i is in.
std::int64_t keys_of(const Case& c, std::int64_t b, const Place& query) {
  if (c.k_offsets)
    return static_cast<std::int64_t>(c.k_offsets->flat(query.document + 1) - c.k_offsets->flat(query.document));
  return c.k_lengths ? static_cast<std::int64_t>(c.k_lengths->flat(b)) : c.shape.Nk;
}

std::int64_t offset_of(const Case& c, std::int64_t n_q, std::int64_t n_k) {
  switch (c.window.align().rule()) {
    case Align::Rule::bottom_right: return n_k - n_q;
    case Align::Rule::offset: return c.window.align().offset();
    default: return 0;
  }
}

// q and k of QK-norm, rounded once to their type.
Tensor normalised(const Tensor& x, Policy policy) {
  Tensor out(x.dtype(), x.sizes());
  const std::int64_t dim = x.sizes().back();
  for (std::int64_t n = 0; dim > 0 && n < x.elements() / dim; ++n) {
    double squares = 0;
    for (std::int64_t c = 0; c < dim; ++c) squares += x.flat(n * dim + c) * x.flat(n * dim + c);
    if (policy == Policy::qk_rms) squares /= static_cast<double>(dim);
    for (std::int64_t c = 0; c < dim; ++c) out.set_flat(n * dim + c, x.flat(n * dim + c) / std::sqrt(squares + 1e-6));
  }
  return out;
}

double plain_multiplier(const Scale& scale, double dim, double n) {
  const double inv_sqrt = dim == 0 ? 1 : 1 / std::sqrt(dim);
  if (const auto* s = std::get_if<Constant>(&scale)) return s->value;
  if (const auto* s = std::get_if<InvDim>(&scale)) return std::sqrt(s->base) / dim;
  if (const auto* s = std::get_if<LogKeys>(&scale)) return n < 2 ? 0 : std::log(n) / std::log(s->n0) * inv_sqrt;
  if (const auto* s = std::get_if<Yarn>(&scale)) {
    const double m = 0.1 * s->mscale * std::log(s->factor) + 1;
    return m * m * inv_sqrt;
  }
  return inv_sqrt;
}

double multiplier(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t n) {
  const double dim = static_cast<double>(c.shape.D), keys = static_cast<double>(n);
  const double inv_sqrt = dim == 0 ? 1 : 1 / std::sqrt(dim);
  double x = 0;
  switch (c.policy) {
    case Policy::plain: x = plain_multiplier(c.scale, dim, keys); break;
    case Policy::per_head: x = c.scale_values->flat(h); break;
    case Policy::per_row: x = c.scale_values->get({b, h, i}); break;
    case Policy::ssmax: x = n < 2 ? 0 : c.scale_values->flat(h) * std::log(keys) * inv_sqrt; break;
    case Policy::qk_l2: x = c.scale_values ? c.scale_values->flat(h) : std::sqrt(dim); break;
    case Policy::qk_rms: x = (c.scale_values ? c.scale_values->flat(h) : 1) * inv_sqrt; break;
  }
  return c.dtype == DType::f64 ? x : static_cast<float>(x);
}

// One query against its visible keys.
struct Row {
  std::vector<std::int64_t> keys;
  std::vector<double> distances, scaled, logit, extra;
  double multiplier = 0, magnitude = 1;
  std::optional<double> sink;
};

class Materialiser {
 public:
  explicit Materialiser(const Case& source) : c_(source), q_(source.q), k_(source.k) {
    if (c_.policy != Policy::qk_l2 && c_.policy != Policy::qk_rms) return;
    q_ = normalised(c_.q, c_.policy);
    k_ = normalised(c_.k, c_.policy);
  }

  Row row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    Row row;
    if (c_.sinks) row.sink = c_.sinks->flat(h);
    const Place query = place(c_.q_lengths, c_.q_offsets, c_.shape.Nq, b, i);
    if (!query.valid) return row;
    const std::int64_t offset = offset_of(c_, query.size, keys_of(c_, b, query));
    for (std::int64_t j = 0; j < c_.shape.Nk; ++j) {
      const Place key = place(c_.k_lengths, c_.k_offsets, c_.shape.Nk, b, j);
      const std::int64_t distance = key.position - (query.position + offset);
      if (!key.valid || key.document != query.document || !sees(b, h, i, j, distance)) continue;
      row.keys.push_back(j);
      row.distances.push_back(static_cast<double>(distance));
    }
    row.multiplier = multiplier(c_, b, h, i, static_cast<std::int64_t>(row.keys.size()));
    for (std::size_t n = 0; n < row.keys.size(); ++n) add_logit(row, b, h, i, row.keys[n], row.distances[n]);
    return row;
  }

 private:
  bool sees(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, std::int64_t distance) const {
    if (c_.window.left() && distance < -*c_.window.left()) return false;
    if (c_.window.right() && distance > *c_.window.right()) return false;
    if (c_.mask && broadcast(*c_.mask, {b, h, i, j}) == 0) return false;
    return !c_.bias || broadcast(*c_.bias, {b, h, i, j}) != -inf;
  }

  void add_logit(Row& row, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, double distance) const {
    const std::int64_t g = h / (c_.shape.Hq / c_.shape.Hk);
    double raw = 0, raw_abs = 0;
    for (std::int64_t d = 0; d < c_.shape.D; ++d) {
      const double product = q_.get({b, h, i, d}) * k_.get({b, g, j, d});
      raw += product;
      raw_abs += std::abs(product);
    }
    const double scaled = row.multiplier * raw;
    const double bias = c_.bias ? broadcast(*c_.bias, {b, h, i, j}) : 0;
    const double alibi = c_.slopes ? c_.slopes->flat(h) * distance : 0;
    row.scaled.push_back(scaled);
    row.extra.push_back(bias + alibi);
    const double capped = c_.softcap > 0 ? c_.softcap * std::tanh(scaled / c_.softcap) : scaled;
    row.logit.push_back(capped + bias + alibi);
    row.magnitude = std::max(row.magnitude, std::abs(row.multiplier) * raw_abs + std::abs(bias) + std::abs(alibi));
  }

  const Case& c_;
  Tensor q_, k_;
};

// Not a number at all: a visible NaN or +inf, or nothing but -inf.
bool is_nan_row(const Row& row) {
  const auto bad = [](double s) { return std::isnan(s) || s == inf; };
  const auto hidden = [](double s) { return s == -inf; };
  return std::any_of(row.logit.begin(), row.logit.end(), bad) ||
         (!row.logit.empty() && std::all_of(row.logit.begin(), row.logit.end(), hidden));
}

// Softmax of the logits, with the sink as one more outcome if given; the sink's own weight is the last.
std::vector<double> softmax(const Row& row, std::optional<double> sink) {
  if (is_nan_row(row)) return std::vector<double>(row.logit.size() + 1, nan);
  double m = sink.value_or(-inf), total = 0;
  for (const double s : row.logit) m = std::max(m, s);
  std::vector<double> p;
  for (const double s : row.logit) p.push_back(s == -inf ? 0 : std::exp(s - m));
  p.push_back(sink && *sink != -inf ? std::exp(*sink - m) : 0);
  for (const double e : p) total += e;
  for (double& e : p) e = total == 0 ? 0 : e / total;
  return p;
}

double power_sum(const std::vector<double>& p, int power) {
  double sum = 0;
  for (std::size_t n = 0; n + 1 < p.size(); ++n) sum += std::pow(p[n], power);
  return sum;
}

double entropy_of(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum += x == 0 ? 0 : x * std::log(x);
  return std::isnan(sum) ? nan : std::max(0.0, -sum);
}

double log_sum(const Row& row) {
  if (is_nan_row(row)) return nan;
  double m = row.sink.value_or(-inf), total = 0;
  for (const double s : row.logit) m = std::max(m, s);
  if (m == -inf) return -inf;
  for (const double s : row.logit) total += std::exp(s - m);
  if (row.sink) total += std::exp(*row.sink - m);
  return m + std::log(total);
}

void describe_logits(const Row& row, RowStatistics& x) {
  const double n = static_cast<double>(row.logit.size());
  x.max = -inf;
  x.min = inf;
  double sum = 0;
  for (std::size_t j = 0; j < row.logit.size(); ++j) {
    x.max = std::max(x.max, row.logit[j]);
    x.min = std::min(x.min, row.logit[j]);
    x.absmax = std::max(x.absmax, std::abs(row.logit[j]));
    x.absmax_uncapped = std::max(x.absmax_uncapped, std::abs(row.scaled[j]));
    sum += row.logit[j];
  }
  x.mean = sum / n;
  for (const double s : row.logit) x.variance += (s - x.mean) * (s - x.mean) / n;
  if (row.logit.empty()) x.mean = x.variance = nan;
}

RowStatistics describe(const Row& row) {
  RowStatistics x;
  x.level = StatisticsLevel::all;
  x.count = static_cast<std::int64_t>(row.keys.size());
  x.lse = log_sum(row);
  if (is_nan_row(row)) {
    x.mean = x.variance = x.max = x.min = x.absmax = x.absmax_uncapped = nan;
    x.entropy = x.entropy_sink = x.effective_keys = x.perplexity = x.top1 = x.trace_gain = x.frobenius_gain = nan;
    x.first_key_mass = x.sink_mass = nan;
    return x;
  }
  describe_logits(row, x);
  const std::vector<double> keys_alone = softmax(row, {}), p = softmax(row, row.sink);
  x.sink_mass = x.count == 0 ? (row.sink ? 1 : 0) : p.back();
  if (x.count == 0) return x;
  const double squares = power_sum(keys_alone, 2), cubes = power_sum(keys_alone, 3);
  x.entropy = entropy_of(keys_alone);
  x.entropy_sink = entropy_of(p);
  x.effective_keys = 1 / squares;
  x.perplexity = std::exp(x.entropy);
  x.top1 = *std::max_element(keys_alone.begin(), keys_alone.end());
  x.trace_gain = 1 - squares;
  x.frobenius_gain = std::sqrt(std::max(0.0, squares - 2 * cubes + squares * squares));
  x.first_key_mass = p.front();
  x.saturated = x.top1 > 0.99 && x.count >= 2;
  return x;
}

void add_row(const Case& c, const Row& row, std::int64_t b, std::int64_t h, std::int64_t i, Oracle& out) {
  const std::size_t at = out.row_index(b, h, i);
  const std::vector<double> p = softmax(row, row.sink);
  const std::int64_t g = h / (c.shape.Hq / c.shape.Hk);
  out.rows[at] = describe(row);
  out.magnitude[at] = row.magnitude;
  out.multiplier[at] = row.multiplier;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const std::size_t pair = at * static_cast<std::size_t>(c.shape.Nk) + static_cast<std::size_t>(row.keys[n]);
    out.visible[pair] = true;
    out.logit[pair] = row.logit[n];
    out.distance[pair] = row.distances[n];
    out.extra[pair] = row.extra[n];
    out.p[pair] = p[n];
    for (std::int64_t d = 0; d < c.shape.Dv; ++d) {
      const double v = c.v.get({b, g, row.keys[n], d});
      const std::size_t component = at * static_cast<std::size_t>(c.shape.Dv) + static_cast<std::size_t>(d);
      out.o[component] += p[n] * v;
      out.o_abs[component] += p[n] * std::abs(v);
    }
  }
}

}  // namespace

Oracle materialise(const Case& c) {
  const Shape& s = c.shape;
  const auto rows = static_cast<std::size_t>(s.B * s.Hq * s.Nq);
  const std::size_t pairs = rows * static_cast<std::size_t>(s.Nk), values = rows * static_cast<std::size_t>(s.Dv);
  Oracle out;
  out.shape = s;
  out.visible.resize(pairs);
  out.logit.resize(pairs);
  out.p.resize(pairs);
  out.o.resize(values);
  out.o_abs.resize(values);
  out.distance.resize(pairs);
  out.extra.resize(pairs);
  out.magnitude.resize(rows);
  out.multiplier.resize(rows);
  out.rows.resize(rows);
  const Materialiser materialiser(c);
  for (std::int64_t b = 0; b < s.B; ++b) {
    for (std::int64_t h = 0; h < s.Hq; ++h) {
      for (std::int64_t i = 0; i < s.Nq; ++i) add_row(c, materialiser.row(b, h, i), b, h, i, out);
    }
  }
  return out;
}

double statistic_tolerance(std::string_view name, DType type, Precision precision, double x, double magnitude) {
  const bool of_logit =
      name == "mean" || name == "max" || name == "min" || name == "absmax" || name == "absmax_uncapped";
  const double square = magnitude * magnitude;
  if (type == DType::f64) return 1e-11 * std::abs(x) + 1e-12 * (name == "variance" ? square : magnitude);
  if (type == DType::f32 || precision == Precision::exact)
    return 1e-5 * std::abs(x) + 2e-6 * (name == "variance" ? square : magnitude);
  return 2e-3 * std::abs(x) + 2e-3 * (name == "variance" ? square : of_logit ? magnitude : 1);
}

::testing::AssertionResult near_statistics(const RowStatistics& got, const Oracle& want, std::size_t row, DType type,
                                           Precision precision) {
  const RowStatistics& truth = want.rows[row];
  const double magnitude = want.magnitude[row];
  std::map<std::string_view, double> true_values;
  for_each_statistic(truth, [&](std::string_view name, auto x) { true_values[name] = static_cast<double>(x); });
  ::testing::AssertionResult result = ::testing::AssertionSuccess();
  for_each_statistic(got, [&](std::string_view name, auto value) {
    double x = static_cast<double>(value), y = true_values.at(name);
    if (name == "frobenius_gain") x *= x, y *= y;
    double tolerance = statistic_tolerance(name, type, precision, y, magnitude);
    if (name == "count") tolerance = 0;
    // the flag may differ while top1 is within its bound of the threshold
    if (name == "saturated") {
      const double top1 = statistic_tolerance("top1", type, precision, truth.top1, magnitude);
      tolerance = std::abs(truth.top1 - 0.99) <= top1 ? 1 : 0;
    }
    const auto ok = near(x, y, tolerance);
    if (!ok && result) result = ::testing::AssertionFailure() << name << " of row " << row << ": " << ok.message();
  });
  return result;
}

::testing::AssertionResult near_statistics(const Forward& got, const Oracle& want, const Case& c) {
  for (std::size_t row = 0; row < want.rows.size(); ++row) {
    const std::int64_t h = static_cast<std::int64_t>(row) / c.shape.Nq % c.shape.Hq;
    const RowStatistics x = row_statistics(got.state[row], got.sinks[static_cast<std::size_t>(h)]);
    if (x.level != c.statistics.level) return ::testing::AssertionFailure() << "row " << row << ": another level";
    const auto ok = near_statistics(x, want, row, c.dtype, c.statistics.precision);
    if (!ok) return ok;
    const double lse = want.rows[row].lse;
    const double tolerance = statistic_tolerance("lse", c.dtype, c.statistics.precision, lse, want.magnitude[row]);
    const auto written = near(got.lse.flat(static_cast<std::int64_t>(row)), lse, tolerance);
    if (!written) return ::testing::AssertionFailure() << "written lse of row " << row << ": " << written.message();
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult near_o(const Forward& got, const Oracle& want, double relative, double absolute) {
  for (std::size_t n = 0; n < want.o.size(); ++n) {
    const double tolerance = relative * std::abs(want.o[n]) + absolute * want.o_abs[n];
    const auto ok = near(got.o.flat(static_cast<std::int64_t>(n)), want.o[n], tolerance);
    if (!ok) return ::testing::AssertionFailure() << "element " << n << " of o: " << ok.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace levelhead::test
