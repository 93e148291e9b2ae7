#include "cli/guard.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/no_memory.h"

#include <exception>
#include <new>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

Result<fs::path> save(const Reproducer& reproducer, const fs::path& parent) {
  const fs::path folder = parent / reproducer.name;
  HONE_TRY(make_folders(folder));
  for (const Console::Kept& file : reproducer.files)
    HONE_TRY(write_file_atomic(folder / file.name, file.text));
  return folder;
}

int report_fault(std::span<const std::string> words, Console& console, const fs::path& folder,
                 const std::string& message) {
  Error error(ErrorCode::internal, message);
  const Reproducer reproducer =
      reproducer_of(words, message + "\n", console.exhibit(), console, folder);
  for (const fs::path& place : reproducer_places(folder)) {
    const Result<fs::path> saved = save(reproducer, place);
    if (!saved.ok()) continue;
    error = std::move(error).with_hint(fmt::format("{}{}", kReportHint, saved->string()));
    break;
  }
  console.error(error);
  return static_cast<int>(error.code());
}

}  // namespace

int guarded(std::span<const std::string> words, Console& console, const fs::path& folder,
            const std::function<Status()>& body) {
  expect_no_memory();
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
    (void)console.flush();
    return static_cast<int>(ErrorCode::limit);
  } catch (const std::exception& fault) {
    return report_fault(words, console, folder, fault.what());
  }
}

Reproducer reproducer_of(std::span<const std::string> words, const std::string& message,
                         const std::string& graph, const Console& console, const fs::path& folder) {
  std::string command = "hone";
  for (const std::string& word : words) command += " " + shell_quoted(word);
  Hasher id;
  id.add(command).add(message).add(graph);
  for (const Console::Kept& file : console.kept()) id.add(file.text);
  Reproducer reproducer = {fmt::format("hone-crash-{:08x}", id.value() >> 32), {}};
  std::vector<Console::Kept>& files = reproducer.files;
  files.push_back({"report.txt", fmt::format("hone {}\nfolder: {}\n\n{}", HONE_VERSION,
                                             folder.string(), message)});
  files.push_back({"command.sh", command + "\n"});
  if (!graph.empty()) files.push_back({"graph.hone", graph});
  files.insert(files.end(), console.kept().begin(), console.kept().end());
  return reproducer;
}

std::vector<fs::path> reproducer_places(const fs::path& folder) {
  std::error_code ignored;
  return {folder, fs::temp_directory_path(ignored)};
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
