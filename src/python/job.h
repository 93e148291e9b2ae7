#pragma once

#include <pybind11/pybind11.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "session/face.h"

// Long work that Python waits for. A thread of its own does it with the GIL free. Meanwhile the
// caller's thread looks after signals (Ctrl-C cancels the work) and tells how far it has come.

namespace hone::python {

// How far the work has come, told by its threads and heard by the caller's.
class Listener final : public Progress {
 public:
  void start(int64_t total, std::string_view label) override;
  void advance(int64_t count) override;
  void finish(std::string_view remark) override;
  void note(std::string_view line) override;
  void now(std::string_view what) override;

  void set_done();
  bool wait_until_done(std::chrono::milliseconds time);
  // Calls `hears(state, notes)` if there is something new: a dict, and a list of lines.
  void tell(pybind11::handle hears);

 private:
  double seconds() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  ProgressState state_;
  double began_ = 0;
  std::vector<std::string> notes_;
  bool is_new_ = false;
  bool is_done_ = false;
};

// `hears` may be none. Exceptions of the work are thrown here, and so are those of signal handlers
// and of `hears`, once the work has ended.
void run_beside(pybind11::handle hears, const std::function<void(const Face&)>& work);

}  // namespace hone::python
