#include "cli/guard.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/console.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// The same fault of the same command goes to the same folder.
Result<fs::path> save_reproducer(std::span<const std::string> words, const std::string& message,
                                 const std::string& graph, std::span<const Console::Kept> files,
                                 const fs::path& parent) {
  std::string command = "hone";
  for (const std::string& word : words) command += " " + shell_quoted(word);
  Hasher id;
  id.add(command).add(message).add(graph);
  for (const Console::Kept& file : files) id.add(file.text);
  const fs::path folder = parent / fmt::format("hone-crash-{:08x}", id.value() >> 32);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return bad_input("cannot create {}: {}", folder.string(), failed.message());
  const std::string report =
      fmt::format("hone {}\nfolder: {}\n\n{}\n", HONE_VERSION, parent.string(), message);
  HONE_TRY(write_file_atomic(folder / "report.txt", report));
  HONE_TRY(write_file_atomic(folder / "command.sh", command + "\n"));
  if (!graph.empty()) HONE_TRY(write_file_atomic(folder / "graph.hone", graph));
  for (const Console::Kept& file : files)
    HONE_TRY(write_file_atomic(folder / file.name, file.text));
  return folder;
}

int report_fault(std::span<const std::string> words, Console& console, const fs::path& parent,
                 const std::string& message) {
  Error error(ErrorCode::internal, message);
  // A broken graph may not even print.
  std::string graph;
  try {
    graph = console.exhibit();
  } catch (const std::exception&) {
    graph = "";
  }
  // The working folder may be read-only.
  for (const fs::path& place : {parent, fs::temp_directory_path()}) {
    const Result<fs::path> saved = save_reproducer(words, message, graph, console.kept(), place);
    if (!saved.ok()) continue;
    error = std::move(error).with_hint(
        fmt::format("this is a fault of hone, not yours; please report it with the folder {}",
                    saved->string()));
    break;
  }
  console.error(error);
  return static_cast<int>(error.code());
}

// Memory may end where nothing can be unwound: in a destructor, or in LLVM, which is built without
// exceptions. Then there is none left for a long story either.
[[noreturn]] void end_without_unwinding() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      constexpr std::string_view kMessage = "hone: error: out of memory\n";
      (void)!::write(STDERR_FILENO, kMessage.data(), kMessage.size());
      ::_exit(static_cast<int>(ErrorCode::limit));
    } catch (...) {
    }
  }
  std::abort();
}

}  // namespace

int guarded(std::span<const std::string> words, Console& console, const fs::path& folder,
            const std::function<Status()>& body) {
  std::set_terminate(end_without_unwinding);
  try {
    Status done = body();
    if (done.ok()) done = console.flush();
    if (done.ok()) return 0;
    (void)console.flush();
    if (done.error().code() == ErrorCode::internal)
      return report_fault(words, console, folder,
                          fmt::format("{} ({})", done.error().what(), done.error().where()));
    console.error(done.error());
    return static_cast<int>(done.error().code());
  } catch (const std::bad_alloc&) {
    console.error(over_limit("out of memory").with_hint("try a smaller size or batch"));
    return static_cast<int>(ErrorCode::limit);
  } catch (const std::exception& fault) {
    return report_fault(words, console, folder, fault.what());
  }
}

std::string shell_quoted(std::string_view word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace hone::cli
