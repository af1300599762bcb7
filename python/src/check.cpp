// check: a captured file, or its tensors as arrays, judged as the command's `check` does.
#include "core/check.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "array.hpp"
#include "call.hpp"
#include "callers/check_json.hpp"
#include "callers/words.hpp"
#include "module.hpp"

namespace levelhead::python {
namespace {

/// What Python says instead of the metadata, and which part it asks for.
struct CheckSettings {
  std::optional<double> scale;
  std::optional<bool> causal;
  std::optional<AlignSetting> align;
  std::optional<std::int64_t> layer, head;
  bool fresh = false;
  int threads = 0;
};

callers::CaptureOptions capture_options(const CheckSettings& settings) {
  callers::CaptureOptions options;
  options.spelling = {"scale=X", "causal=True or causal=False",
                      "align='top-left', align='bottom-right' or align=OFFSET"};
  options.scale = settings.scale;
  options.causal = settings.causal;
  if (settings.align) options.align = align_of(*settings.align);
  return options;
}

// (the object as JSON, names of tensors that are no part of the capture)
using Told = std::pair<std::string, std::vector<std::string>>;

Told judge(SafetensorsFile file, const CheckSettings& settings) {
  const nb::gil_scoped_release others_run;
  const callers::Capture capture = callers::read_capture(std::move(file), capture_options(settings));
  const callers::Rule rule = settings.fresh ? callers::Rule::fresh : callers::Rule::h75;
  const callers::Judged judged = callers::measure(capture, {settings.layer, settings.head}, rule, settings.threads);
  return {callers::to_line(callers::check_json(capture, judged)), capture.others};
}

Told check_file(const std::string& path, const CheckSettings& settings) {
  return judge(SafetensorsFile::open(path), settings);
}

std::vector<std::byte> dense_bytes_of(const Array& array) {
  const TensorView& view = array.view();
  check_view({array.name(), view});
  const std::size_t width = size_of(view.dtype);
  std::vector<std::byte> bytes;
  if (!has_elements(view)) return bytes;
  const auto* data = static_cast<const std::byte*>(view.data);
  Dims index{};
  for (bool more = true; more;) {
    std::int64_t at = 0;
    for (int axis = 0; axis < view.rank; ++axis) at += index[axis] * view.strides[axis];
    const std::byte* element = data + at * static_cast<std::int64_t>(width);
    bytes.insert(bytes.end(), element, element + width);
    int axis = view.rank - 1;
    for (; axis >= 0 && ++index[axis] == view.sizes[axis]; --axis) index[axis] = 0;
    more = axis >= 0;
  }
  return bytes;
}

// The arrays as the file they would be, so that both are read and judged by the same lines.
Told check_arrays(const nb::list& arrays, const std::vector<std::pair<std::string, std::string>>& metadata,
                  const CheckSettings& settings) {
  const std::string name = "the arrays";
  std::vector<std::vector<std::byte>> contents;
  std::vector<NamedTensor> tensors;
  contents.reserve(nb::len(arrays));
  for (const nb::handle item : arrays) {
    const auto& array = nb::cast<const Array&>(item);
    contents.push_back(dense_bytes_of(array));
    tensors.push_back({array.name(), array.view().dtype, array.shape(), contents.back()});
  }
  const std::vector<std::byte> bytes = safetensors_bytes(tensors, metadata, name);
  contents.clear();
  return judge(SafetensorsFile::from_bytes(bytes, name), settings);
}

}  // namespace

void bind_check(nb::module_& module) {
  nb::class_<CheckSettings>(module, "CheckSettings", "What check is told beside the capture.")
      .def(nb::init<>())
      .def_rw("scale", &CheckSettings::scale, nb::arg().none())
      .def_rw("causal", &CheckSettings::causal, nb::arg().none())
      .def_rw("align", &CheckSettings::align, nb::arg().none())
      .def_rw("layer", &CheckSettings::layer, nb::arg().none())
      .def_rw("head", &CheckSettings::head, nb::arg().none())
      .def_rw("fresh", &CheckSettings::fresh)
      .def_rw("threads", &CheckSettings::threads);
  module.def("check_file", &check_file, nb::arg("path"), nb::arg("settings"));
  module.def("check_arrays", &check_arrays, nb::arg("arrays"), nb::arg("metadata"), nb::arg("settings"));
}

}  // namespace levelhead::python
