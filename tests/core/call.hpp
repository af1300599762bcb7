// A small valid call with its tensors, for tests that spoil one thing at a time.
#pragma once

#include <numeric>
#include <random>
#include <vector>

#include "core/problem.hpp"
#include "levelhead/attention.hpp"

namespace levelhead::testing {

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

/// q [2, 4, 3, 8], k [2, 2, 5, 8], v [2, 2, 5, 6] and everything that goes with them, f32.
struct Call {
  std::int64_t B = 2, Hq = 4, Hk = 2, Nq = 3, Nk = 5, D = 8, Dv = 6;
  Tensor<float> q = normals<float>({B, Hq, Nq, D}, 1), k = normals<float>({B, Hk, Nk, D}, 2),
                v = normals<float>({B, Hk, Nk, Dv}, 3);
  Tensor<float> o{{B, Hq, Nq, Dv}}, lse{{B, Hq, Nq}};
  std::vector<RowState> state{static_cast<std::size_t>(B * Hq * Nq)};

  Inputs inputs{q.view(), k.view(), v.view(), {}, {}, {}, {}, {}, {}, {}, {}};
  Options options;
  Outputs outputs{o.view(), lse.view(), state};

  Call() = default;
  Call(const Call&) = delete;  // its views point into it
  Call& operator=(const Call&) = delete;

  Problem problem() const { return make_problem(inputs, options); }
  ForwardOutputs resolved() const { return make_outputs(problem(), inputs, outputs); }
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

}  // namespace levelhead::testing
