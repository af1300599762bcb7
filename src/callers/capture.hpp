// Captured activations: what a safetensors file of layers.N.q, .k and .v says about itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/safetensors.hpp"
#include "levelhead/attention.hpp"

namespace levelhead::callers {

struct CapturedLayer {
  std::int64_t number = 0;
  const TensorEntry* q = nullptr;  ///< [heads, tokens, dim]
  const TensorEntry* k = nullptr;
  const TensorEntry* v = nullptr;  ///< optional
};

/// How the options below are written, for errors that ask for one.
struct Spelling {
  std::string_view scale = "--scale X", causal = "--causal true or --causal false",
                   align = "--align top-left, --align bottom-right or --align OFFSET";
};

/// What options say instead of the metadata.
struct CaptureOptions {
  std::optional<double> scale;
  std::optional<bool> causal;
  std::optional<Align> align;
  Spelling spelling{};
};

struct Capture {
  explicit Capture(SafetensorsFile opened) : file(std::move(opened)) {}

  SafetensorsFile file;
  double scale = 0;                           ///< the one asked for, else the capture's own
  std::optional<double> own_scale;            ///< of the metadata
  Window window = Window::all();              ///< causal or all
  bool causal = false, causal_given = false;  ///< given: by an option
  std::optional<std::string> model;
  std::optional<std::int64_t> d_model, layers_of_model;
  std::optional<double> yarn_mscale;
  std::vector<std::string> tokens;    ///< empty when not known
  std::vector<CapturedLayer> layers;  ///< by number
  std::vector<std::string> others;    ///< tensors that are no part of it
};

/// Sorts the tensors and reads the metadata. Throws Error, naming the file, on anything that is missing or does not
/// make sense.
Capture read_capture(SafetensorsFile file, const CaptureOptions& options);

}  // namespace levelhead::callers
