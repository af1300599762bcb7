// What holds for every problem, on every kernel: RapidCheck draws it, and shrinks one that fails.
#include <rapidcheck.h>

#include <cmath>
#include <cstdlib>

#include "support/oracle.hpp"
#include "support/random_case.hpp"

namespace levelhead::test {
namespace {

// One seed for everyone; RC_PARAMS="seed=... max_success=..." draws others.
[[maybe_unused]] const int repeatable = setenv("RC_PARAMS", "seed=20240131 max_success=50", 0);

class Properties : public KernelTest {
 protected:
  /// property(Parameters) fails through gtest's AssertionResult.
  template <class Property>
  void check(const Limits& limits, Property property) {
    const bool held = rc::check([&] {
      const Parameters x =
          draw_parameters([](std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }, limits);
      const ::testing::AssertionResult result = property(x);
      if (!result) {
        std::ostringstream text;
        text << x << ": " << result.message();
        RC_FAIL(text.str());
      }
    });
    EXPECT_TRUE(held) << "the problem is printed above";
  }
};

// A failure says where it happened.
::testing::AssertionResult in(const char* where, const ::testing::AssertionResult& result) {
  return result ? result : ::testing::AssertionFailure() << where << ": " << result.message();
}

::testing::AssertionResult holds() { return ::testing::AssertionSuccess(); }

// Rows [0, rows) of both, every head: o, lse and state.
::testing::AssertionResult same_rows(const Forward& got, const Forward& want, std::int64_t rows) {
  for (std::int64_t b = 0; b < want.shape.B; ++b) {
    for (std::int64_t h = 0; h < want.shape.Hq; ++h) {
      for (std::int64_t i = 0; i < rows; ++i) {
        if (const auto ok = same_bits(got.row_state(h, i, b), want.row_state(h, i, b)); !ok)
          return ::testing::AssertionFailure() << "row " << b << "," << h << "," << i << ": " << ok.message();
      }
    }
  }
  if (const auto ok = same_bits(got.o.slice(2, 0, rows), want.o.slice(2, 0, rows)); !ok)
    return ::testing::AssertionFailure() << "o: " << ok.message();
  return same_bits(got.lse.slice(2, 0, rows), want.lse.slice(2, 0, rows));
}

::testing::AssertionResult near_oracle(const Forward& got, const Oracle& want, const Case& c) {
  if (const auto ok = near_o_by_arithmetic(got, want, c); !ok) return ok;
  return near_statistics(got, want, c);
}

::testing::AssertionResult near_oracle(const Forward& got, const Case& c) {
  return near_oracle(got, materialise(c), c);
}

// o, lse and every statistic against the materialised oracle; `exact` too.
TEST_P(Properties, NearTheMaterialisedOracle) {
  check({}, [&](const Parameters& x) {
    Case c = make_case(type(), x);
    const Oracle want = materialise(c);
    if (const auto ok = near_oracle(run(c), want, c); !ok) return ok;
    c.statistics.precision = Precision::exact;
    return near_oracle(run(c), want, c);
  });
}

// Levels of statistics and numbers of threads change no bit.
TEST_P(Properties, StatisticsAndThreadsChangeNoBit) {
  check({}, [&](const Parameters& x) {
    Case c = make_case(type(), x);
    const Forward want = run(c, 1);
    if (const auto ok = same_bits(run(c, 3), want); !ok) return ok;
    for (const auto level : {StatisticsLevel::lse_max, StatisticsLevel::entropy}) {
      c.statistics.level = level;
      const Forward got = run(c, 2);
      if (const auto ok = same_bits(got.o, want.o); !ok) return ok;
      if (const auto ok = same_bits(got.lse, want.lse); !ok) return ok;
    }
    return holds();
  });
}

// The same number added to every logit of a row moves lse by it, and nothing else.
TEST_P(Properties, ShiftInvariance) {
  check({}, [&](const Parameters& x) {
    Parameters plain = x;
    plain.bias = 0;
    plain.sinks = false;  // a sink does not move with the keys
    Case c = make_case(type(), plain);
    const Oracle unshifted = materialise(c);
    c.bias = Tensor(DType::f32, {c.shape.Nq, 1});
    Random random(x.seed);
    for (std::int64_t i = 0; i < c.shape.Nq; ++i) c.bias->set_flat(i, static_cast<double>(random.integer(-8, 8)));
    const Forward got = run(c);
    const Oracle shifted = materialise(c);
    for (std::size_t row = 0; row < shifted.rows.size(); ++row) {
      const RowStatistics& want = unshifted.rows[row];
      const RowStatistics statistics = row_statistics(got.state[row], {});
      const double magnitude = shifted.magnitude[row];
      const double shift = want.count == 0 ? 0 : c.bias->flat(static_cast<std::int64_t>(row) % c.shape.Nq);
      const double lse = statistic_tolerance("lse", type(), Precision::fast, want.lse + shift, magnitude);
      const double entropy = statistic_tolerance("entropy", type(), Precision::fast, want.entropy, magnitude);
      if (const auto ok = near(statistics.lse, want.lse + shift, lse); !ok) return in("lse", ok);
      if (const auto ok = near(statistics.entropy, want.entropy, entropy); !ok) return in("entropy", ok);
      for (std::size_t d = 0; d < static_cast<std::size_t>(c.shape.Dv); ++d) {
        const std::size_t n = row * static_cast<std::size_t>(c.shape.Dv) + d;
        const double bound = o_error_bound(c, magnitude) * unshifted.o_abs[n] + 0x1p-24;
        if (const auto ok = near(got.o.flat(static_cast<std::int64_t>(n)), unshifted.o[n], bound); !ok) return ok;
      }
    }
    return holds();
  });
}

// Keys [begin, end) of a problem as one of its own, for merging: no sink, positions kept by the offset.
Case shard(const Case& whole, std::int64_t begin, std::int64_t end) {
  Case c = whole;
  c.shape.Nk = end - begin;
  c.k = whole.k.slice(2, begin, end);
  c.v = whole.v.slice(2, begin, end);
  if (c.mask) c.mask = whole.mask->slice_broadcast(-1, begin, end);
  if (c.bias) c.bias = whole.bias->slice_broadcast(-1, begin, end);
  c.window =
      Window::sliding(whole.window.left(), whole.window.right(), Align::at(whole.window.align().offset() - begin));
  c.sinks = {};
  return c;
}

// Keys cut at any places, empty shards too, and merged by the public call: the whole.
TEST_P(Properties, SplitAndMergeIsTheWhole) {
  Limits limits;
  limits.documents = false;
  check(limits, [&](const Parameters& x) {
    Parameters plain = x;
    plain.lengths = false;
    if (plain.policy == Policy::ssmax || std::holds_alternative<LogKeys>(plain.scale)) {  // they count the whole's keys
      plain.policy = Policy::per_row;
    }
    const Window& w = x.window;
    plain.window = Window::sliding(w.left(), w.right(), Align::at(w.align().offset()));
    const Case whole = make_case(type(), plain);
    const DType wide = side_type(type());
    Random random(x.seed);
    std::vector<std::int64_t> cuts{0, whole.shape.Nk};
    for (std::int64_t n = random.integer(0, 3); n > 0; --n) cuts.push_back(random.integer(0, whole.shape.Nk));
    std::sort(cuts.begin(), cuts.end());
    std::vector<Forward> runs;
    for (std::size_t n = 0; n + 1 < cuts.size(); ++n) {
      runs.push_back(forward(shard(whole, cuts[n], cuts[n + 1]), kernel(), 1, wide));
      for (RowState& s : runs.back().state) s.first_key += cuts[n];
    }
    std::vector<Part> parts(runs.size());
    for (std::size_t n = 0; n < runs.size(); ++n) {
      parts[n].o = runs[n].o.view();
      parts[n].state = runs[n].state;
    }
    Forward merged = forward(whole, kernel(), 1, wide);
    merged.o.fill_garbage();
    merged.lse.fill_garbage();
    Outputs outputs;
    outputs.o = merged.o.mutable_view();
    outputs.lse = merged.lse.mutable_view();
    outputs.state = merged.state;
    merge(parts, whole.sinks ? std::optional(whole.sinks->view()) : std::nullopt, outputs);
    return near_oracle(merged, whole);
  });
}

// Later tokens change no bit of the rows that do not see them.
TEST_P(Properties, CausalPrefix) {
  Limits limits;
  limits.queries = 80;
  limits.documents = false;
  check(limits, [&](const Parameters& x) {
    Parameters causal = x;
    causal.shape.Nk = causal.shape.Nq;
    causal.lengths = false;
    causal.window = Window::sliding(x.window.left(), 0, Align::top_left());
    const Case whole = make_case(type(), causal);
    const std::int64_t rows = Random(x.seed).integer(0, whole.shape.Nq);
    Case prefix = whole;
    prefix.shape.Nq = prefix.shape.Nk = rows;
    for (Tensor* t : {&prefix.q, &prefix.k, &prefix.v}) *t = t->slice(2, 0, rows);
    for (std::optional<Tensor>* t : {&prefix.mask, &prefix.bias}) {
      if (*t) *t = (*t)->slice_broadcast(-1, 0, rows).slice_broadcast(-2, 0, rows);
    }
    if (prefix.policy == Policy::per_row) prefix.scale_values = prefix.scale_values->slice(2, 0, rows);
    return same_rows(run(prefix), run(whole), rows);
  });
}

// A window and lengths are a mask that says the same.
TEST_P(Properties, WindowIsAMask) {
  Limits limits;
  limits.documents = false;
  check(limits, [&](const Parameters& x) {
    Parameters plain = x;
    plain.slopes = false;  // their offset is the window's
    const Case by_window = make_case(type(), plain);
    const Oracle oracle = materialise(by_window);
    Case by_mask = by_window;
    const Shape& s = by_mask.shape;
    by_mask.window = Window::all();
    by_mask.q_lengths = by_mask.k_lengths = {};
    by_mask.mask = Tensor(DType::boolean, {s.B, s.Hq, s.Nq, s.Nk});
    for (std::size_t n = 0; n < oracle.visible.size(); ++n)
      by_mask.mask->set_flat(static_cast<std::int64_t>(n), oracle.visible[n] ? 1 : 0);
    return same_bits(run(by_mask), run(by_window));
  });
}

// Grouped heads are key heads written once.
TEST_P(Properties, GroupedHeadsAreRepeatedHeads) {
  check({}, [&](const Parameters& x) {
    const Case grouped = make_case(type(), x);
    Case repeated = grouped;
    const Shape& s = grouped.shape;
    repeated.shape.Hk = s.Hq;
    repeated.k = Tensor(type(), {s.B, s.Hq, s.Nk, s.D});
    repeated.v = Tensor(type(), {s.B, s.Hq, s.Nk, s.Dv});
    const std::int64_t group = s.Hq / s.Hk;
    for (std::int64_t b = 0; b < s.B; ++b) {
      for (std::int64_t h = 0; h < s.Hq; ++h) {
        for (std::int64_t j = 0; j < s.Nk; ++j) {
          for (std::int64_t d = 0; d < s.D; ++d) repeated.k.set({b, h, j, d}, grouped.k.get({b, h / group, j, d}));
          for (std::int64_t d = 0; d < s.Dv; ++d) repeated.v.set({b, h, j, d}, grouped.v.get({b, h / group, j, d}));
        }
      }
    }
    return same_bits(run(repeated), run(grouped));
  });
}

// x with `padding` garbage tokens (NaN) behind it.
Tensor padded(const Tensor& x, std::int64_t padding) {
  Sizes sizes = x.sizes();
  const std::int64_t tokens = sizes[2];
  sizes[2] += padding;
  Tensor out = Tensor(x.dtype(), sizes).fill_garbage();
  for (std::int64_t n = 0; n < x.elements(); ++n) {
    const std::int64_t row = n / sizes[3], d = n % sizes[3], outer = row / tokens;
    out.set({outer / sizes[1], outer % sizes[1], row % tokens, d}, x.flat(n));
  }
  return out;
}

// Garbage behind the lengths, of queries and keys, changes no bit.
TEST_P(Properties, TrailingPadding) {
  Limits limits;
  limits.documents = false;
  check(limits, [&](const Parameters& x) {
    Parameters plain = x;
    plain.lengths = false;
    plain.mask = plain.mask == 0 ? 0 : 1 + ((plain.mask - 1) & 3);  // over batch items and heads only
    plain.bias = plain.bias == 0 ? 0 : 1 + ((plain.bias - 1) & 3);
    if (plain.policy == Policy::per_row) plain.policy = Policy::per_head;
    const Case exact = make_case(type(), plain);
    const Shape& s = exact.shape;
    Random random(x.seed);
    const std::int64_t queries = random.integer(0, 70), keys = random.integer(0, 70);
    Case c = exact;
    c.shape.Nq += queries;
    c.shape.Nk += keys;
    c.q = padded(c.q, queries);
    c.k = padded(c.k, keys);
    c.v = padded(c.v, keys);
    c.q_lengths = Tensor(DType::i32, {s.B}).fill(static_cast<double>(s.Nq));
    c.k_lengths = Tensor(DType::i32, {s.B}).fill(static_cast<double>(s.Nk));
    const Forward got = run(c);
    if (const auto ok = same_rows(got, run(exact), s.Nq); !ok) return ok;
    const Tensor padding = got.o.slice(2, s.Nq, s.Nq + queries);
    for (std::int64_t n = 0; n < padding.elements(); ++n) {
      if (const auto ok = near(padding.flat(n), 0, 0); !ok) return in("padding", ok);
    }
    return holds();
  });
}

// One query on its own gives the row of all queries.
TEST_P(Properties, DecodeRowIsPrefillRow) {
  Limits limits;
  limits.documents = false;
  check(limits, [&](const Parameters& x) {
    Parameters plain = x;
    plain.lengths = false;
    const Window& w = x.window;
    plain.window = Window::sliding(w.left(), w.right(), Align::at(w.align().offset()));
    const Case prefill = make_case(type(), plain);
    if (prefill.shape.Nq == 0) return holds();
    const std::int64_t i = Random(x.seed).integer(0, prefill.shape.Nq - 1);
    Case decode = prefill;
    decode.shape.Nq = 1;
    decode.q = prefill.q.slice(2, i, i + 1);
    for (std::optional<Tensor>* t : {&decode.mask, &decode.bias}) {
      if (*t) *t = (*t)->slice_broadcast(-2, i, i + 1);
    }
    if (decode.policy == Policy::per_row) decode.scale_values = decode.scale_values->slice(2, i, i + 1);
    decode.window = Window::sliding(w.left(), w.right(), Align::at(w.align().offset() + i));
    const Forward row = run(decode), all = run(prefill);
    for (std::int64_t b = 0; b < prefill.shape.B; ++b) {
      for (std::int64_t h = 0; h < prefill.shape.Hq; ++h) {
        if (row.row(h, 0, b).count != all.row(h, i, b).count)
          return ::testing::AssertionFailure()
                 << "counts " << row.row(h, 0, b).count << " and " << all.row(h, i, b).count;
      }
    }
    if (const auto ok = near_oracle(all, prefill); !ok) return in("prefill", ok);
    return in("decode", near_oracle(row, decode));
  });
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(, Properties, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace levelhead::test
