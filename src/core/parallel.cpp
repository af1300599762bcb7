#include "core/parallel.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace levelhead {

// One run is one Job: workers that wake late find no task left and touch nothing of the caller's, because a run ends
// only when every worker that entered the job has left it.
struct Pool::Workers {
  struct Job {
    std::int64_t tasks = 0;
    const std::function<void(std::int64_t, int)>* body = nullptr;
  };

  explicit Workers(int count) : owner(getpid()) {
    threads.reserve(static_cast<std::size_t>(count));
    try {
      for (int t = 1; t <= count; ++t) threads.emplace_back([this, t] { loop(t); });
    } catch (const std::system_error&) {
      // Fewer threads than asked for is slower, not wrong: every task is handed out to whoever is there.
    }
  }

  ~Workers() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
      generation.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void loop(int thread) {
    std::uint64_t seen = 0;
    while (true) {
      wait_for_job(seen);
      {
        const std::lock_guard lock(mutex);
        if (stop) return;
        seen = generation.load(std::memory_order_relaxed);
        if (!open) continue;
        ++inside;
      }
      work(thread);
      bool last = false;
      {
        const std::lock_guard lock(mutex);
        last = --inside == 0;
      }
      if (last) done.notify_one();
    }
  }

  // Decode calls follow each other within microseconds: a short spin saves the wake-up, a bounded one keeps a
  // preempted core from being burnt.
  void wait_for_job(std::uint64_t seen) {
    for (int spin = 0; spin < 2000; ++spin) {
      if (generation.load(std::memory_order_acquire) != seen) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return generation.load(std::memory_order_relaxed) != seen; });
  }

  void work(int thread) {
    for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < job.tasks;) {
      (*job.body)(task, thread);
    }
  }

  void run(const Job& new_job) {
    {
      const std::lock_guard lock(mutex);
      job = new_job;
      next.store(0, std::memory_order_relaxed);
      open = true;
      generation.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
    work(0);
    std::unique_lock lock(mutex);
    open = false;  // nobody may enter any more; whoever is inside finishes its task
    done.wait(lock, [&] { return inside == 0; });
  }

  const pid_t owner;
  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<std::int64_t> next{0};
  Job job;            // written under mutex while nobody is inside
  bool open = false;  // guarded by mutex, as are the next two
  int inside = 0;
  bool stop = false;
  std::vector<std::thread> threads;
};

Pool::Pool(int threads) : threads_(threads) {}

Pool::~Pool() {
  // A forked child has the object but not the threads: joining would hang, so the child lets it go.
  if (workers_ && workers_->owner != getpid()) static_cast<void>(workers_.release());
}

void Pool::run(std::int64_t tasks, const std::function<void(std::int64_t, int)>& body) {
  if (threads_ == 1 || tasks <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  if (workers_ && workers_->owner != getpid()) static_cast<void>(workers_.release());
  if (!workers_) workers_ = std::make_unique<Workers>(threads_ - 1);
  workers_->run({tasks, &body});
}

}  // namespace levelhead
