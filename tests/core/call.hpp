// A small valid call with its tensors, for tests that spoil one thing at a time.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "levelhead/attention.hpp"

namespace levelhead::test {

/// Values and their dense view; strides may be replaced.
template <class T>
struct Tensor {
  std::vector<std::int64_t> sizes;
  std::vector<T> values;

  explicit Tensor(std::vector<std::int64_t> sizes_, T fill = T{}) : sizes(std::move(sizes_)) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    values.assign(static_cast<std::size_t>(count), fill);
  }
  Tensor(std::vector<std::int64_t> sizes_, std::vector<T> values_)
      : sizes(std::move(sizes_)), values(std::move(values_)) {}

  MutableTensorView view() {
    MutableTensorView v;
    v.data = values.data();
    v.dtype = dtype_of<T>();
    v.rank = static_cast<int>(sizes.size());
    std::int64_t stride = 1;
    for (int axis = v.rank - 1; axis >= 0; --axis) {
      v.sizes[axis] = sizes[axis];
      v.strides[axis] = stride;
      stride *= sizes[axis];
    }
    return v;
  }
};

/// Unit normals from a fixed seed.
template <class T>
Tensor<T> normals(std::vector<std::int64_t> sizes, unsigned seed) {
  Tensor<T> tensor(std::move(sizes));
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (T& x : tensor.values) x = static_cast<T>(normal(random));
  return tensor;
}

/// q [2, 4, 5, 8], k [2, 2, 5, 8], v [2, 2, 5, 6] and all that can go with them: spoil `inputs`, `options`, ... of it.
/// `given` tensors are valid but not yet among the inputs.
struct Call {
  std::int64_t B = 2, Hq = 4, Hk = 2, Nq = 5, Nk = 5, D = 8, Dv = 6;
  Tensor<float> q = normals<float>({B, Hq, Nq, D}, 1), k = normals<float>({B, Hk, Nk, D}, 2),
                v = normals<float>({B, Hk, Nk, Dv}, 3);
  Tensor<float> o{{B, Hq, Nq, Dv}}, lse{{B, Hq, Nq}};
  Tensor<float> dq{{B, Hq, Nq, D}}, dk{{B, Hk, Nk, D}}, dv{{B, Hk, Nk, Dv}};
  Tensor<float> per_head{{Hq}, 1.0F}, per_row{{B, Hq, Nq}, 1.0F}, bias{{Nq, Nk}};
  Tensor<float> dbias{{Nq, Nk}}, d_per_head{{Hq}}, d_per_row{{B, Hq, Nq}};
  Tensor<std::uint8_t> mask_bytes{{Nq, Nk}, 1};
  std::vector<RowState> state{static_cast<std::size_t>(B * Hq * Nq)};

  Inputs inputs{q.view(), k.view(), v.view()};
  Options options;
  Outputs outputs{o.view(), lse.view(), state};
  Saved saved{state};
  OutputGradients incoming{o.view(), lse.view(), {}};
  Gradients gradients{dq.view(), dk.view(), dv.view()};

  Call() = default;
  Call(const Call&) = delete;  // its views point into it
  Call& operator=(const Call&) = delete;

  TensorView mask() {
    TensorView view = mask_bytes.view();
    view.dtype = DType::boolean;
    return view;
  }

  Problem problem() const { return make_problem(inputs, options); }
  ForwardOutputs forward() const { return make_outputs(problem(), inputs, outputs); }
  BackwardTensors backward() const { return make_backward(problem(), inputs, options, saved, incoming, gradients); }
};

/// The sentence that `body` throws, or "" if it throws none.
template <class Body>
std::string sentence(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// One way to spoil a call, and the sentence it must give.
struct Wrong {
  std::string name;
  std::function<void(Call&)> spoil;
  std::string says;
};
inline std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.name; }
inline std::string name_of_wrong(const auto& info) { return info.param.name; }

}  // namespace levelhead::test
