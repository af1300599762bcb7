// The head size of the original Transformer, from its own numbers (Vaswani et al. 2017, section 3.2.2, as reported),
// and the divisor that the library takes for features split into that many heads.
#include <fmt/format.h>

#include <vector>

#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

struct Model {
  const char* name;
  std::int64_t d_model, heads;
};
constexpr Model base{"Transformer, base", 512, 8}, big{"Transformer, big", 1024, 16};

// One token of d_model ones, seen as heads: the raw product of a head is d_k, so logit / d_k is the multiplier.
double multiplier(Context& context, const Model& model) {
  const std::int64_t d_k = model.d_model / model.heads;
  const std::vector<double> ones(static_cast<std::size_t>(model.d_model), 1.0);
  std::vector<RowState> state(static_cast<std::size_t>(model.heads));
  const Inputs inputs{.q = view(ones.data(), {1, model.heads, 1, d_k}),
                      .k = view(ones.data(), {1, model.heads, 1, d_k}),
                      .v = view(ones.data(), {1, model.heads, 1, d_k})};
  forward(context, inputs, {}, {.state = state});
  return state.front().max / static_cast<double>(d_k);
}

void run(Context& context, Lab& lab) {
  const auto emit = [&](const Model& model, Fields told) {
    lab.emit({{{"model", model.name}, {"d_model", model.d_model}, {"heads", model.heads}},
              {{"d_k", model.d_model / model.heads}, {"divisor", 1 / multiplier(context, model)}},
              std::move(told)});
  };
  emit(base, {{"d_k", std::int64_t{512}}});
  emit(big, {});
}

Conclusion judge(std::span<const Row> rows) {
  for (const Row& row : rows) {
    if (row.told.empty()) continue;
    const double told = number(row.told, "d_k"), d_k = number(row.measured, "d_k");
    return {told == d_k ? Outcome::holds : Outcome::fails,
            fmt::format("{} features over {} heads are {} each{}", number(row.parameters, "d_model"),
                        number(row.parameters, "heads"), d_k,
                        told == number(row.parameters, "d_model") ? fmt::format("; {} is d_model", told)
                                                                  : fmt::format("; told {}", told)),
            {}};
  }
  return {Outcome::inconclusive, "nothing was told", {}};
}

Exhibit exhibit(std::span<const Row> rows) {
  Table table{"As reported by Vaswani et al. 2017; d_k and the divisor follow",
              {"model", "d_model", "heads", "d_k", "told", "divisor"},
              {}};
  for (const Row& row : rows)
    table.cells.push_back({text(row.parameters, "model"), fmt::format("{}", number(row.parameters, "d_model")),
                           fmt::format("{}", number(row.parameters, "heads")),
                           fmt::format("{}", number(row.measured, "d_k")),
                           row.told.empty() ? "-" : fmt::format("{}", number(row.told, "d_k")),
                           fmt::format("{:.4g}", number(row.measured, "divisor"))});
  return {{std::move(table)}};
}

}  // namespace

const Experiment a14_original{.name = "a14",
                              .title = "The original's d_k",
                              .question = "What is d_k in the original Transformer?",
                              .claim = "The original Transformer fixes d_k = 512.",
                              .run = run,
                              .judge = judge,
                              .exhibit = exhibit};

}  // namespace levelhead::lab
