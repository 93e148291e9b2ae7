#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <type_traits>

#include "base/error.h"

namespace hone::bench {

// What work finds out in a process of its own, as it is at that moment: with its own memory, and
// with no thread but the caller's.
template <class T>
Result<T> in_child(const std::function<Result<T>()>& work) {
  static_assert(std::is_trivially_copyable_v<T>);
  int ends[2];
  HONE_CHECK(pipe(ends) == 0, "no pipe");
  const pid_t process = fork();
  HONE_CHECK(process >= 0, "no process");
  if (process == 0) {
    const Result<T> found = work();
    if (!found.ok()) std::fprintf(stderr, "%s\n", found.error().to_string().c_str());
    const bool is_told = found.ok() && write(ends[1], &*found, sizeof(T)) == sizeof(T);
    _exit(is_told ? 0 : 1);
  }
  close(ends[1]);
  T value = {};
  const bool is_told = read(ends[0], &value, sizeof value) == sizeof value;
  close(ends[0]);
  int status = 0;
  waitpid(process, &status, 0);
  if (!is_told || status != 0) return bad_input("the process failed");
  return value;
}

}  // namespace hone::bench
