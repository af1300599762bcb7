#include "lab/registry.hpp"

#include <algorithm>
#include <array>

namespace levelhead::lab {

std::span<const Experiment* const> experiments() {
  static constexpr std::array all{&a1_dot_products, &a2_variance, &a3_range,           &a4_coins,     &a5_softmax,
                                  &a6_one_winner,   &a7_winner,   &a11_scaled_weights, &a14_original, &table1_gaussian};
  return all;
}

const Experiment* find_experiment(std::string_view name) {
  const auto all = experiments();
  const auto found = std::find_if(all.begin(), all.end(), [name](const Experiment* e) { return e->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace levelhead::lab
