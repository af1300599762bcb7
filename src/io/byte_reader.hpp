// A bounded cursor over bytes: every read says whether the bytes were there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace levelhead {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::size_t remaining() const noexcept { return rest_.size(); }

  /// The next count bytes, or nothing (and the cursor stays) if fewer remain.
  std::optional<std::span<const std::byte>> take(std::uint64_t count) noexcept {
    if (count > rest_.size()) return std::nullopt;
    const auto taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  std::optional<std::uint64_t> little_endian_u64() noexcept {
    const auto bytes = take(8);
    if (!bytes) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 8; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
    return value;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace levelhead
