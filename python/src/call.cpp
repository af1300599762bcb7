#include "call.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "callers/batch.hpp"
#include "callers/words.hpp"

namespace levelhead::python {
namespace {

const TensorView& view_of(const nb::object& array) { return nb::cast<const Array&>(array).view(); }

Window window_of(const Settings& settings) {
  const Align align = settings.align ? align_of(*settings.align) : Align();
  if (!settings.window) return settings.causal ? Window::causal(align) : Window::all(align);
  const auto [left, right] = *settings.window;
  return Window::sliding(left, settings.causal ? Window::Bound(0) : right, align);
}

StatisticsLevel level_of(std::string_view name) {
  if (name == "lse_max") return StatisticsLevel::lse_max;
  if (name == "entropy") return StatisticsLevel::entropy;
  if (name == "all") return StatisticsLevel::all;
  callers::refuse("statistics", name, "False, True, 'lse_max', 'entropy' or 'all'");
}

bool is_ssmax(const Settings& settings) {
  const auto* word = settings.scale ? std::get_if<std::string>(&*settings.scale) : nullptr;
  return word != nullptr && *word == "ssmax";
}

}  // namespace

Align align_of(const AlignSetting& setting) {
  if (const auto* offset = std::get_if<std::int64_t>(&setting)) return Align::at(*offset);
  return callers::parse_align("align", std::get<std::string>(setting));
}

Call::Call(const nb::dict& arrays, const Settings& settings) {
  for (const auto& [name, array] : arrays) arrays_.emplace(nb::cast<std::string>(name), nb::borrow(array));
  place_tensors();
  check_parameters(settings);
  options.scale = choose_scale(settings);
  options.window = window_of(settings);
  options.softcap = settings.softcap;
  if (settings.statistics) options.statistics.level = level_of(*settings.statistics);
  options.statistics.precision = settings.exact ? Precision::exact : Precision::fast;
  if (settings.kernel && settings.kernel->empty()) throw Error("kernel is given an empty name");
  kernel_ = settings.kernel.value_or("");
  options.kernel = kernel_;
}

std::optional<TensorView> Call::find(std::string_view name, int rank) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) return std::nullopt;
  return callers::with_rank(view_of(found->second), rank);
}

void Call::place_tensors() {
  const auto axes = [this](std::string_view name) { return static_cast<std::size_t>(find(name)->rank); };
  batched_ = callers::is_batched(axes("q"), axes("k"), axes("v"));
  const int full = batched_ ? 0 : max_rank;
  inputs.q = *find("q", full);
  inputs.k = *find("k", full);
  inputs.v = *find("v", full);
  inputs.mask = find("mask");
  inputs.bias = find("bias");
  inputs.alibi_slopes = find("alibi_slopes");
  inputs.sinks = find("sinks");
  inputs.q_lengths = find("q_lengths");
  inputs.k_lengths = find("k_lengths");
  inputs.q_offsets = find("q_offsets");
  inputs.k_offsets = find("k_offsets");
}

// Parameters without their option would be taken and not used: an error, never silence.
void Call::check_parameters(const Settings& settings) const {
  const auto has = [this](std::string_view name) { return arrays_.find(name) != arrays_.end(); };
  if (has("qk_gain") && !settings.qk_norm) throw Error("qk_gain is given but qk_norm is not");
  if (has("ssmax_s") && !is_ssmax(settings)) throw Error("ssmax_s is given but scale='ssmax' is not");
  if (settings.qk_norm && (settings.scale || has("scale")))
    throw Error("qk_norm and scale are both given, but only one can hold");
}

Scale Call::choose_scale(const Settings& settings) const {
  if (settings.qk_norm) return QkNorm{callers::parse_qk_norm("qk_norm", *settings.qk_norm), find("qk_gain")};
  if (const auto values = find("scale")) {
    if (values->rank == 1) return PerHead{*values};
    return PerRow{*find("scale", batched_ ? 0 : 3)};
  }
  if (!settings.scale) return InvSqrtDim{};
  if (const auto* number = std::get_if<double>(&*settings.scale)) return Constant{*number};
  return callers::parse_scale("scale", std::get<std::string>(*settings.scale), find("ssmax_s"));
}

void bind_settings(nb::module_& module) {
  nb::class_<Settings>(module, "Settings", "The options of a call as words, numbers and None.")
      .def(nb::init<>())
      .def_rw("scale", &Settings::scale, nb::arg().none())
      .def_rw("causal", &Settings::causal)
      .def_rw("align", &Settings::align, nb::arg().none())
      .def_rw("window", &Settings::window, nb::arg().none())
      .def_rw("softcap", &Settings::softcap)
      .def_rw("qk_norm", &Settings::qk_norm, nb::arg().none())
      .def_rw("statistics", &Settings::statistics, nb::arg().none())
      .def_rw("exact", &Settings::exact)
      .def_rw("kernel", &Settings::kernel, nb::arg().none());
}

}  // namespace levelhead::python
