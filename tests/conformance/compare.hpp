// The suites' comparison: |got - expected| <= atol + rtol |expected|, element by element.
#pragma once

#include <cmath>
#include <optional>
#include <sstream>
#include <string>

#include "core/element.hpp"
#include "io/tensor.hpp"

namespace levelhead::conformance {

/// A NaN agrees with a NaN alone and an infinity with the same infinity alone: neither is close to any number.
inline bool close(double got, double expected, double rtol, double atol) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= atol + rtol * std::abs(expected);
}

/// Nothing if they agree in type, shape and every element; else what the first disagreement is, and how many there are.
inline std::optional<std::string> difference(const Tensor& got, const Tensor& expected, double rtol, double atol) {
  if (got.dtype() != expected.dtype()) return "the types differ";
  if (got.shape() != expected.shape()) return "the shapes differ";
  std::ostringstream text;
  text.precision(9);
  const auto elements = static_cast<std::int64_t>(expected.bytes().size() / size_of(expected.dtype()));
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < elements; ++at) {
    const double a = load(got.bytes().data(), got.dtype(), at), b = load(expected.bytes().data(), expected.dtype(), at);
    if (close(a, b, rtol, atol) || wrong++ > 0) continue;
    text << "element " << at << " is " << a << " but " << b << " is expected";
  }
  if (wrong == 0) return std::nullopt;
  text << ", and so differ " << wrong << " of " << elements;
  return text.str();
}

}  // namespace levelhead::conformance
