// The sentences of `check`, for every form they are shown in: what was judged, the number, what to do next.
#pragma once

#include <string>

#include "callers/measure.hpp"
#include "cli/shared.hpp"

namespace levelhead::cli {

/// "10 of 30 layers, 9 heads (3 for keys), 128 tokens, D 64, causal"
std::string facts_text(const Capture& capture, const Judged& judged);

/// "scale 0.176777 = 1/sqrt(D) = 1/sqrt(Dv)"
std::string scale_text(const Capture& capture, const Judged& judged);

/// "from 10 of 30 layers", or nothing when all of the model's layers are there.
std::string from_text(const Capture& capture);

/// The number that was judged with its distances to both limits: H75, or with Rule::fresh the spread of the heads.
std::string evidence_text(const Judged& judged);

/// What to do next; commands stand in `backticks`.
std::string next_text(const Capture& capture, const Judged& judged);

/// How far the verdict can be trusted.
std::string limits_text(Rule rule);

/// evidence_text and next_text of fresh weights.
std::string fresh_evidence_text(const FreshVerdict& fresh, const Judged& judged);
std::string fresh_next_text(const Capture& capture, const Judged& judged);

/// "1 head", "2 heads".
std::string counted(std::int64_t n, std::string_view one, std::string_view many);

}  // namespace levelhead::cli
