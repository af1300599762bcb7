#include "report/browser.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "cli/driver.hpp"
#include "io/atomic_file.hpp"

namespace levelhead::test {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The frame is as wide as a narrow phone.
std::string wrapper() {
  return "<!doctype html><meta charset=\"utf-8\"><script>" + content(LEVELHEAD_SOURCE_DIR "/tests/report/probe.js") +
         "</script><iframe src=\"page.html\" width=\"360\" height=\"3000\"></iframe><pre id=\"result\"></pre>";
}

// Written by encodeURIComponent.
std::string decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return bytes;
}

std::string lines_with(std::string_view part, const std::string& text) {
  std::istringstream stream(text);
  std::string found;
  for (std::string line; std::getline(stream, line);)
    if (line.find(part) != std::string::npos) found += line + "\n";
  return found;
}

}  // namespace

std::optional<std::string> browser() {
  const std::string path = LEVELHEAD_CHROMIUM;
  if (path.find("NOTFOUND") != std::string::npos) return std::nullopt;
  return path;
}

Seen look_at(const std::string& html) {
  const Folder folder;
  write_text_file(folder.file("page.html"), html);
  write_text_file(folder.file("probe.html"), wrapper());
  // The probe may look into the frame only without web security; the page's own policy holds all the same.
  const std::string command = "env -u LD_PRELOAD HOME='" + folder.file("home") + "' '" + *browser() +
                              "' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-web-security "
                              "--allow-file-access-from-files --hide-scrollbars --enable-logging=stderr "
                              "--virtual-time-budget=20000 --window-size=800,3000 --user-data-dir='" +
                              folder.file("profile") + "' --dump-dom 'file://" + folder.file("probe.html") + "' >'" +
                              folder.file("dom") + "' 2>'" + folder.file("log") + "'";
  if (const int status = std::system(command.c_str()); status != 0)
    throw std::runtime_error("Chromium ended with " + std::to_string(WEXITSTATUS(status)) + ": " +
                             content(folder.file("log")));
  const std::string dom = content(folder.file("dom")), open = "<pre id=\"result\">";
  const std::size_t begin = dom.find(open) + open.size(), end = dom.find("</pre>", begin);
  if (end == std::string::npos || begin == end)
    throw std::runtime_error("the probe left nothing: " + content(folder.file("log")));
  return {nlohmann::json::parse(decoded(dom.substr(begin, end - begin))),
          lines_with(":CONSOLE", content(folder.file("log")))};
}

}  // namespace levelhead::test
