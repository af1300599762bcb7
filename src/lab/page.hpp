// Findings as one page that loads nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lab/experiment.hpp"

namespace levelhead::lab {

/// The whole HTML file: each claim as told, its charts and tables, its verdict.
std::string page(std::span<const Finding> findings, std::uint64_t seed);

}  // namespace levelhead::lab
