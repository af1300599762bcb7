#include "callers/capture.hpp"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "callers/words.hpp"

namespace levelhead::callers {
namespace {

struct Name {
  std::int64_t layer = 0;
  char part = 0;  // q, k or v
};

// "layers.12.q"; nothing for any other name, layers.012.q among them.
std::optional<Name> parse_name(std::string_view name) {
  constexpr std::string_view start = "layers.";
  if (!name.starts_with(start)) return std::nullopt;
  const char* begin = name.data() + start.size();
  const char* end = name.data() + name.size();
  Name parsed;
  const auto [rest, error] = std::from_chars(begin, end, parsed.layer);
  if (error != std::errc{} || end - rest != 2 || *rest != '.') return std::nullopt;
  if (*begin == '-' || (*begin == '0' && rest - begin > 1)) return std::nullopt;
  parsed.part = rest[1];
  if (parsed.part != 'q' && parsed.part != 'k' && parsed.part != 'v') return std::nullopt;
  return parsed;
}

std::string layer_name(std::int64_t number) { return "layers." + std::to_string(number); }

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text.append(text.size() > 1 ? ", " : "").append(std::to_string(size));
  return text + "]";
}

void check_rank(const TensorEntry& entry) {
  if (entry.shape.size() == 3) return;
  throw Error(std::string(entry.name) + " has shape " + shape_text(entry.shape) +
              " but a capture holds [heads, tokens, dim]");
}

void check_layer(const CapturedLayer& layer) {
  const std::string name = layer_name(layer.number);
  if (layer.q == nullptr || layer.k == nullptr) {
    const std::string there = name + (layer.q != nullptr ? ".q" : layer.k != nullptr ? ".k" : ".v");
    throw Error(there + " is there but " + name + (layer.q == nullptr ? ".q" : ".k") + " is not");
  }
  check_rank(*layer.q);
  check_rank(*layer.k);
  if (layer.v == nullptr) return;
  check_rank(*layer.v);
  if (layer.v->shape[0] != layer.k->shape[0] || layer.v->shape[1] != layer.k->shape[1])
    throw Error(name + ".v has shape " + shape_text(layer.v->shape) + " but " + name + ".k has " +
                shape_text(layer.k->shape) + ": heads and tokens must agree");
}

void sort_tensors(Capture& capture) {
  std::map<std::int64_t, CapturedLayer> layers;
  for (const TensorEntry& entry : capture.file.tensors()) {
    const auto name = parse_name(entry.name);
    if (!name) {
      capture.others.push_back(escaped(entry.name));
      continue;
    }
    CapturedLayer& layer = layers[name->layer];
    layer.number = name->layer;
    (name->part == 'q' ? layer.q : name->part == 'k' ? layer.k : layer.v) = &entry;
  }
  if (layers.empty()) throw Error("no tensor layers.N.q is there, so there is nothing to judge");
  for (const auto& [number, layer] : layers) {
    check_layer(layer);
    capture.layers.push_back(layer);
  }
}

std::optional<std::int64_t> read_count(const Metadata& metadata, std::string_view key) {
  const auto text = metadata.find(key);
  if (!text) return std::nullopt;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  if (error != std::errc{} || end != text->data() + text->size() || count < 1)
    throw Error("metadata " + std::string(key) + " is '" + escaped(*text) + "' but must be a whole number above 0");
  return count;
}

std::vector<std::string> read_tokens(const Metadata& metadata) {
  const auto text = metadata.find("tokens");
  if (!text || text->empty()) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  std::vector<std::string> tokens;
  bool good = json.is_array();
  for (const auto& token : json) {
    good = good && token.is_string();
    if (good) tokens.push_back(token.get<std::string>());
  }
  if (!good) throw Error("metadata tokens is no JSON list of strings");
  return tokens;
}

void check_tokens(const Capture& capture) {
  if (capture.tokens.empty()) return;
  for (const CapturedLayer& layer : capture.layers)
    if (static_cast<std::int64_t>(capture.tokens.size()) != layer.q->shape[1])
      throw Error("metadata tokens lists " + std::to_string(capture.tokens.size()) + " tokens but " +
                  layer_name(layer.number) + ".q has " + std::to_string(layer.q->shape[1]));
}

void read_scale(Capture& capture, const CaptureOptions& options) {
  const auto text = capture.file.metadata().find("scale");
  const Spelling& spelling = options.spelling;
  const bool causal_too = !capture.file.metadata().find("causal") && !options.causal;
  if (!text && !options.scale)
    throw Error("metadata scale is missing: give " + std::string(spelling.scale) +
                (causal_too ? ", and " + std::string(spelling.causal) : ""));
  if (text) capture.own_scale = parse_number("metadata scale", *text);
  capture.scale = options.scale ? *options.scale : *capture.own_scale;
}

// Causal over unequal numbers of queries and keys has two meanings; the file can't say which one it was.
void read_window(Capture& capture, const CaptureOptions& options) {
  const auto text = capture.file.metadata().find("causal");
  if (!text && !options.causal) throw Error("metadata causal is missing: give " + std::string(options.spelling.causal));
  capture.causal = options.causal ? *options.causal : parse_boolean("metadata causal", *text);
  capture.causal_given = options.causal.has_value();
  if (!capture.causal) return;
  for (const CapturedLayer& layer : capture.layers)
    if (layer.q->shape[1] != layer.k->shape[1] && !options.align)
      throw Error(layer_name(layer.number) + " has " + std::to_string(layer.q->shape[1]) + " queries and " +
                  std::to_string(layer.k->shape[1]) + " keys, so causal needs " + std::string(options.spelling.align));
  capture.window = Window::causal(options.align.value_or(Align()));
}

void read_metadata(Capture& capture, const CaptureOptions& options) {
  const Metadata& metadata = capture.file.metadata();
  read_scale(capture, options);
  read_window(capture, options);
  if (const auto model = metadata.find("model"); model && !model->empty()) capture.model = *model;
  capture.d_model = read_count(metadata, "d_model");
  capture.layers_of_model = read_count(metadata, "layers_of_model");
  if (const auto mscale = metadata.find("yarn_mscale"))
    capture.yarn_mscale = parse_number("metadata yarn_mscale", *mscale);
  capture.tokens = read_tokens(metadata);
  const auto captured = static_cast<std::int64_t>(capture.layers.size());
  if (capture.layers_of_model && *capture.layers_of_model < captured)
    throw Error("metadata layers_of_model is " + std::to_string(*capture.layers_of_model) + " but " +
                std::to_string(captured) + " layers are there");
}

}  // namespace

Capture read_capture(SafetensorsFile file, const CaptureOptions& options) {
  Capture capture(std::move(file));
  try {
    sort_tensors(capture);
    read_metadata(capture, options);
    check_tokens(capture);
  } catch (const Error& error) {
    throw Error(escaped(capture.file.name()) + ": " + error.what());
  }
  return capture;
}

}  // namespace levelhead::callers
