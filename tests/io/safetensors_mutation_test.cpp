// Files with random faults: each is an error or reads as tensors that agree with themselves, and never more than that.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "io/safetensors.hpp"
#include "io/safetensors_bytes.hpp"

namespace levelhead {
namespace {

using test::Bytes;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Bytes mutate(Bytes bytes) {
    const std::size_t changes = 1 + below(3);
    for (std::size_t change = 0; change < changes; ++change) {
      switch (below(6)) {
        case 0: bytes[below(bytes.size())] ^= static_cast<std::byte>(1U << below(8)); break;
        case 1: bytes[below(bytes.size())] = static_cast<std::byte>(below(256)); break;
        case 2: erase(bytes); break;
        case 3: repeat(bytes); break;
        case 4: overwrite(bytes); break;
        default: insert(bytes); break;
      }
      if (bytes.empty()) bytes.push_back(std::byte{0});
    }
    if (below(2) == 0) correct_length(bytes);
    return bytes;
  }

 private:
  static constexpr std::array<std::string_view, 20> pieces{"{",
                                                           "}",
                                                           "[",
                                                           "]",
                                                           ",",
                                                           ":",
                                                           "\"",
                                                           "\\",
                                                           "\\u0000",
                                                           "-1",
                                                           "0",
                                                           "1e9",
                                                           "null",
                                                           "18446744073709551615",
                                                           "9223372036854775807",
                                                           "4294967296",
                                                           "\xED\xA0\x80",
                                                           "\"shape\":",
                                                           "\"data_offsets\":[0,0]",
                                                           "\"__metadata__\":{}"};

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit); }

  void erase(Bytes& bytes) {
    const std::size_t at = below(bytes.size()), count = 1 + below(std::min<std::size_t>(12, bytes.size() - at));
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(count, bytes.size() - at)));
  }
  void repeat(Bytes& bytes) {
    const std::size_t at = below(bytes.size()), count = std::min<std::size_t>(1 + below(80), bytes.size() - at);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const Bytes piece(begin, begin + static_cast<std::ptrdiff_t>(count));
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), piece.begin(), piece.end());
  }
  void overwrite(Bytes& bytes) {
    const auto piece = test::as_span(pieces[below(pieces.size())]);
    const std::size_t at = below(bytes.size());
    for (std::size_t i = 0; i < piece.size() && at + i < bytes.size(); ++i) bytes[at + i] = piece[i];
  }
  void insert(Bytes& bytes) {
    const auto piece = test::as_span(pieces[below(pieces.size())]);
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), piece.begin(), piece.end());
  }
  /// Makes the prefix right again, or most mutants would fail there and test nothing behind it.
  static void correct_length(Bytes& bytes) {
    if (bytes.size() < 8 + test::valid_data) return;
    std::uint64_t length = bytes.size() - 8 - test::valid_data;
    for (std::size_t i = 0; i < 8; ++i, length >>= 8) bytes[i] = static_cast<std::byte>(length & 0xFF);
  }

  std::mt19937_64 random_;
};

/// What any accepted file must be; returns whether it was accepted.
bool check(const Bytes& bytes) {
  try {
    const auto file = SafetensorsFile::from_bytes(bytes, "mutant");
    std::uint64_t total = 0;
    for (const TensorEntry& entry : file.tensors()) {
      EXPECT_EQ(file.find(entry.name), &entry);
      EXPECT_EQ(dense_bytes(entry.dtype, entry.shape), entry.end - entry.begin);
      total += entry.end - entry.begin;
      try {
        EXPECT_EQ(file.read(entry).bytes().size(), entry.end - entry.begin);
      } catch (const FileError&) {
        EXPECT_EQ(entry.dtype, DType::boolean);  // nothing else can be wrong with data in memory
      }
    }
    for (std::size_t i = 0; i < file.metadata().size(); ++i) {
      EXPECT_EQ(file.metadata().find(file.metadata()[i].first), file.metadata()[i].second);
    }
    EXPECT_LE(total + 10, bytes.size());
    return true;
  } catch (const FileError&) {
    return false;
  }
}

TEST(SafetensorsMutants, AreErrorsOrConsistent) {
  constexpr std::uint64_t seed = 20250101;
  constexpr int mutants = 30'000;
  Mutator mutator(seed);
  const Bytes valid = test::valid_file();
  ASSERT_TRUE(check(valid));
  int accepted = 0;
  for (int i = 0; i < mutants; ++i) {
    SCOPED_TRACE(testing::Message() << "mutant " << i << " of seed " << seed);
    accepted += check(mutator.mutate(valid)) ? 1 : 0;
    if (HasFailure()) return;
  }
  // Both ways out are taken often, so the mutants are neither all broken at the door nor all harmless.
  EXPECT_GT(accepted, mutants / 100);
  EXPECT_LT(accepted, mutants / 2);
}

}  // namespace
}  // namespace levelhead
