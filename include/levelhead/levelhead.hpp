// The whole public API.
#pragma once

#include "levelhead/attention.hpp"  // IWYU pragma: export
#include "levelhead/decode.hpp"     // IWYU pragma: export
#include "levelhead/scale.hpp"      // IWYU pragma: export
#include "levelhead/stats.hpp"      // IWYU pragma: export
#include "levelhead/tensor.hpp"     // IWYU pragma: export
#include "levelhead/verdict.hpp"    // IWYU pragma: export
#include "levelhead/version.hpp"    // IWYU pragma: export
