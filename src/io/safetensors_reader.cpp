#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "io/byte_reader.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_header.hpp"
#include "io/source.hpp"

namespace levelhead {

/// What is kept of a header, in five blocks of exact size: the header is read twice, first to count. That keeps the
/// memory below twice the header's length for any header: the dearest tensor, of 8 dimensions, takes 66 bytes of
/// header and 125 here; the dearest field of the metadata 7 and 13.
class HeaderStore {
 public:
  /// Throws FileError.
  HeaderStore(const Source& source, std::uint64_t begin, std::uint64_t length, std::uint64_t data_bytes,
              const std::string& file);

  const Metadata& metadata() const { return metadata_; }
  std::span<const TensorEntry> tensors() const { return tensors_; }
  const TensorEntry* find(std::string_view name) const;

 private:
  struct Counter;
  struct Filler;
  void check_tiling(std::uint64_t data_bytes, const std::string& file);
  void check_names(const std::string& file);

  std::vector<char> pool_;           // names, keys and values
  std::vector<std::int64_t> sizes_;  // shapes
  std::vector<TensorEntry> tensors_;
  std::vector<std::uint32_t> order_;  // of tensors_ by name; by offset while the header is checked
  Metadata metadata_;
};

struct HeaderStore::Counter : HeaderSink {
  std::size_t tensors = 0, sizes = 0, fields = 0, characters = 0;

  void metadata(std::string_view key, std::string_view value) override {
    ++fields;
    characters += key.size() + value.size();
  }
  void tensor(const HeaderTensor& tensor) override {
    ++tensors;
    sizes += tensor.rank;
    characters += tensor.name.size();
  }
  bool operator==(const Counter& other) const {
    return tensors == other.tensors && sizes == other.sizes && fields == other.fields && characters == other.characters;
  }
};

/// Fills what Counter counted, and not a byte more, whatever the file has become since.
struct HeaderStore::Filler : HeaderSink {
  Filler(HeaderStore& filled, const Counter& counted) : store(filled), expected(counted) {}
  HeaderStore& store;
  const Counter& expected;
  Counter got;
  bool overrun = false;

  bool fits() {
    overrun |= got.tensors > expected.tensors || got.sizes > expected.sizes || got.fields > expected.fields ||
               got.characters > expected.characters;
    return !overrun;
  }
  std::string_view keep(std::string_view text) {
    const std::size_t begin = store.pool_.size();
    store.pool_.insert(store.pool_.end(), text.begin(), text.end());
    return {store.pool_.data() + begin, text.size()};
  }
  void metadata(std::string_view key, std::string_view value) override {
    got.metadata(key, value);
    if (!fits()) return;
    const auto at = [&] { return static_cast<std::uint32_t>(store.pool_.size()); };
    Metadata::Field field;
    field.key = at();
    keep(key);
    field.value = at();
    keep(value);
    field.end = at();
    store.metadata_.fields_.push_back(field);
  }
  void tensor(const HeaderTensor& tensor) override {
    got.tensor(tensor);
    if (!fits()) return;
    const auto shape = tensor.shape();
    const std::size_t begin = store.sizes_.size();
    store.sizes_.insert(store.sizes_.end(), shape.begin(), shape.end());
    store.tensors_.push_back({keep(tensor.name), tensor.dtype, std::span(store.sizes_).subspan(begin, shape.size()),
                              tensor.begin, tensor.end});
  }
};

HeaderStore::HeaderStore(const Source& source, std::uint64_t begin, std::uint64_t length, std::uint64_t data_bytes,
                         const std::string& file) {
  Counter counted;
  parse_header(source, begin, length, data_bytes, file, counted);
  pool_.reserve(counted.characters);
  sizes_.reserve(counted.sizes);
  tensors_.reserve(counted.tensors);
  order_.resize(counted.tensors);
  metadata_.fields_.reserve(counted.fields);
  Filler filler(*this, counted);
  parse_header(source, begin, length, data_bytes, file, filler);
  if (!(filler.got == counted)) throw FileError(fmt::format("{}: its header changed while it was being read", file));
  metadata_.pool_ = pool_.data();
  check_tiling(data_bytes, file);
  check_names(file);
}

void HeaderStore::check_tiling(std::uint64_t data_bytes, const std::string& file) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(tensors_[a].begin, tensors_[a].end) < std::pair(tensors_[b].begin, tensors_[b].end);
  });
  std::uint64_t end = 0;
  for (const std::uint32_t i : order_) {
    const TensorEntry& entry = tensors_[i];
    if (entry.begin != end) {
      throw FileError(fmt::format("{}: tensor \"{}\" begins at {} but the data before it end at {}, so there is {}",
                                  file, escaped(entry.name), entry.begin, end,
                                  entry.begin > end ? "a hole" : "an overlap"));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    throw FileError(
        fmt::format("{}: the tensors end at {} but the file holds {} bytes of data", file, end, data_bytes));
  }
}

void HeaderStore::check_names(const std::string& file) {
  const auto by_name = [&](std::uint32_t a, std::uint32_t b) { return tensors_[a].name < tensors_[b].name; };
  std::sort(order_.begin(), order_.end(), by_name);
  const auto twin = std::adjacent_find(order_.begin(), order_.end(),
                                       [&](auto a, auto b) { return tensors_[a].name == tensors_[b].name; });
  if (twin != order_.end()) {
    throw FileError(fmt::format("{}: the name \"{}\" appears twice", file, escaped(tensors_[*twin].name)));
  }
  const auto key = [&](const Metadata::Field& field) {
    return std::string_view(pool_.data() + field.key, field.value - field.key);
  };
  auto& fields = metadata_.fields_;
  std::sort(fields.begin(), fields.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto same =
      std::adjacent_find(fields.begin(), fields.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); });
  if (same != fields.end()) {
    throw FileError(fmt::format("{}: the name \"{}\" appears twice in __metadata__", file, escaped(key(*same))));
  }
}

const TensorEntry* HeaderStore::find(std::string_view name) const {
  const auto at = std::lower_bound(order_.begin(), order_.end(), name,
                                   [&](std::uint32_t i, std::string_view sought) { return tensors_[i].name < sought; });
  return at != order_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

std::pair<std::string_view, std::string_view> Metadata::operator[](std::size_t i) const {
  const Field& field = fields_[i];
  return {{pool_ + field.key, field.value - field.key}, {pool_ + field.value, field.end - field.value}};
}

std::optional<std::string_view> Metadata::find(std::string_view key) const {
  std::size_t low = 0, high = size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    (*this)[middle].first < key ? low = middle + 1 : high = middle;
  }
  if (low == size() || (*this)[low].first != key) return std::nullopt;
  return (*this)[low].second;
}

namespace {

constexpr std::uint64_t prefix_bytes = 8;

/// The header's length, checked against the file and the format's limit.
std::uint64_t header_length(const Source& source, const std::string& file) {
  std::array<std::byte, prefix_bytes> prefix{};
  if (!source.read(0, prefix)) {
    throw FileError(
        fmt::format("{}: has {} bytes, too few for a safetensors file, which starts with 8 bytes of header length",
                    file, source.size()));
  }
  const std::uint64_t length = ByteReader(prefix).little_endian_u64().value();
  const std::uint64_t rest = source.size() - prefix_bytes;
  if (length > max_header_bytes) {
    throw FileError(fmt::format("{}: its header claims {} bytes, more than the {} that safetensors allows: is it one?",
                                file, length, max_header_bytes));
  }
  if (length > rest) {
    throw FileError(
        fmt::format("{}: its header claims {} bytes but only {} bytes are left in the file", file, length, rest));
  }
  if (length == 0) throw FileError(fmt::format("{}: its header has 0 bytes", file));
  return length;
}

}  // namespace

struct SafetensorsFile::Impl {
  template <class From>
  Impl(const From& from, std::string shown)
      : source(from),
        name(std::move(shown)),
        file(escaped(name, 400)),
        data_begin(prefix_bytes + header_length(source, file)),
        store(source, prefix_bytes, data_begin - prefix_bytes, data_bytes(), file) {}

  std::uint64_t data_bytes() const { return source.size() - data_begin; }

  Source source;
  std::string name, file;
  std::uint64_t data_begin;
  HeaderStore store;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  return SafetensorsFile(std::make_unique<Impl>(path, path));
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes, std::string name) {
  return SafetensorsFile(std::make_unique<Impl>(bytes, std::move(name)));
}

const std::string& SafetensorsFile::name() const noexcept { return impl_->name; }
const Metadata& SafetensorsFile::metadata() const noexcept { return impl_->store.metadata(); }
std::span<const TensorEntry> SafetensorsFile::tensors() const noexcept { return impl_->store.tensors(); }
const TensorEntry* SafetensorsFile::find(std::string_view name) const noexcept { return impl_->store.find(name); }

Tensor SafetensorsFile::read(const TensorEntry& entry) const {
  const auto fail = [&](const std::string& what) {
    throw FileError(fmt::format("{}: tensor \"{}\": {}", impl_->file, escaped(entry.name), what));
  };
  const std::uint64_t bytes = entry.end - entry.begin;
  Tensor tensor;
  try {
    tensor = Tensor(entry.dtype, {entry.shape.begin(), entry.shape.end()});
  } catch (const std::bad_alloc&) {
    fail(fmt::format("its {} bytes do not fit the memory", bytes));
  }
  // An entry of another file can't lead outside of this one or of the tensor.
  if (tensor.bytes().size() != bytes || entry.end > impl_->data_bytes()) fail("is no tensor of this file");
  if (!impl_->source.read(impl_->data_begin + entry.begin, tensor.bytes()) || !impl_->source.unchanged()) {
    fail("the file changed or was cut off after it was opened");
  }
  if (entry.dtype == DType::boolean) {
    const auto values = std::as_const(tensor).bytes();
    const auto wrong = std::find_if(values.begin(), values.end(), [](std::byte b) { return b > std::byte{1}; });
    if (wrong != values.end()) {
      fail(fmt::format("byte {} is {}, but a BOOL is 0 or 1", wrong - values.begin(), std::to_integer<int>(*wrong)));
    }
  }
  return tensor;
}

}  // namespace levelhead
