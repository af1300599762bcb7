// Any bytes as the capture that `levelhead check` judges: a verdict or an error, as text and as JSON.
#include <array>

#include "cli/check_compare.hpp"
#include "cli/check_output.hpp"
#include "fuzz/target.hpp"

namespace levelhead::fuzz {
namespace {

constexpr std::int64_t most_pairs = 1 << 14;

/// Pairs of queries and keys, so that an input is measured in no time. Sizes are >= 0 and each below 2^62.
bool is_small(const cli::Capture& capture) {
  std::int64_t pairs = 0;
  for (const cli::CapturedLayer& layer : capture.layers) {
    const auto q = layer.q->shape, k = layer.k->shape;
    for (const std::int64_t size : {q[0], q[1], q[2], k[0], k[1], layer.v != nullptr ? layer.v->shape[2] : 0})
      if (size > 256) return false;
    pairs += (q[0] + 1) * (q[1] + 1) * (k[1] + 1);
  }
  return pairs <= most_pairs;
}

constexpr std::array screens{cli::Screen{80, true, true}, cli::Screen{20, false, false}};

void require_ascii(const cli::Screen& screen, const std::string& text) {
  require(screen.utf8 || std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }),
          "a screen without UTF-8 gets ASCII");
}

void require_json(const cli::Json& json) { require(cli::Json::accept(cli::to_line(json)), "JSON is valid"); }

void judge(const cli::Capture& capture, cli::Rule rule) {
  cli::Selection selection;
  for (int part = 0; part < 2; ++part) {
    const cli::Judged judged = cli::measure(capture, selection, rule, 1);
    for (const cli::Screen& screen : screens) {
      std::string text = cli::header_text(screen, capture, judged) + cli::verdict_text(screen, capture, judged);
      text += rule == cli::Rule::fresh ? cli::fresh_layer_table(screen, judged) : cli::layer_table(screen, judged);
      text += rule == cli::Rule::fresh ? cli::fresh_head_table(screen, judged) : cli::head_table(screen, judged);
      if (selection.head) text += cli::row_tables(screen, capture, judged);
      require_ascii(screen, text);
    }
    require_json(cli::check_json(capture, judged));
    selection.layer = capture.layers.back().number;
    selection.head = 0;
  }
}

/// Against itself at another scale.
void compare(cli::Checked a, cli::Checked b) {
  b.capture.scale *= 2;
  for (cli::Checked* side : {&a, &b}) side->judged = cli::measure(side->capture, {}, cli::Rule::h75, 1);
  const cli::Comparison comparison = cli::compare(a, b);
  for (const cli::Screen& screen : screens) require_ascii(screen, cli::compare_text(screen, comparison));
  require_json(cli::compare_json(comparison));
}

void run(std::span<const std::byte> bytes) {
  try {
    cli::CaptureOptions options;
    options.align = Align::bottom_right();
    const auto read = [&] { return cli::read_capture(SafetensorsFile::from_bytes(bytes, "fuzzed"), options); };
    const cli::Capture capture = read();
    if (!is_small(capture)) return;
    for (const cli::Rule rule : {cli::Rule::h75, cli::Rule::fresh}) judge(capture, rule);
    compare({read(), {}}, {read(), {}});
  } catch (const FileError&) {
  } catch (const Error& refused) {
    require_named(refused);
  }
}

}  // namespace
}  // namespace levelhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  levelhead::fuzz::run(levelhead::fuzz::bytes_of(data, size));
  return 0;
}
