// What a header costs: at most twice its length and a constant, whatever it says. Counts every allocation of the
// process, so it is an executable of its own.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "io/safetensors.hpp"
#include "io/safetensors_bytes.hpp"
#include "io/safetensors_header.hpp"
#include "io/scratch_folder.hpp"

namespace {

std::size_t live = 0, peak = 0;

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  live += malloc_usable_size(memory);
  peak = std::max(peak, live);
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) live -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(step, (size + step - 1) / step * step));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

namespace levelhead {
namespace {

/// Short names that differ: three characters of a to z, A to Z, 0 to 9.
std::string short_name(std::size_t i) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return {letters[i % 62], letters[i / 62 % 62], letters[i / 62 / 62 % 62]};
}

std::string many(std::size_t count, std::string_view open, std::string_view each, std::string_view close) {
  std::string text(open);
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "\"" : ",\"") + short_name(i) + '"';
    text += each;
  }
  return text += close;
}

struct Cost {
  std::size_t peak = 0;  // beyond what was live before
  bool accepted = false;
};

Cost cost_of(const std::string& header, std::size_t data_bytes) {
  const test::ScratchFolder folder;
  const std::string path = folder / "x.safetensors";
  const auto bytes = test::file_of(header, data_bytes);
  test::write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Cost cost;
  const std::size_t before = peak = live;
  try {
    const auto file = SafetensorsFile::open(path);
    cost.accepted = true;
  } catch (const FileError&) {
  }
  cost.peak = peak - before;
  return cost;
}

constexpr std::size_t constant = std::size_t{256} << 10;

void expect_cheap(const std::string& header, bool accepted, std::size_t data_bytes = 0, std::size_t extra = constant) {
  const Cost cost = cost_of(header, data_bytes);
  EXPECT_EQ(cost.accepted, accepted);
  EXPECT_LE(cost.peak, 2 * header.size() + extra) << "header of " << header.size() << " bytes";
}

constexpr std::string_view smallest = R"(:{"dtype":"U8","shape":[0,0,0,0,0,0,0,0],"data_offsets":[0,0]})";

TEST(SafetensorsMemory, CountsWhatIsAllocated) {  // else the other tests could not fail
  const Cost cost = cost_of(many(50'000, "{", smallest, "}"), 0);
  EXPECT_GT(cost.peak, 50'000 * sizeof(TensorEntry));
}

TEST(SafetensorsMemory, ManyTensors) { expect_cheap(many(150'000, "{", smallest, "}"), true); }

TEST(SafetensorsMemory, ManyTensorsAndAFaultAtTheEnd) {
  expect_cheap(many(150'000, "{", smallest, "}"), false, 1);
  expect_cheap(many(150'000, "{", smallest, ",}"), false);
}

TEST(SafetensorsMemory, ManyFieldsOfMetadata) {
  expect_cheap(many(200'000, "{\"__metadata__\":{", ":\"\"", "}}"), true);
}

TEST(SafetensorsMemory, Space) {
  expect_cheap("{" + std::string(8'500'000, '\n') + "}", true);
  expect_cheap("{\"a\":" + std::string(8'500'000, ' ') + "0}", false);
}

TEST(SafetensorsMemory, Brackets) {
  expect_cheap("{\"a\":" + std::string(8'000'000, '['), false);
  expect_cheap(many(1, "{", R"(:{"dtype":"U8","shape":[)" + std::string(8'000'000, '['), ""), false);
  expect_cheap(std::string(8'000'000, '{'), false);
}

TEST(SafetensorsMemory, LongTokens) {
  // The lexer and the handler hold one token at most a few times over.
  constexpr std::size_t token = 8 * max_token_bytes;
  expect_cheap("{\"" + std::string(16'000'000, 'x') + "\":0}", false, 0, token);
  expect_cheap("{\"a\":{\"shape\":[" + std::string(16'000'000, '1') + "]}}", false, 0, token);
  const std::string text(max_token_bytes - 1, 'x');
  expect_cheap("{\"__metadata__\":{\"a\":\"" + text + "\",\"b\":\"" + text + "\",\"c\":\"" + text + "\"}}", true, 0,
               token);
}

TEST(SafetensorsMemory, AClaimOfALargeTensorReservesNothing) {
  expect_cheap(R"({"a":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}})", false);
}

}  // namespace
}  // namespace levelhead
