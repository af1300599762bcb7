#include "callers/words.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "io/file_error.hpp"

namespace levelhead::callers {
namespace {

std::optional<double> parse_finite(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

double parse_scale_number(std::string_view what, std::string_view scale, std::string_view text, std::string_view rule) {
  const auto value = parse_finite(text);
  if (!value) refuse(what, scale, rule);
  return *value;
}

Yarn parse_yarn(std::string_view what, std::string_view scale, const std::optional<std::string_view>& parameters) {
  constexpr std::string_view rule = "yarn:FACTOR or yarn:FACTOR,MSCALE with numbers";
  if (!parameters) refuse(what, scale, rule);
  const auto [factor, mscale] = split(*parameters, ',');
  Yarn yarn;
  yarn.factor = parse_scale_number(what, scale, factor, rule);
  if (mscale) yarn.mscale = parse_scale_number(what, scale, *mscale, rule);
  return yarn;
}

}  // namespace

void refuse(std::string_view what, std::string_view text, std::string_view rule) {
  throw Error(std::string(what) + " is '" + escaped(text) + "' but must be " + std::string(rule));
}

std::pair<std::string_view, std::optional<std::string_view>> split(std::string_view text, char at) {
  const std::size_t place = text.find(at);
  if (place == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, place), text.substr(place + 1)};
}

double parse_number(std::string_view what, std::string_view text) {
  const auto value = parse_finite(text);
  if (!value) refuse(what, text, "a finite number");
  return *value;
}

bool parse_boolean(std::string_view what, std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower == "true") return true;
  if (lower == "false") return false;
  refuse(what, text, "true or false");
}

Align parse_align(std::string_view what, std::string_view text) {
  if (text == "top-left" || text == "top_left") return Align::top_left();
  if (text == "bottom-right" || text == "bottom_right") return Align::bottom_right();
  const auto offset = parse_whole<std::int64_t>(text);
  if (!offset) refuse(what, text, "top-left, bottom-right or a whole number");
  return Align::at(*offset);
}

Scale parse_scale(std::string_view what, std::string_view text, const std::optional<TensorView>& ssmax_s) {
  const auto [name, parameter] = split(text, ':');
  if (name == "inv-dim") {
    if (!parameter) return InvDim{};
    return InvDim{parse_scale_number(what, text, *parameter, "inv-dim or inv-dim:BASE with a number")};
  }
  if (name == "log-keys") {
    if (!parameter) refuse(what, text, "log-keys:N0 with a number");
    return LogKeys{parse_scale_number(what, text, *parameter, "log-keys:N0 with a number")};
  }
  if (name == "yarn") return parse_yarn(what, text, parameter);
  if (text == "inv-sqrt-dim") return InvSqrtDim{};
  if (text == "none") return Constant{1};
  if (text == "ssmax") {
    if (!ssmax_s) throw Error(std::string(what) + " ssmax needs the tensor ssmax_s, and there is none");
    return Ssmax{*ssmax_s};
  }
  return Constant{parse_scale_number(
      what, text, text, "inv-sqrt-dim, none, inv-dim[:BASE], log-keys:N0, ssmax, yarn:FACTOR[,MSCALE] or a number")};
}

QkNorm::Kind parse_qk_norm(std::string_view what, std::string_view text) {
  if (text == "l2") return QkNorm::Kind::l2;
  if (text == "rms") return QkNorm::Kind::rms;
  refuse(what, text, "l2 or rms");
}

}  // namespace levelhead::callers
