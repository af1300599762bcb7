#include "support/random_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "support/oracle.hpp"

namespace levelhead::test {
namespace {

Tensor broadcast_tensor(DType type, const Shape& s, int axes) {
  const Sizes whole{s.B, s.Hq, s.Nq, s.Nk};
  Sizes sizes(4, 1);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if ((axes >> axis & 1) != 0) sizes[axis] = whole[axis];
  }
  return {type, sizes};
}

Tensor random_lengths(Random& random, std::int64_t items, std::int64_t tokens) {
  Tensor out(DType::i64, {items});
  for (std::int64_t b = 0; b < items; ++b) out.set_flat(b, static_cast<double>(random.integer(0, tokens)));
  return out;
}

// Starts of `documents` documents, some of them empty.
Tensor random_offsets(Random& random, std::int64_t documents, std::int64_t tokens) {
  std::vector<double> starts{0, static_cast<double>(tokens)};
  for (std::int64_t n = 1; n < documents; ++n) starts.push_back(static_cast<double>(random.integer(0, tokens)));
  std::sort(starts.begin(), starts.end());
  return {DType::i64, {documents + 1}, starts};
}

void fill_bias(Tensor& bias, Random& random) {
  for (std::int64_t n = 0; n < bias.elements(); ++n)
    bias.set_flat(n, random.chance(0.1) ? -std::numeric_limits<double>::infinity() : random.normal());
}

void add_scale(Case& c, Random& random) {
  const Shape& s = c.shape;
  if (c.policy == Policy::plain) return;
  c.scale_values = Tensor(side_type(c.dtype), c.policy == Policy::per_row ? Sizes{s.B, s.Hq, s.Nq} : Sizes{s.Hq});
  c.scale_values->fill_normal(random, c.policy == Policy::qk_l2 ? 3 : 0.5);
}

Window draw_window(const Pick& pick, const Shape& s) {
  const std::array<Align, 3> aligns{Align::top_left(), Align::bottom_right(), Align::at(pick(-5, 5 + s.Nk))};
  const Align align = aligns[static_cast<std::size_t>(pick(0, 2))];
  switch (pick(0, 3)) {
    case 0: return Window::all(align);
    case 1: return Window::causal(align);
    case 2: return Window::sliding(pick(0, s.Nk), {}, align);
    default: return Window::sliding(pick(0, s.Nk), pick(0, 9), align);
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Parameters& x) {
  const auto bound = [](const Window::Bound& b) { return b ? std::to_string(*b) : std::string("inf"); };
  const Shape& s = x.shape;
  out << "B " << s.B << " Hq " << s.Hq << " Hk " << s.Hk << " Nq " << s.Nq << " Nk " << s.Nk << " D " << s.D << " Dv "
      << s.Dv << " seed " << x.seed << " window " << bound(x.window.left()) << "," << bound(x.window.right())
      << " align rule " << static_cast<int>(x.window.align().rule()) << " offset " << x.window.align().offset()
      << " softcap " << x.softcap << " mask " << x.mask << " bias " << x.bias << " slopes " << x.slopes << " sinks "
      << x.sinks << " lengths " << x.lengths << " documents " << x.documents << " policy " << static_cast<int>(x.policy)
      << " scale " << x.scale.index();
  return out;
}

Parameters draw_parameters(const Pick& pick, const Limits& limits) {
  const auto chance = [&](std::int64_t tenths) { return pick(0, 9) >= 10 - tenths; };
  Parameters x;
  const std::int64_t least = limits.zero_sizes && chance(1) ? 0 : 1;
  x.documents = limits.documents && chance(2);
  x.lengths = !x.documents && chance(3);
  Shape& s = x.shape;
  s.B = x.documents ? 1 : pick(1, 2);
  s.Hk = pick(1, 2);
  s.Hq = s.Hk * pick(1, 3);
  s.Nq = pick(least, limits.queries);
  s.Nk = chance(5) ? pick(least, limits.keys) : pick(least, std::min<std::int64_t>(12, limits.keys));
  s.D = pick(least, limits.dim);
  s.Dv = pick(least, limits.dim);
  x.seed = static_cast<std::uint64_t>(pick(0, 1'000'000));
  x.window = draw_window(pick, s);
  x.softcap = chance(3) ? 1.5 : 0;
  x.mask = chance(3) ? static_cast<int>(pick(1, 16)) : 0;
  x.bias = chance(3) ? static_cast<int>(pick(1, 16)) : 0;
  x.slopes = chance(2);
  x.sinks = chance(3);
  if (chance(4)) x.policy = static_cast<Policy>(pick(1, 5));
  const std::array<Scale, 5> scales{InvSqrtDim{}, Constant{-0.4}, LogKeys{9}, Yarn{8, 1}, Constant{0}};
  x.scale = scales[static_cast<std::size_t>(pick(0, 4))];
  return x;
}

Parameters random_parameters(Random& random, const Limits& limits) {
  return draw_parameters([&](std::int64_t low, std::int64_t high) { return random.integer(low, high); }, limits);
}

Case make_case(DType type, const Parameters& x) {
  Random random(x.seed);
  const Shape& s = x.shape;
  Case c = Case::random(type, s, random.bits());
  c.window = x.window;
  c.softcap = x.softcap;
  c.policy = x.policy;
  c.scale = x.scale;
  if (x.mask != 0) {
    c.mask = broadcast_tensor(DType::boolean, s, x.mask - 1);
    for (std::int64_t n = 0; n < c.mask->elements(); ++n) c.mask->set_flat(n, random.chance(0.8) ? 1 : 0);
  }
  if (x.bias != 0) {
    c.bias = broadcast_tensor(random.chance(0.5) ? type : DType::f32, s, x.bias - 1);
    fill_bias(*c.bias, random);
  }
  if (x.slopes) c.slopes = Tensor(side_type(type), {s.Hq}).fill_normal(random, 0.05);
  if (x.sinks) c.sinks = Tensor(side_type(type), {s.Hq}).fill_normal(random, 2);
  if (x.lengths) {
    c.q_lengths = random_lengths(random, s.B, s.Nq);
    c.k_lengths = random_lengths(random, s.B, s.Nk);
  }
  if (x.documents) {
    const std::int64_t documents = random.integer(1, 4);
    c.q_offsets = random_offsets(random, documents, s.Nq);
    c.k_offsets = random_offsets(random, documents, s.Nk);
  }
  add_scale(c, random);
  return c;
}

double o_error_bound(const Case& c, double magnitude) {
  const double accumulation = unit_roundoff(side_type(c.dtype));
  const double terms = static_cast<double>(c.shape.D) + 8, keys = static_cast<double>(c.shape.Nk) + 8;
  return terms * accumulation * magnitude + 2 * keys * accumulation + 2 * unit_roundoff(c.dtype);
}

::testing::AssertionResult near_o_by_arithmetic(const Forward& got, const Oracle& want, const Case& c) {
  const double subnormal_unit = c.dtype == DType::f16 ? 0x1p-24 : 1e-30;
  for (std::size_t row = 0; row < want.rows.size(); ++row) {
    const double bound = o_error_bound(c, want.magnitude[row]);
    for (std::size_t d = 0; d < static_cast<std::size_t>(c.shape.Dv); ++d) {
      const std::size_t n = row * static_cast<std::size_t>(c.shape.Dv) + d;
      const auto ok = near(got.o.flat(static_cast<std::int64_t>(n)), want.o[n], bound * want.o_abs[n] + subnormal_unit);
      if (!ok) return ::testing::AssertionFailure() << "component " << d << " of row " << row << ": " << ok.message();
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace levelhead::test
