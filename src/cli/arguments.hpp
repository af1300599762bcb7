// What users write after an option, turned into the library's types. All throw Error with the option and the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "levelhead/attention.hpp"

namespace levelhead::cli {

/// The arguments in the order CLI11 wants them (last first), `--causal true|false` joined into one.
std::vector<std::string> reversed_arguments(int argc, char** argv);

/// A finite number and nothing else. `what` names it in the error: "--scale", "metadata scale".
double parse_number(std::string_view what, std::string_view text);

/// "true" or "false", in any case.
bool parse_boolean(std::string_view what, std::string_view text);

/// top-left, bottom-right or an offset.
Align parse_align(std::string_view text);

/// LEFT,RIGHT: counts of keys or `inf`; absent is no bound. With causal, right becomes 0.
Window parse_window(const std::optional<std::string>& text, bool causal, Align align);

/// --scale of attend: inv-sqrt-dim, none, inv-dim[:BASE], log-keys:N0, yarn:FACTOR[,MSCALE], ssmax or a number.
/// ssmax_s: the tensor that ssmax needs.
Scale parse_scale(std::string_view text, const std::optional<TensorView>& ssmax_s);

/// l2 or rms.
QkNorm::Kind parse_qk_norm(std::string_view text);

}  // namespace levelhead::cli
