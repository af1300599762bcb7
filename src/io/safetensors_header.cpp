#include "io/safetensors_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/file_error.hpp"
#include "io/tensor.hpp"

namespace levelhead {
namespace {

using Json = nlohmann::json;

/// Hands the header to the lexer byte by byte, and keeps from it what it is too generous about: bytes of 0 (it takes
/// them for the end), tokens of any length, and white space, which it stores.
class HeaderBytes {
 public:
  HeaderBytes(const Source& source, std::uint64_t begin, std::uint64_t length, std::string_view file)
      : source_(source), begin_(begin), length_(length), file_(file) {
    advance();
  }

  bool done() const { return done_; }
  char current() const { return current_; }
  /// Bytes of the header taken so far.
  std::uint64_t position() const { return position_; }

  void advance() {
    const bool was_space = space(current_) && !in_string_;
    do {
      if (position_ == length_) {
        done_ = true;
        return;
      }
      current_ = next();
    } while (was_space && space(current_));
    follow();
  }

 private:
  static bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  char next() {
    if (chunk_position_ == chunk_.size()) refill();
    ++position_;
    return static_cast<char>(chunk_[chunk_position_++]);
  }

  void refill() {
    constexpr std::uint64_t chunk = std::uint64_t{64} << 10;
    chunk_.resize(static_cast<std::size_t>(std::min(chunk, length_ - position_)));
    chunk_position_ = 0;
    if (!source_.read(begin_ + position_, chunk_)) {
      throw FileError(fmt::format("{}: ends inside its header, though it was long enough when opened", file_));
    }
  }

  /// Follows strings just closely enough to know how long the present token is.
  void follow() {
    if (current_ == '\0') throw FileError(fmt::format("{}: byte {} of the header is 0", file_, position_ - 1));
    const bool quote = current_ == '"' && !escape_;
    escape_ = in_string_ && current_ == '\\' && !escape_;
    if (quote) in_string_ = !in_string_;
    const bool ends = !in_string_ && (quote || space(current_) || current_ == ',' || current_ == ':');
    token_bytes_ = ends ? 0 : token_bytes_ + 1;
    if (token_bytes_ > max_token_bytes) {
      throw FileError(fmt::format("{}: the header holds a text or number of more than {} bytes, which is too long",
                                  file_, max_token_bytes));
    }
  }

  const Source& source_;
  std::uint64_t begin_, length_, position_ = 0;
  std::string_view file_;
  std::vector<std::byte> chunk_;
  std::size_t chunk_position_ = 0, token_bytes_ = 0;
  char current_ = 0;
  bool done_ = false, in_string_ = false, escape_ = false;
};

/// The least that the JSON library asks of an iterator.
struct HeaderIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  HeaderBytes* bytes = nullptr;  // null: the end

  char operator*() const { return bytes->current(); }
  HeaderIterator& operator++() {
    bytes->advance();
    return *this;
  }
  bool operator==(const HeaderIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const HeaderIterator& other) const { return !(*this == other); }
  bool ended() const { return bytes == nullptr || bytes->done(); }
};

std::optional<DType> dtype_of_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, DType>, 8> names{{{"F64", DType::f64},
                                                                     {"F32", DType::f32},
                                                                     {"BF16", DType::bf16},
                                                                     {"F16", DType::f16},
                                                                     {"I64", DType::i64},
                                                                     {"I32", DType::i32},
                                                                     {"U8", DType::u8},
                                                                     {"BOOL", DType::boolean}}};
  for (const auto& [known, dtype] : names)
    if (known == name) return dtype;
  return std::nullopt;
}

/// The events of the JSON library. A place says what the next event may be; everything else is an error there.
class Handler {
 public:
  Handler(HeaderBytes& bytes, std::uint64_t data_bytes, std::string_view file, HeaderSink& sink)
      : bytes_(bytes), data_bytes_(data_bytes), file_(file), sink_(sink) {}

  bool start_object(std::size_t) {
    switch (place_) {
      case Place::start: place_ = Place::names; return true;
      case Place::metadata_value: place_ = Place::metadata; return true;
      case Place::tensor_value:
        place_ = Place::fields;
        tensor_ = {};
        seen_dtype_ = seen_shape_ = seen_offsets_ = false;
        return true;
      default: unexpected("an object");
    }
  }

  bool key(std::string& text) {
    if (place_ == Place::fields) {
      start_field(text);
    } else if (place_ == Place::metadata) {
      metadata_key_.swap(text);
      place_ = Place::metadata_text;
    } else if (text == "__metadata__") {
      if (seen_metadata_) fail("the name \"__metadata__\" appears twice");
      seen_metadata_ = true;
      place_ = Place::metadata_value;
    } else {
      name_.swap(text);
      place_ = Place::tensor_value;
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::fields) finish_tensor();
    place_ = place_ == Place::names ? Place::end : Place::names;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::shape_value) {
      place_ = Place::shape;
    } else if (place_ == Place::offsets_value) {
      place_ = Place::offsets;
      offsets_ = 0;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && offsets_ != 2) fail_tensor("data_offsets holds {} numbers, not 2", offsets_);
    place_ = Place::fields;
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::metadata_text) {
      sink_.metadata(metadata_key_, text);
      place_ = Place::metadata;
    } else if (place_ == Place::dtype_value) {
      const auto dtype = dtype_of_name(text);
      if (!dtype) {
        fail_tensor("type \"{}\" is none of F64 F32 BF16 F16 I64 I32 U8 BOOL", escaped(text, 16));
      }
      tensor_.dtype = *dtype;
      place_ = Place::fields;
    } else {
      unexpected("a text");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t number) {
    if (place_ == Place::shape) {
      add_size(number);
    } else if (place_ == Place::offsets) {
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = number;
    } else {
      unexpected("a number");
    }
    return true;
  }

  // The library calls this for numbers with a minus sign only.
  bool number_integer(std::int64_t number) {
    if (place_ == Place::shape) fail_tensor("shape holds {}, which is negative", number);
    if (place_ == Place::offsets) fail_tensor("data_offsets holds {}, which is negative", number);
    unexpected("a number");
  }

  bool number_float(double, const std::string& text) {
    if (place_ != Place::shape && place_ != Place::offsets) unexpected("a number");
    fail_tensor("{} holds {}, which is no integer of at most 64 bits",
                place_ == Place::shape ? "shape" : "data_offsets", escaped(text, 40));
  }

  bool null() { unexpected("null"); }
  bool boolean(bool value) { unexpected(value ? "true" : "false"); }
  bool binary(Json::binary_t&) { unexpected("binary data"); }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) fail(fmt::format("a number before byte {} is too large", bytes_.position()));
    const bool encoding = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    fail(fmt::format("it is not valid {} at byte {}", encoding ? "UTF-8" : "JSON", bytes_.position()));
  }

 private:
  enum class Place {
    start,           // of the file
    names,           // in the outer object
    metadata_value,  // behind "__metadata__":
    metadata,
    metadata_text,
    tensor_value,  // behind a tensor's name
    fields,        // in a tensor's object
    dtype_value,
    shape_value,
    shape,
    offsets_value,
    offsets,
    end
  };

  [[noreturn]] void fail(const std::string& what) const { throw FileError(fmt::format("{}: header: {}", file_, what)); }

  template <class... Arguments>
  [[noreturn]] void fail_tensor(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    throw FileError(fmt::format("{}: tensor \"{}\": {}", file_, escaped(name_),
                                fmt::format(text, std::forward<Arguments>(arguments)...)));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    switch (place_) {
      case Place::start: fail(fmt::format("it is {}, not an object", what));
      case Place::metadata_value: fail(fmt::format("__metadata__ is {}, not an object", what));
      case Place::metadata_text:
        fail(fmt::format("__metadata__ \"{}\" is {}, but metadata is text only", escaped(metadata_key_), what));
      case Place::tensor_value: fail_tensor("is described by {}, not an object", what);
      case Place::dtype_value: fail_tensor("dtype is {}, not a text", what);
      case Place::shape_value: fail_tensor("shape is {}, not an array", what);
      case Place::shape: fail_tensor("shape holds {}, not only integers", what);
      case Place::offsets_value: fail_tensor("data_offsets is {}, not an array", what);
      case Place::offsets: fail_tensor("data_offsets holds {}, not only integers", what);
      default: fail(fmt::format("{} stands where none can be", what));
    }
  }

  void start_field(std::string_view field) {
    const auto start = [&](bool& seen, Place value) {
      if (seen) fail_tensor("{} appears twice", field);
      seen = true;
      place_ = value;
    };
    if (field == "dtype") {
      start(seen_dtype_, Place::dtype_value);
    } else if (field == "shape") {
      start(seen_shape_, Place::shape_value);
    } else if (field == "data_offsets") {
      start(seen_offsets_, Place::offsets_value);
    } else {
      fail_tensor("\"{}\" is none of the fields dtype, shape, data_offsets", escaped(field));
    }
  }

  void add_size(std::uint64_t size) {
    if (tensor_.rank == max_file_rank) fail_tensor("shape has more than {} dimensions", max_file_rank);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail_tensor("shape holds {}, which does not fit 63 bits", size);
    }
    tensor_.sizes[tensor_.rank++] = static_cast<std::int64_t>(size);
  }

  void finish_tensor() {
    if (!seen_dtype_) fail_tensor("dtype is missing");
    if (!seen_shape_) fail_tensor("shape is missing");
    if (!seen_offsets_) fail_tensor("data_offsets is missing");
    const auto& [begin, end] = std::pair(tensor_.begin, tensor_.end);
    if (begin > end) fail_tensor("data_offsets begin at {} but end at {}", begin, end);
    if (end > data_bytes_) fail_tensor("data_offsets end at {} but the file holds {} bytes of data", end, data_bytes_);
    const auto bytes = dense_bytes(tensor_.dtype, tensor_.shape());
    const auto shape = [&] { return fmt::format("[{}]", fmt::join(tensor_.shape(), ", ")); };
    if (!bytes) fail_tensor("the bytes of shape {} and type {} overflow", shape(), name_of(tensor_.dtype));
    if (*bytes != end - begin) {
      fail_tensor("shape {} of type {} takes {} bytes, but data_offsets [{}, {}] are {}", shape(),
                  name_of(tensor_.dtype), *bytes, begin, end, end - begin);
    }
    tensor_.name = name_;
    sink_.tensor(tensor_);
  }

  HeaderBytes& bytes_;
  std::uint64_t data_bytes_;
  std::string_view file_;
  HeaderSink& sink_;

  Place place_ = Place::start;
  std::string name_, metadata_key_;
  HeaderTensor tensor_;
  std::size_t offsets_ = 0;
  bool seen_metadata_ = false, seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
};

}  // namespace

void parse_header(const Source& source, std::uint64_t begin, std::uint64_t length, std::uint64_t data_bytes,
                  std::string_view file, HeaderSink& sink) {
  HeaderBytes bytes(source, begin, length, file);
  if (bytes.current() != '{') {
    throw FileError(fmt::format("{}: its header does not start with {{, so it is no safetensors file", file));
  }
  Handler handler(bytes, data_bytes, file, sink);
  Json::sax_parse(HeaderIterator{&bytes}, HeaderIterator{}, &handler);
}

}  // namespace levelhead
