// All experiments, in the order they are told.
#pragma once

#include <span>
#include <string_view>

#include "lab/experiment.hpp"

namespace levelhead::lab {

extern const Experiment a1_dot_products, a2_variance, a3_range, a4_coins, a5_softmax, a6_one_winner, a7_winner,
    a11_scaled_weights, a14_original, table1_gaussian;

std::span<const Experiment* const> experiments();

/// The one of that name, or null.
const Experiment* find_experiment(std::string_view name);

}  // namespace levelhead::lab
