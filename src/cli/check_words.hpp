// The sentences of `check`, for every form they are shown in: what was judged, the number, what to do next.
#pragma once

#include <string>

#include "cli/measure.hpp"

namespace levelhead::cli {

/// "10 of 30 layers, 9 heads (3 for keys), 128 tokens, D 64, causal"
std::string facts_text(const Capture& capture, const Judged& judged);

/// "scale 0.176777 = 1/sqrt(D) = 1/sqrt(Dv)"
std::string scale_text(const Capture& capture, const Judged& judged);

/// "from 10 of 30 layers", or nothing when all of the model's layers are there.
std::string from_text(const Capture& capture);

/// H75 with its distances to both limits.
std::string h75_text(const Judged& judged);

/// What to do next; commands stand in `backticks`.
std::string next_text(const Capture& capture, const Judged& judged);

/// How far H75 can be trusted.
std::string limits_text();

}  // namespace levelhead::cli
