#include "callers/batch.hpp"

#include <string>

#include "levelhead/attention.hpp"

namespace levelhead::callers {
namespace {

void check_three(const char* name, std::size_t axes) {
  if (axes != 3)
    throw Error(std::string(name) + " has " + std::to_string(axes) +
                " axes but q has 3: all three mean B = 1, or none");
}

}  // namespace

bool is_batched(std::size_t q_axes, std::size_t k_axes, std::size_t v_axes) {
  if (q_axes != 3) return true;
  check_three("k", k_axes);
  check_three("v", v_axes);
  return false;
}

}  // namespace levelhead::callers
