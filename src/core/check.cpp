#include "core/check.hpp"

#include <array>
#include <charconv>

#include "core/overlap.hpp"

namespace levelhead {
namespace {

std::string list_text(const Dims& values, int rank) {
  std::string list = "[";
  for (int axis = 0; axis < rank; ++axis) {
    if (axis > 0) list += ", ";
    list += std::to_string(values[axis]);
  }
  return list + "]";
}

template <class Number>
std::string shortest(Number x) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr};
}

bool within(std::int64_t x) { return -longest <= x && x <= longest; }

// The addresses themselves must exist, or a kernel's pointers would wrap.
bool addressable(const void* data, const ByteExtent& extent) {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  std::uintptr_t unused = 0;
  return !__builtin_add_overflow(start, extent.low, &unused) && !__builtin_add_overflow(start, extent.high, &unused);
}

}  // namespace

std::string text(double x) { return shortest(x); }
std::string text(float x) { return shortest(x); }

std::string shape_text(const TensorView& view) { return list_text(view.sizes, view.rank); }

std::string text(const Named& tensor) { return std::string(tensor.name) + " " + shape_text(tensor.view); }

bool fits(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors)
    if (factor != 0 && __builtin_mul_overflow(result, factor, &result)) return false;
  return true;
}

bool has_elements(const TensorView& view) {
  for (int axis = 0; axis < view.rank; ++axis)
    if (view.sizes[axis] == 0) return false;
  return true;
}

std::optional<ByteExtent> byte_extent(const TensorView& view) {
  if (!has_elements(view)) return ByteExtent{};
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  ByteExtent extent{0, width};
  for (int axis = 0; axis < view.rank; ++axis) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(view.sizes[axis] - 1, view.strides[axis], &reach) ||
        __builtin_mul_overflow(reach, width, &reach) || !within(reach))
      return std::nullopt;
    (reach < 0 ? extent.low : extent.high) += reach;
  }
  if (!within(extent.low) || !within(extent.high)) return std::nullopt;
  return extent;
}

void check_view(const Named& tensor) {
  const TensorView& view = tensor.view;
  if (view.rank < 0 || view.rank > max_rank)
    fail(tensor.name, " has rank ", view.rank, " but tensors have 0 to ", max_rank, " axes");
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.sizes[axis] < 0)
      fail(text(tensor), " has size ", view.sizes[axis], " on axis ", axis, ": no size is negative");
    if (view.sizes[axis] > longest)
      fail(text(tensor), " has size ", view.sizes[axis], " on axis ", axis, ": positions overflow above ", longest);
  }
  const std::optional<ByteExtent> extent = byte_extent(view);
  if (!extent)
    fail(text(tensor), " with strides ", list_text(view.strides, view.rank), " overflows: its ", name_of(view.dtype),
         " elements lie more than ", longest, " bytes apart");
  if (!has_elements(view)) return;
  if (view.data == nullptr) fail(text(tensor), " has elements but its data is null");
  const auto start = reinterpret_cast<std::uintptr_t>(view.data);
  if (start % size_of(view.dtype) != 0)
    fail(text(tensor), " starts at an address that is no multiple of the ", size_of(view.dtype), " bytes of ",
         name_of(view.dtype));
  if (!addressable(view.data, *extent))
    fail(text(tensor), " with strides ", list_text(view.strides, view.rank), " overflows the address space");
}

void check_shape(const Named& tensor, std::initializer_list<Axis> axes) {
  check_view(tensor);
  const TensorView& view = tensor.view;
  bool same = view.rank == static_cast<int>(axes.size());
  std::string names, sizes;
  int at = 0;
  for (const Axis& axis : axes) {
    same = same && view.sizes[at] == axis.size;
    names += (at > 0 ? ", " : "") + std::string(axis.name);
    sizes += (at > 0 ? ", " : "") + std::to_string(axis.size);
    ++at;
  }
  if (!same) fail(text(tensor), " must be [", names, "] = [", sizes, "]");
}

void check_number_type(const Named& tensor, DType q) {
  if (tensor.view.dtype == DType::f32) return;
  if (q != DType::f64) check_type(tensor, DType::f32, "beside " + std::string(name_of(q)) + " q");
  if (tensor.view.dtype != DType::f64)
    fail(text(tensor), " is ", name_of(tensor.view.dtype), " but must be f32 or f64 beside f64 q");
}

void check_type(const Named& tensor, DType wanted, std::string_view because) {
  if (tensor.view.dtype != wanted)
    fail(text(tensor), " is ", name_of(tensor.view.dtype), " but must be ", name_of(wanted), ", ", because);
}

void check_broadcast(const Named& tensor, const Problem& p) {
  check_view(tensor);
  const Dims wanted{p.B, p.Hq, p.Nq, p.Nk};
  const TensorView& view = tensor.view;
  for (int axis = 0; axis < view.rank; ++axis) {
    const std::int64_t size = view.sizes[axis], target = wanted[max_rank - view.rank + axis];
    if (size != 1 && size != target)
      fail(text(tensor), " does not broadcast to [B, Hq, Nq, Nk] = ", list_text(wanted, max_rank), ": axis ", axis,
           " has size ", size, " and must have 1 or ", target);
  }
}

namespace {

void check_writable(const Named& out) {
  if (!has_elements(out.view)) return;
  for (int axis = 0; axis < out.view.rank; ++axis) {
    if (out.view.sizes[axis] > 1 && out.view.strides[axis] <= 0)
      fail(text(out), " has stride ", out.view.strides[axis], " on axis ", axis, " but outputs need positive strides");
  }
  if (!self_disjoint(out.view)) {
    const TensorView& view = out.view;
    std::string strides;
    for (int axis = 0; axis < view.rank; ++axis) strides += (axis > 0 ? ", " : "") + std::to_string(view.strides[axis]);
    fail(text(out), " with strides [", strides,
         "] may hold one element at two indices: outputs must not overlap themselves");
  }
}

}  // namespace

void check_apart(const Tensors& inputs, const Tensors& outputs) {
  for (std::size_t at = 0; at < outputs.size(); ++at) {
    check_writable(outputs[at]);
    for (const Named& in : inputs)
      if (!disjoint(outputs[at].view, in.view))
        fail(text(outputs[at]), " overlaps the input ", text(in), ": what is written must share no memory with it");
    for (std::size_t other = 0; other < at; ++other)
      if (!disjoint(outputs[at].view, outputs[other].view))
        fail(text(outputs[at]), " overlaps ", text(outputs[other]), ": outputs must share no memory");
  }
}

}  // namespace levelhead
