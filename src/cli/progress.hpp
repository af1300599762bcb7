// Says on stderr what is being done, when that is a terminal and it takes more than a second.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace levelhead::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(std::string what);  ///< what is being done now

 private:
  void show();

  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::string what_;
  std::thread thread_;
};

}  // namespace levelhead::cli
