#include "python/job.h"

#include <chrono>
#include <thread>

namespace hone::python {

namespace py = pybind11;

void Listener::start(int64_t total, std::string_view label) {
  const std::scoped_lock lock(mutex_);
  state_ = {.label = std::string(label), .total = total};
  began_ = seconds();
  is_new_ = true;
}

void Listener::advance(int64_t count) {
  const std::scoped_lock lock(mutex_);
  state_.done += count;
  is_new_ = true;
}

void Listener::finish(std::string_view remark) {
  const std::scoped_lock lock(mutex_);
  if (!remark.empty()) notes_.emplace_back(remark);
  is_new_ = true;
}

void Listener::note(std::string_view line) {
  const std::scoped_lock lock(mutex_);
  notes_.emplace_back(line);
  is_new_ = true;
}

void Listener::now(std::string_view what) {
  const std::scoped_lock lock(mutex_);
  state_.now = what;
  is_new_ = true;
}

void Listener::set_done() {
  const std::scoped_lock lock(mutex_);
  is_done_ = true;
  changed_.notify_all();
}

bool Listener::wait_until_done(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return is_done_; });
}

void Listener::tell(py::handle hears) {
  ProgressState state;
  std::vector<std::string> notes;
  {
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(is_new_, false)) return;
    state = state_;
    state.elapsed = seconds() - began_;
    notes.swap(notes_);
  }
  if (hears.is_none()) return;
  py::list lines;
  for (const std::string& line : notes) lines.append(py::str(line));
  const bool is_counting = !state.label.empty();
  hears(py::dict(py::arg("label") = state.label, py::arg("done") = state.done,
                 py::arg("total") = state.total, py::arg("elapsed") = state.elapsed,
                 py::arg("now") = state.now,
                 py::arg("bar") = is_counting ? progress_bar(state) : std::string(),
                 py::arg("line") = is_counting ? progress_line(state) : std::string()),
        lines);
}

double Listener::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_beside(py::handle hears, const std::function<void(const Face&)>& work) {
  Listener listener;
  CancelToken cancel;
  const Face face = {.labels = {.size = "sizes",
                                .shape = "shapes",
                                .threads = "threads",
                                .compile = "hone.compile"},
                     .notice = [&](std::string_view line) { listener.note(line); },
                     .progress = &listener,
                     .cancel = &cancel};
  std::exception_ptr fault, raised;
  std::thread worker([&] {
    try {
      work(face);
    } catch (...) {
      fault = std::current_exception();
    }
    listener.set_done();
  });
  for (bool is_done = false; !is_done;) {
    {
      const py::gil_scoped_release free;
      is_done = listener.wait_until_done(std::chrono::milliseconds(100));
      if (is_done) worker.join();
    }
    if (raised != nullptr) continue;
    try {
      listener.tell(hears);
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    } catch (...) {
      raised = std::current_exception();
      cancel.cancel();
    }
  }
  if (raised != nullptr) std::rethrow_exception(raised);
  if (fault != nullptr) std::rethrow_exception(fault);
}

}  // namespace hone::python
