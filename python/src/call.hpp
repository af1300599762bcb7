// What Python hands over, as the inputs and options of one call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "array.hpp"
#include "levelhead/attention.hpp"

namespace levelhead::python {

/// A word of the command or an offset. Throws Error on another word.
using AlignSetting = std::variant<std::int64_t, std::string>;
Align align_of(const AlignSetting& setting);

/// The options as Python's words, numbers and None; arrays among them stand in the call's arrays.
struct Settings {
  std::optional<std::variant<double, std::string>> scale;
  bool causal = false;
  std::optional<AlignSetting> align;
  std::optional<std::pair<Window::Bound, Window::Bound>> window;
  double softcap = 0;
  std::optional<std::string> qk_norm;
  std::optional<std::string> statistics;  ///< a level by its name
  bool exact = false;
  std::optional<std::string> kernel;
};

/// One call. It owns what inputs and options view, and stays where it is made.
class Call {
 public:
  /// arrays: name of the argument -> Array. Throws Error on arguments that do not go together.
  Call(const nb::dict& arrays, const Settings& settings);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// The argument if it is given, with an axis in front if it has rank - 1.
  std::optional<TensorView> find(std::string_view name, int rank = 0) const;
  /// False if q, k and v came without B.
  bool batched() const noexcept { return batched_; }
  /// Another object that the inputs view.
  void keep(nb::object owner) { owner_ = std::move(owner); }

  Inputs inputs;
  Options options;
  std::vector<std::int64_t> lengths{};  ///< for inputs that are of no argument

 private:
  void place_tensors();
  void check_parameters(const Settings& settings) const;
  Scale choose_scale(const Settings& settings) const;

  std::map<std::string, nb::object, std::less<>> arrays_;
  nb::object owner_;
  bool batched_ = true;
  std::string kernel_;
};

void bind_settings(nb::module_& module);

}  // namespace levelhead::python
