// A small pool of threads that one Context owns. The caller works too; workers spin briefly, then sleep.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace levelhead {

class Pool {
 public:
  /// threads: the caller among them; workers start at the first run that can use them.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const noexcept { return threads_; }

  /// Calls body(task, thread) once for each task in [0, tasks), thread in [0, threads()), and returns when all
  /// are done. Tasks are handed out in order, one at a time; body must not throw.
  void run(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body);

 private:
  struct Workers;
  int threads_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace levelhead
