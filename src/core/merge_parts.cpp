// Key shards back into the whole: each row's states through the one merge, its outputs weighted by their sums.
#include <cmath>
#include <string>
#include <vector>

#include "core/check.hpp"
#include "core/element.hpp"
#include "levelhead/attention.hpp"

namespace levelhead {
namespace {

struct Sizes {
  std::int64_t B, Hq, Nq, Dv;
  std::int64_t rows() const { return B * Hq * Nq; }
};

void check_part(const Named& o, std::span<const RowState> state, const Sizes& sizes) {
  check_shape(o, {{"B", sizes.B}, {"Hq", sizes.Hq}, {"Nq", sizes.Nq}, {"Dv", sizes.Dv}});
  if (o.view.dtype != DType::f32 && o.view.dtype != DType::f64)
    fail(text(o), " is ", name_of(o.view.dtype), " but parts to be merged must be f32 or f64");
  if (static_cast<std::int64_t>(state.size()) != sizes.rows())
    fail("the state beside ", text(o), " holds ", state.size(), " rows but B * Hq * Nq = ", sizes.rows());
}

void check_outputs(const Outputs& out, const Sizes& sizes) {
  if (out.o) {
    check_shape({"o", *out.o}, {{"B", sizes.B}, {"Hq", sizes.Hq}, {"Nq", sizes.Nq}, {"Dv", sizes.Dv}});
    const DType type = out.o->dtype;
    if (type != DType::f64 && type != DType::f32 && type != DType::bf16 && type != DType::f16)
      fail(text({"o", *out.o}), " is ", name_of(type), " but must be a floating type");
  }
  if (out.lse) {
    check_shape({"lse", *out.lse}, {{"B", sizes.B}, {"Hq", sizes.Hq}, {"Nq", sizes.Nq}});
    check_number_type({"lse", *out.lse}, DType::f64);
  }
  if (!out.state.empty() && static_cast<std::int64_t>(out.state.size()) != sizes.rows())
    fail("state holds ", out.state.size(), " rows but B * Hq * Nq = ", sizes.rows());
}

Sizes check(std::span<const Part> parts, const std::optional<TensorView>& sinks, const Outputs& out) {
  if (parts.empty()) fail("merge needs at least one part");
  const TensorView& first = parts.front().o;
  check_view({"o of part 0", first});
  if (first.rank != 4) fail("o of part 0 has rank ", first.rank, " but needs [B, Hq, Nq, Dv]");
  const Sizes sizes{first.sizes[0], first.sizes[1], first.sizes[2], first.sizes[3]};
  Tensors read, written;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const std::string name = "o of part " + std::to_string(at);
    check_part({name, parts[at].o}, parts[at].state, sizes);
    read.push_back({"o of a part", parts[at].o});
  }
  if (sinks) {
    check_shape({"sinks", *sinks}, {{"Hq", sizes.Hq}});
    check_number_type({"sinks", *sinks}, DType::f64);
    read.push_back({"sinks", *sinks});
  }
  check_outputs(out, sizes);
  if (out.o) written.push_back({"o", *out.o});
  if (out.lse) written.push_back({"lse", *out.lse});
  check_apart(read, written);
  return sizes;
}

// The share of a part in the row's o: l_part e^(m_part - m) / (l [+ e^(sink - m)]).
double share(const RowState& part, const RowState& whole, const std::optional<double>& sink) {
  if (part.sum == 0) return 0;  // no key, or only -inf logits: its o says nothing of the whole
  const double denominator = whole.sum + (sink ? std::exp(*sink - whole.max) : 0.0);
  return part.sum * std::exp(part.max - whole.max) / denominator;
}

}  // namespace

void merge(std::span<const Part> parts, const std::optional<TensorView>& sinks, const Outputs& outputs) {
  const Sizes n = check(parts, sinks, outputs);
  const Writable o = outputs.o ? strided<void*>(*outputs.o) : Writable{};
  std::vector<double> shares(parts.size());
  for (std::int64_t row = 0; row < n.rows(); ++row) {
    const std::int64_t b = row / (n.Hq * n.Nq), h = row / n.Nq % n.Hq, i = row % n.Nq;
    RowState whole;
    for (const Part& part : parts) whole = merge(whole, part.state[static_cast<std::size_t>(row)]);
    const auto sink = sinks ? std::optional(load(sinks->data, sinks->dtype, h * sinks->strides[0])) : std::nullopt;
    for (std::size_t at = 0; at < parts.size(); ++at) {
      shares[at] = share(parts[at].state[static_cast<std::size_t>(row)], whole, sink);
    }
    const bool only_minus_infinity = whole.count > 0 && whole.sum == 0;
    for (std::int64_t c = 0; o && c < n.Dv; ++c) {
      double x = only_minus_infinity ? std::numeric_limits<double>::quiet_NaN() : 0;
      for (std::size_t at = 0; at < parts.size(); ++at) {
        // A share that underflowed still carries a NaN of its values, as one pass over all keys does.
        if (parts[at].state[static_cast<std::size_t>(row)].sum != 0)
          x += shares[at] * load(readable(parts[at].o), b, h, i, c);
      }
      store(o, b, h, i, c, x);
    }
    if (outputs.lse) {
      const auto& lse = *outputs.lse;
      store(lse.data, lse.dtype, b * lse.strides[0] + h * lse.strides[1] + i * lse.strides[2],
            log_sum_exp(whole, sink));
    }
    if (!outputs.state.empty()) outputs.state[static_cast<std::size_t>(row)] = whole;
  }
}

}  // namespace levelhead
