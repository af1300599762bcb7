// Any bytes as the capture that `levelhead check` judges: a verdict or an error, as text and as JSON.
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

void judge(const cli::Capture& capture) {
  cli::Selection selection;
  for (int part = 0; part < 2; ++part) {
    const cli::Judged judged = cli::measure(capture, selection, 1);
    for (const cli::Screen& screen : {cli::Screen{80, true, true}, cli::Screen{20, false, false}}) {
      std::string text = cli::header_text(screen, capture, judged) + cli::layer_table(screen, judged) +
                         cli::head_table(screen, judged) + cli::verdict_text(screen, capture, judged);
      if (selection.head) text += cli::row_tables(screen, capture, judged);
      require(screen.utf8 || std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }),
              "a screen without UTF-8 gets ASCII");
    }
    const std::string json = cli::to_line(cli::check_json(capture, judged));
    require(cli::Json::accept(json), "JSON is valid");
    selection.layer = capture.layers.back().number;
    selection.head = 0;
  }
}

void run(std::span<const std::byte> bytes) {
  try {
    cli::CaptureOptions options;
    options.align = Align::bottom_right();
    const cli::Capture capture = cli::read_capture(SafetensorsFile::from_bytes(bytes, "fuzzed"), options);
    if (is_small(capture)) judge(capture);
  } catch (const FileError&) {
  } catch (const Error& refused) {
    require(std::string_view(refused.what()).starts_with("fuzzed: "),
            std::string("errors name the file, not: ") + refused.what());
  }
}

}  // namespace
}  // namespace levelhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  levelhead::fuzz::run(levelhead::fuzz::bytes_of(data, size));
  return 0;
}
