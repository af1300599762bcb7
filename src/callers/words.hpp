// Words that callers write for an option, turned into the library's types. `what` names the option in errors as its
// caller spells it ("--scale", "scale"); all throw Error with it and the text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "levelhead/attention.hpp"

namespace levelhead::callers {

/// Throws Error: "WHAT is 'TEXT' but must be RULE".
[[noreturn]] void refuse(std::string_view what, std::string_view text, std::string_view rule);

/// "a,b" -> {"a", "b"}; without the character the second is absent.
std::pair<std::string_view, std::optional<std::string_view>> split(std::string_view text, char at);

/// The whole text as a number of type T, or nothing.
template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A finite number and nothing else.
double parse_number(std::string_view what, std::string_view text);

/// "true" or "false", in any case.
bool parse_boolean(std::string_view what, std::string_view text);

/// top-left, bottom-right or an offset.
Align parse_align(std::string_view what, std::string_view text);

/// inv-sqrt-dim, none, inv-dim[:BASE], log-keys:N0, yarn:FACTOR[,MSCALE], ssmax or a number.
/// ssmax_s: the tensor that ssmax needs.
Scale parse_scale(std::string_view what, std::string_view text, const std::optional<TensorView>& ssmax_s);

/// l2 or rms.
QkNorm::Kind parse_qk_norm(std::string_view what, std::string_view text);

}  // namespace levelhead::callers
