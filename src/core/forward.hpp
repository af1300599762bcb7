// Forward in two steps, for callers that must know that nothing is wrong before they change anything of their own.
#pragma once

#include "core/plan.hpp"
#include "core/problem.hpp"
#include "levelhead/attention.hpp"

namespace levelhead {

struct CheckedForward {
  Problem problem;
  ForwardOutputs outputs;
  Plan plan;
};

/// Reads no element of q, k and v. Throws Error.
CheckedForward check_forward(Context& context, const Inputs& inputs, const Options& options, const Outputs& outputs);

/// inputs and options as they were checked.
RunInfo run_forward(Context& context, CheckedForward& call, const Inputs& inputs, const Options& options);

}  // namespace levelhead
