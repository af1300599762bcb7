#include "core/context.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "kernels/kernel.hpp"

namespace levelhead {
namespace {

constexpr std::size_t alignment = 64;

int resolve_threads(int threads) {
  if (threads < 0) throw Error("a context can't have " + std::to_string(threads) + " threads; 0 means one per core");
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

std::byte* Context::Impl::scratch(std::size_t bytes) {
  if (bytes + alignment > capacity_) {
    memory_.reset();  // before the larger one, so that the two never exist together
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + alignment);
    capacity_ = bytes + alignment;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  return memory_.get() + (alignment - address % alignment) % alignment;
}

Context::Context(int threads) : impl_(std::make_unique<Impl>(resolve_threads(threads))) {}
Context::~Context() = default;

int Context::threads() const noexcept { return impl_->pool.threads(); }

std::vector<KernelInfo> kernels() {
  const Cpu cpu = detect_cpu();
  std::vector<KernelInfo> infos;
  for (const Kernel& kernel : kernel_table()) {
    const Support support = kernel.support(cpu);
    KernelInfo info{std::string(kernel.name), support.available, {}, support.why};
    for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      if ((kernel.types & bit(type)) != 0) info.types.push_back(type);
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace levelhead
