// `levelhead check --report` run on files, and captures made for it.
#pragma once

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/driver.hpp"

namespace levelhead::test {

inline const std::string hostile = "</script><img src=x onerror=\"document.title='run'\"><!-- [a](z) `b`";

/// A page and the objects of --json from the same run.
struct Reported {
  std::string html;
  std::vector<nlohmann::json> json;

  /// The page's own data.
  nlohmann::json data() const {
    const std::string open = "<script type=\"application/json\" id=\"page\">";
    const std::size_t begin = html.find(open) + open.size();
    return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
  }
  /// The first block of a kind in a tab.
  nlohmann::json block(std::size_t tab, const std::string& kind) const {
    const nlohmann::json sections = data().at("tabs").at(tab).at("sections");
    for (const auto& section : sections)
      for (const auto& block : section.at("blocks"))
        if (block.at("kind") == kind) return block;
    throw std::runtime_error("no block " + kind);
  }
};

inline Reported report(Arguments arguments) {
  const Folder folder;
  arguments.insert(arguments.begin(), "check");
  arguments.insert(arguments.end(), {"--report", folder.file("page.html"), "--json", "-"});
  const Finished result = run(arguments);
  if (result.status != 0) throw std::runtime_error(result.err);
  Reported reported;
  for (const std::string& line : result.lines()) reported.json.push_back(nlohmann::json::parse(line));
  std::ifstream file(folder.file("page.html"), std::ios::binary);
  reported.html = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return reported;
}

inline std::vector<unsigned> from_base64(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned> bytes;
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6U | static_cast<unsigned>(alphabet.find(c));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(bits >> held & 255U);
  }
  return bytes;
}

/// [heads, 20 tokens, 4] of waves, so that heads differ.
inline Tensor waves(std::int64_t heads, double phase) {
  Tensor tensor(DType::f32, {heads, 20, 4});
  for (std::int64_t n = 0; n < tensor.elements(); ++n)
    tensor.set_flat(n, 2 * std::sin(0.7 * static_cast<double>(n) + phase));
  return tensor;
}

/// A capture whose every name is hostile.
inline void write_hostile(const std::string& path) {
  const nlohmann::json tokens(std::vector<std::string>(20, hostile));
  write(path,
        {{"layers.0.q", waves(3, 0)},
         {"layers.0.k", waves(3, 1)},
         {"layers.7.q", waves(3, 2)},
         {"layers.7.k", waves(3, 3)}},
        {{"scale", "0.5"}, {"causal", "false"}, {"model", hostile}, {"tokens", tokens.dump()}});
}

/// A capture with a NaN in a query.
inline void write_broken(const std::string& path) {
  Tensor q = waves(18, 0);
  q.set_flat(5, std::nan(""));
  write(path, {{"layers.0.q", q}, {"layers.0.k", waves(18, 1)}}, {{"scale", "0.5"}, {"causal", "false"}});
}

}  // namespace levelhead::test
