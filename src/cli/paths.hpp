// Where output may go: asked before a long run, not after it.
#pragma once

#include <span>
#include <string>

namespace levelhead::cli {

/// Throws Error if `output` is empty or one of `inputs` by any name (links included): input is never written over.
/// Throws FileError if it is a folder or its folder does not exist. option: as in "--output".
void check_output_path(const std::string& option, const std::string& output, std::span<const std::string> inputs);

/// check_output_path, and throws Error where `output` holds something that is not JSON: a capture given where the
/// name of the JSON belongs would be lost.
void check_json_path(const std::string& option, const std::string& output, std::span<const std::string> inputs);

/// The same for a page.
void check_page_path(const std::string& option, const std::string& output, std::span<const std::string> inputs);

}  // namespace levelhead::cli
