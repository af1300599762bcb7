// How findings of the lab are read on a terminal.
#pragma once

#include <span>
#include <string>

#include "cli/terminal.hpp"
#include "lab/experiment.hpp"

namespace levelhead::cli {

/// Name and title of each experiment, one a line.
std::string list_text(const Screen& screen, std::span<const lab::Experiment* const> experiments);

/// The claim as told, what was measured, the verdict with its reason.
std::string finding_text(const Screen& screen, const lab::Finding& finding);

/// One line per finding: name, verdict, title.
std::string summary_text(const Screen& screen, std::span<const lab::Finding> findings);

}  // namespace levelhead::cli
