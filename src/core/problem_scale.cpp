// What a scale policy may be given. The numbers themselves are made in scale.cpp.
#include <cmath>

#include "core/check.hpp"
#include "core/problem_parts.hpp"
#include "core/scale.hpp"

namespace levelhead {
namespace {

struct CheckScale {
  Problem& p;

  void operator()(const InvSqrtDim&) const {}
  void operator()(const Constant& s) const {
    if (!std::isfinite(s.value)) fail("the constant scale is ", s.value, " but must be finite");
    check_fits("the constant scale " + text(s.value), s);
  }
  void operator()(const InvDim& s) const {
    if (!(s.base > 0) || std::isinf(s.base)) fail("the base of inv_dim is ", s.base, " but must be finite and > 0");
    check_fits("inv_dim with base " + text(s.base), s);
  }
  void operator()(const Yarn& s) const {
    if (!(s.factor > 0) || std::isinf(s.factor))
      fail("the factor of yarn is ", s.factor, " but must be finite and > 0");
    if (!std::isfinite(s.mscale)) fail("the mscale of yarn is ", s.mscale, " but must be finite");
    check_fits("yarn with factor " + text(s.factor) + " and mscale " + text(s.mscale), s);
  }
  void operator()(const LogKeys& s) const {
    if (!(s.n0 > 1) || std::isinf(s.n0)) fail("the n0 of log_keys is ", s.n0, " but must be finite and > 1");
  }
  void operator()(const PerHead& s) const { per_head({"scale", s.values}); }
  void operator()(const PerRow& s) const {
    check_shape({"scale", s.values}, {{"B", p.B}, {"Hq", p.Hq}, {"Nq", p.Nq}});
    check_number_type({"scale", s.values}, p.dtype);
    p.scale_tensor = Named{"scale", s.values};
  }
  void operator()(const Ssmax& s) const { per_head({"ssmax_s", s.s}); }
  void operator()(const QkNorm& s) const {
    if (s.gain) per_head({"qk_gain", *s.gain});
  }

  void per_head(const Named& tensor) const {
    check_shape(tensor, {{"Hq", p.Hq}});
    check_number_type(tensor, p.dtype);
    p.scale_tensor = tensor;
  }
  // A legal parameter may still leave the multiplier's type.
  void check_fits(std::string_view what, const Scale& scale) const {
    const double multiplier = *shared_multiplier(scale, p.D, p.dtype);
    if (!std::isfinite(multiplier))
      fail(what, " gives the multiplier ", multiplier, " at D = ", p.D, ", which must be finite in ",
           p.dtype == DType::f64 ? "f64" : "f32");
  }
};

}  // namespace

void check_scale(Problem& p, const Scale& scale) { std::visit(CheckScale{p}, scale); }

}  // namespace levelhead
