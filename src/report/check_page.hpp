// The page of `levelhead check --report`: judged captures, in pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/page.hpp"

namespace levelhead::report {

/// H75 at a multiple of the scale in use.
struct SweepPoint {
  double multiplier = 1;
  std::optional<double> h75;
};

/// The attention weights p of one head, [rows, keys], each as round(255 sqrt(p)): small weights keep their digits.
struct AttentionPicture {
  std::int64_t layer = 0, head = 0;
  std::string why{};  ///< words: what makes it worth a look
  std::vector<std::uint8_t> weights{};
};

/// The pictures of a capture; all have the same size, cut from the whole at its first query and key.
struct AttentionPictures {
  std::int64_t rows = 0, keys = 0;
  std::int64_t all_rows = 0, all_keys = 0;
  std::vector<std::string> row_names{}, key_names{};  ///< empty: numbers
  std::vector<AttentionPicture> heads{};
};

struct CheckedCapture {
  Json check;                         ///< the object that --json writes
  std::string label{};                ///< before the name of its tab
  std::string facts{}, scale{};       ///< what was judged, which scale: one line each
  std::string evidence{}, next{};     ///< words: the number with its distances, what to do
  std::string from{};                 ///< "from 10 of 30 layers", or empty
  std::vector<std::int64_t> n_max{};  ///< the most keys a row sees, by layer and head as in `check`
  std::vector<SweepPoint> sweep{};    ///< by multiplier; not of fresh weights
  std::vector<Mark> sweep_marks{};    ///< other scales worth marking, across x
  AttentionPictures pictures{};
};

/// limits: words, how far a verdict can be trusted.
/// first: a tab before those of the captures.
std::string check_page(std::span<const CheckedCapture> captures, std::string_view limits,
                       std::optional<Tab> first = std::nullopt);

}  // namespace levelhead::report
