// Every rule of the reader has a file that breaks it and nothing else; the error names what is broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "io/byte_reader.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_bytes.hpp"
#include "io/safetensors_header.hpp"

namespace levelhead {
namespace {

using test::Bytes;
using test::file_of;
using test::valid_data;
using test::valid_file;
using test::valid_header;
using test::with;

struct Fault {
  const char* name;
  std::function<Bytes()> file;
  const char* says;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

Fault header(const char* name, std::string from, std::string to, const char* says) {
  return {name, [=] { return file_of(with(from, to), valid_data); }, says};
}

/// The valid file with its header's length said to be something else.
Fault claimed(const char* name, std::uint64_t length, const char* says) {
  return {name, [=] { return file_of(length, valid_header, valid_data); }, says};
}

Fault raw(const char* name, std::string text, std::size_t data_bytes, const char* says) {
  return {name, [=] { return file_of(text, data_bytes); }, says};
}

std::string long_shape() {
  std::string shape = "[2,3";
  for (int i = 0; i < 7; ++i) shape += ",1";
  return shape + "]";
}

const std::vector<Fault> faults{
    // The prefix.
    {"EmptyFile", [] { return Bytes{}; }, "has 0 bytes, too few"},
    {"SevenBytes", [] { return Bytes(7); }, "has 7 bytes, too few"},
    claimed("LengthZero", 0, "header has 0 bytes"),
    claimed("LengthBeyondFile", valid_header.size() + valid_data + 1, "bytes are left in the file"),
    claimed("LengthOfAll64Bits", ~std::uint64_t{0}, "claims 18446744073709551615 bytes, more than the 100000000"),
    claimed("LengthWrapsWithThePrefix", ~std::uint64_t{0} - 7, "claims 18446744073709551608 bytes"),
    claimed("LengthAboveTheLimit", 100'000'001, "claims 100000001 bytes, more than the 100000000"),
    claimed("LengthNarrowsTo32Bits", (std::uint64_t{1} << 32) + 265, "more than the 100000000"),
    claimed("LengthCutsTheHeader", valid_header.size() - 1, "not valid JSON at byte"),
    // JSON.
    raw("StartsWithSpace", " " + valid_header, valid_data, "does not start with {"),
    raw("StartsWithByteOrderMark", "\xEF\xBB\xBF" + valid_header, valid_data, "does not start with {"),
    raw("StartsWithArray", "[]", 0, "does not start with {"),
    raw("TwoObjects", valid_header + "{}", valid_data, "not valid JSON at byte"),
    raw("TextBehind", valid_header + "x", valid_data, "not valid JSON at byte"),
    raw("ZeroBehind", valid_header + std::string("\0 ", 2), valid_data, "of the header is 0"),
    header("ZeroInName", "scalar", std::string("sca\0ar", 6), "of the header is 0"),
    header("Comment", "\"one\":{", "/* */\"one\":{", "not valid JSON at byte"),
    header("TrailingComma", "[29,29]}}", "[29,29]},}", "not valid JSON at byte"),
    header("NotANumberLiteral", "[2,3]", "[2,NaN]", "not valid JSON at byte"),
    header("Utf8CutShort", "scalar", "sca\xC3r", "not valid UTF-8 at byte"),
    header("Utf8Overlong", "scalar", "sca\xC0\xAF", "not valid UTF-8 at byte"),
    header("Utf8Surrogate", "scalar", "\xED\xA0\x80", "not valid UTF-8 at byte"),
    header("Utf8BeyondUnicode", "scalar", "\xF4\x90\x80\x80", "not valid UTF-8 at byte"),
    header("EscapedLoneSurrogate", "scalar", "\\ud800", "not valid JSON at byte"),
    header("ControlCharacter", "scalar", "sca\nlar", "not valid JSON at byte"),
    header("NumberOverflowsDouble", "[2,3]", "[2,1e999]", "is too large"),
    header("DepthOfAHundredThousand", "[2,3]", std::string(100'000, '['), "shape holds an array"),
    // Names.
    header("TensorTwice", "\"scalar\"", "\"flags\"", "\"flags\" appears twice"),
    header("TensorTwiceByEscape", "\"scalar\"", "\"fl\\u0061gs\"", "\"flags\" appears twice"),
    header("FieldTwice", "\"dtype\":\"I64\"", "\"dtype\":\"I64\",\"dtype\":\"I64\"", "\"scalar\": dtype appears twice"),
    header("ShapeTwice", "\"shape\":[]", "\"shape\":[],\"shape\":[]", "\"scalar\": shape appears twice"),
    header("OffsetsTwice", "[0,24]", "[0,24],\"data_offsets\":[0,24]", "\"one\": data_offsets appears twice"),
    header("MetadataTwice", "\"one\":{", "\"__metadata__\":{},\"one\":{", "\"__metadata__\" appears twice"),
    header("MetadataKeyTwice", "\"format\"", "\"scale\"", "\"scale\" appears twice in __metadata__"),
    header("FieldUnknown", "\"shape\":[]", "\"shape\":[],\"more\":1", "\"more\" is none of the fields"),
    header("NameForATerminal", "\"scalar\":{\"dtype\"", "\"\\u001b[2J\\u202ex\":{\"dtypo\"",
           "tensor \"\\x1b[2J\\u{202e}x\": \"dtypo\" is none"),
    // Metadata.
    header("MetadataNumber", "\"0.125\"", "0.125", "\"scale\" is a number, but metadata is text only"),
    header("MetadataNull", "\"0.125\"", "null", "\"scale\" is null, but metadata is text only"),
    header("MetadataObject", "\"0.125\"", "{}", "\"scale\" is an object, but metadata is text only"),
    header("MetadataIsText", "{\"format\":\"pt\",\"scale\":\"0.125\"}", "\"pt\"",
           "__metadata__ is a text, not an object"),
    header("MetadataIsNull", "{\"format\":\"pt\",\"scale\":\"0.125\"}", "null", "__metadata__ is null, not an object"),
    // Fields of a tensor.
    header("TensorIsNumber", "{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[29,37]}", "3",
           "\"scalar\": is described by a number"),
    header("DtypeMissing", "\"dtype\":\"F32\",", "", "\"one\": dtype is missing"),
    header("ShapeMissing", "\"shape\":[2,3],", "", "\"one\": shape is missing"),
    header("OffsetsMissing", ",\"data_offsets\":[0,24]", "", "\"one\": data_offsets is missing"),
    header("DtypeUnknown", "F32", "F31", "type \"F31\" is none of F64 F32 BF16"),
    header("DtypeLowerCase", "F32", "f32", "type \"f32\" is none of"),
    header("DtypeNumber", "\"F32\"", "32", "dtype is a number, not a text"),
    header("ShapeText", "[2,3]", "\"2,3\"", "shape is a text, not an array"),
    header("ShapeHoldsText", "[2,3]", "[2,\"3\"]", "shape holds a text, not only integers"),
    header("ShapeHoldsFloat", "[2,3]", "[2,3.0]", "shape holds 3.0, which is no integer"),
    header("ShapeHoldsExponent", "[2,3]", "[2,3e0]", "shape holds 3e0, which is no integer"),
    header("ShapeNegative", "[2,3]", "[2,-3]", "shape holds -3, which is negative"),
    header("ShapeNegativeProductFits", "[2,3]", "[-2,-3]", "shape holds -2, which is negative"),
    header("ShapeMinusZero", "[0,7]", "[-0,7]", "which is negative"),
    header("ShapeHoldsTrue", "[2,3]", "[2,true]", "shape holds true, not only integers"),
    header("NineDimensions", "[2,3]", long_shape(), "shape has more than 8 dimensions"),
    header("ShapeAbove63Bits", "[2,3]", "[9223372036854775808]", "does not fit 63 bits"),
    header("ShapeAbove64Bits", "[2,3]", "[18446744073709551616]", "no integer of at most 64 bits"),
    // CVE-2024-21836, CVE-2026-33298: a product that wraps to the size that the offsets give (24 bytes each).
    header("CountTimesSizeWraps", "[2,3]", "[4611686018427387910]",
           "\"one\": the bytes of shape [4611686018427387910]"),
    header("ProductOfSizesWraps", "[2,3]", "[4294967296,4294967296,3]", "overflow"),
    header("ProductWrapsBesideAZero", "[0,7]", "[0,4294967296,4294967296]", "overflow"),
    // CVE-2025-49847: a size that is right once it is narrowed to 32 bits.
    header("SizeNarrowsTo32Bits", "[2,3]", "[2,4294967299]",
           "takes 34359738392 bytes, but data_offsets [0, 24] are 24"),
    header("SizeTooLarge", "[2,3]", "[2,4]", "takes 32 bytes, but data_offsets [0, 24] are 24"),
    header("SizeTooSmall", "[2,3]", "[2,2]", "takes 16 bytes, but data_offsets [0, 24] are 24"),
    header("SizeOfAnotherType", "F32", "F16", "takes 12 bytes, but data_offsets [0, 24] are 24"),
    header("EmptyWithBytes", "[2,3]", "[2,0]", "takes 0 bytes, but data_offsets [0, 24] are 24"),
    // Offsets.
    header("OffsetsBackwards", "[0,24]", "[24,0]", "data_offsets begin at 24 but end at 0"),
    header("OffsetsOne", "[0,24]", "[24]", "data_offsets holds 1 numbers, not 2"),
    header("OffsetsThree", "[0,24]", "[0,24,24]", "data_offsets holds 3 numbers, not 2"),
    header("OffsetsNegative", "[0,24]", "[-24,0]", "data_offsets holds -24, which is negative"),
    header("OffsetsFloat", "[0,24]", "[0,24.0]", "data_offsets holds 24.0, which is no integer"),
    header("OffsetsNull", "[0,24]", "[null,24]", "data_offsets holds null, not only integers"),
    header("OffsetsText", "[0,24]", "\"0,24\"", "data_offsets is a text, not an array"),
    // CVE-2026-7482, CVE-2025-53630: the end of the file, and sums that wrap past it.
    header("OffsetsBeyondFile", "[29,37]", "[30,38]", "\"scalar\": data_offsets end at 38 but the file holds 37"),
    header("OffsetsNear64Bits", "[29,37]", "[18446744073709551607,18446744073709551615]",
           "end at 18446744073709551615 but the file holds 37"),
    header("OffsetsAbove64Bits", "[29,37]", "[29,18446744073709551653]", "no integer of at most 64 bits"),
    raw("Hole",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
        5, "\"b\" begins at 3 but the data before it end at 2, so there is a hole"),
    raw("Overlap",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
        3, "\"b\" begins at 1 but the data before it end at 2, so there is an overlap"),
    raw("SameBytesTwice",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
        2, "so there is an overlap"),
    raw("EmptyInsideAnother",
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
        4, "so there is an overlap"),
    raw("DoesNotStartAtZero", R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "so there is a hole"),
    {"DataLeftOver", [] { return file_of(valid_header, valid_data + 1); }, "tensors end at 37 but the file holds 38"},
    {"DataCutOff", [] { return file_of(valid_header, valid_data - 1); }, "end at 37 but the file holds 36"},
    raw("DataWithoutTensors", "{}", 1, "tensors end at 0 but the file holds 1"),
};

class SafetensorsFault : public testing::TestWithParam<Fault> {};

TEST_P(SafetensorsFault, IsAnErrorThatNamesIt) {
  const Bytes bytes = GetParam().file();
  try {
    SafetensorsFile::from_bytes(bytes, "x.safetensors");
    FAIL() << "the file was accepted";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("x.safetensors: "));
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().says));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsFault, testing::ValuesIn(faults),
                         [](const auto& test) { return std::string(test.param.name); });

// The header's length is checked when a file is opened; it may have shrunk since.
TEST(SafetensorsFaults, AHeaderThatEndsBeforeItsLengthIsAnError) {
  struct Nothing : HeaderSink {
    void metadata(std::string_view, std::string_view) override {}
    void tensor(const HeaderTensor&) override {}
  } sink;
  const Source source(test::as_span(valid_header));
  try {
    parse_header(source, 0, valid_header.size() + 1, valid_data, "x", sink);
    FAIL() << "the header was accepted";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "x: ends inside its header, though it was long enough when opened");
  }
}

TEST(SafetensorsFaults, TheFileWithoutFaultIsAccepted) {
  const Bytes bytes = valid_file();
  const auto file = SafetensorsFile::from_bytes(bytes, "valid");
  ASSERT_EQ(file.tensors().size(), 4U);
  EXPECT_EQ(file.metadata().find("scale"), "0.125");
  EXPECT_EQ(file.metadata().find("format"), "pt");
  EXPECT_EQ(file.metadata().find("forma"), std::nullopt);
  EXPECT_EQ(file.metadata().size(), 2U);
  EXPECT_EQ(file.find("nothing"), nullptr);
  ASSERT_NE(file.find("scalar"), nullptr);
  EXPECT_EQ(file.tensors()[1].name, "scalar");  // the header's order, not that of the offsets
  EXPECT_TRUE(file.find("scalar")->shape.empty());
  for (const auto& entry : file.tensors()) EXPECT_EQ(file.read(entry).bytes().size(), entry.end - entry.begin);
  EXPECT_EQ(file.read(*file.find("flags")).elements<bool>()[1], true);  // byte 25 of 0 1 0 1 ...
}

TEST(SafetensorsFaults, SpaceInAndBehindTheHeaderIsAccepted) {
  const std::string header = with("\"one\":{", "\n \t\r \"one\" : \n\n {") + std::string(1000, ' ');
  const Bytes bytes = file_of(header, valid_data);
  EXPECT_EQ(SafetensorsFile::from_bytes(bytes, "spaced").tensors().size(), 4U);
}

TEST(SafetensorsFaults, SpaceInANameIsKept) {
  const Bytes bytes = file_of(with("scalar\":", "a   \\\"  b\\\\\"  :  "), valid_data);
  EXPECT_NE(SafetensorsFile::from_bytes(bytes, "spaced").find("a   \"  b\\"), nullptr);
  const Bytes next = file_of(with("F32", "F  32\\\\"), valid_data);  // the end of a text that ends in a backslash
  EXPECT_THROW(SafetensorsFile::from_bytes(next, "spaced"), FileError);
  const Bytes two = file_of(R"({"__metadata__":{"a\\":"b  c","d":"e  f"}})", 0);
  const auto file = SafetensorsFile::from_bytes(two, "spaced");
  EXPECT_EQ(file.metadata().find("a\\"), "b  c");
  EXPECT_EQ(file.metadata().find("d"), "e  f");
}

TEST(SafetensorsFaults, NoTensorsAreAccepted) {
  const Bytes bytes = file_of("{}", 0);
  const auto file = SafetensorsFile::from_bytes(bytes, "none");
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_EQ(file.metadata().size(), 0U);
  EXPECT_EQ(file.find(""), nullptr);
}

TEST(SafetensorsFaults, TheFileCutAfterAnyByteIsAnError) {
  const Bytes whole = valid_file();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));  // so that asan sees the end
    EXPECT_THROW(SafetensorsFile::from_bytes(part, "cut"), FileError) << length;
  }
}

TEST(SafetensorsFaults, ABoolIsZeroOrOne) {
  Bytes bytes = valid_file();
  bytes[bytes.size() - valid_data + 26] = std::byte{2};
  const auto file = SafetensorsFile::from_bytes(bytes, "x");
  EXPECT_NO_THROW(file.read(*file.find("one")));
  try {
    file.read(*file.find("flags"));
    FAIL() << "2 was read as a BOOL";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "x: tensor \"flags\": byte 2 is 2, but a BOOL is 0 or 1");
  }
}

TEST(SafetensorsFaults, AnEntryOfAnotherFileLeadsNowhere) {
  const Bytes large = file_of(R"({"a":{"dtype":"U8","shape":[99],"data_offsets":[0,99]}})", 99), small = valid_file();
  const auto other = SafetensorsFile::from_bytes(large, "large");
  const auto file = SafetensorsFile::from_bytes(small, "small");
  TensorEntry far = other.tensors()[0];
  far.begin = ~std::uint64_t{0} - 98, far.end = ~std::uint64_t{0} + far.begin - far.begin;
  for (const TensorEntry& entry : {other.tensors()[0], far}) {
    try {
      file.read(entry);
      FAIL() << "read";
    } catch (const FileError& error) {
      EXPECT_STREQ(error.what(), "small: tensor \"a\": is no tensor of this file");
    }
  }
}

TEST(SafetensorsFaults, ATextOfFourMebibytesIsTheLongest) {
  const auto file = [](std::size_t bytes) { return file_of(with("0.125", std::string(bytes, 'x')), valid_data); };
  const Bytes longest = file(max_token_bytes - 1), longer = file(max_token_bytes);
  EXPECT_EQ(SafetensorsFile::from_bytes(longest, "x").metadata().find("scale")->size(), max_token_bytes - 1);
  EXPECT_THROW(SafetensorsFile::from_bytes(longer, "x"), FileError);
}

TEST(ByteReader, NeverLeavesItsBytes) {
  const Bytes bytes(11, std::byte{1});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.little_endian_u64(), 0x0101010101010101U);
  EXPECT_EQ(reader.little_endian_u64(), std::nullopt);
  EXPECT_FALSE(reader.take(~std::uint64_t{0}).has_value());
  EXPECT_FALSE(reader.take(4).has_value());
  EXPECT_EQ(reader.take(3)->size(), 3U);
  EXPECT_EQ(reader.remaining(), 0U);
  EXPECT_TRUE(reader.take(0).has_value());
}

}  // namespace
}  // namespace levelhead
