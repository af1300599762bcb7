// Random attention problems: a few plain numbers name one, so that a failure can be shown, shrunk and repeated.
#pragma once

#include <functional>
#include <iosfwd>

#include "support/oracle.hpp"

namespace levelhead::test {

struct Parameters {
  Shape shape;  // Hq a multiple of Hk
  std::uint64_t seed = 0;
  Window window = Window::all(Align::top_left());  // with an alignment, so that any lengths are legal
  double softcap = 0;
  int mask = 0, bias = 0;  // 0: none; n: bits of n - 1 say which axes of [B, Hq, Nq, Nk] are whole, others are 1
  bool slopes = false, sinks = false, lengths = false, documents = false;  // not the last two together
  Policy policy = Policy::plain;
  Scale scale = InvSqrtDim{};
};
std::ostream& operator<<(std::ostream& out, const Parameters& x);

/// What a test wants of its problems.
struct Limits {
  std::int64_t queries = 12, keys = 150, dim = 24;  // largest sizes
  bool zero_sizes = true;
  bool documents = true;  // B = 1 then
};

/// A number of [low, high], both included. Small numbers are the simple choices, so that shrinking simplifies.
using Pick = std::function<std::int64_t(std::int64_t low, std::int64_t high)>;

Parameters draw_parameters(const Pick& pick, const Limits& limits = {});
Parameters random_parameters(Random& random, const Limits& limits = {});

Case make_case(DType type, const Parameters& parameters);

/// What rounding can make of o in this type, over sum_j p |v|: dot products of D terms, sums of n weights, and one
/// rounding of the weights and one of o to the type of q (f16 numbers below 2^-14 have a fixed unit besides, which
/// near_o_by_arithmetic adds). `magnitude` is L of docs/numbers.md.
double o_error_bound(const Case& c, double magnitude);
/// o of every row within that bound.
::testing::AssertionResult near_o_by_arithmetic(const Forward& got, const Oracle& want, const Case& c);

}  // namespace levelhead::test
