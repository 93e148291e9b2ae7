#include "cli/no_memory.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "base/error.h"

namespace hone::cli {
namespace {

// Set where operator new finds no memory. From then on the C++ library is not to be trusted: while
// it unwinds, std::filesystem ends the process, or frees the parts of a path twice.
std::atomic<bool> new_failed = false;

[[noreturn]] void refuse_memory() {
  new_failed = true;
  throw std::bad_alloc();
}

bool is_out_of_memory() {
  if (new_failed) return true;
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
  }
  return false;
}

// The message is short: a longer one would need memory.
[[noreturn]] void end_by_limit() {
  constexpr std::string_view kMessage = "hone: error: out of memory\n";
  (void)!::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(static_cast<int>(ErrorCode::limit));
}

[[noreturn]] void end_without_unwinding() {
  if (is_out_of_memory()) end_by_limit();
  std::abort();
}

void on_abort(int signal) {
  end_if_no_memory();
  std::signal(signal, SIG_DFL);  // and abort() raises it again
}

// Exceptions may pass frames of the C library, such as that of a first call (std::call_once). A
// part of the compiler's library handles this, and is loaded when it happens. Loading fails where
// memory has just ended.
void load_unwinder() {
  void* here = nullptr;
  (void)::backtrace(&here, 1);
}

}  // namespace

void expect_no_memory() {
  std::set_terminate(end_without_unwinding);
  std::set_new_handler(refuse_memory);
  std::signal(SIGABRT, on_abort);
  load_unwinder();
}

void end_if_no_memory() {
  if (new_failed) end_by_limit();
  constexpr size_t kBytes = 1 << 20;  // the least that malloc takes at once where its heap is full
  constexpr int kOfNoFile = -1;
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, kOfNoFile, 0);
  if (memory == MAP_FAILED) end_by_limit();
  ::munmap(memory, kBytes);
}

}  // namespace hone::cli
