// The parts that make_problem is made of; each checks and resolves its share of the inputs.
#pragma once

#include "core/problem.hpp"

namespace levelhead {

/// Lengths, documents, window and alignment: fills segments, left and right.
void resolve_positions(Problem& problem, const Inputs& inputs, const Window& window);

/// The policy's parameters and the shapes of its tensors. The multipliers come later, from fill_multipliers.
void check_scale(Problem& problem, const Scale& scale);

}  // namespace levelhead
