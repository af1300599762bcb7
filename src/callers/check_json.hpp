// A judged capture as `check --json` and Python's check give it.
#pragma once

#include "callers/json.hpp"
#include "callers/measure.hpp"

namespace levelhead::callers {

Json check_json(const Capture& capture, const Judged& judged);

}  // namespace levelhead::callers
