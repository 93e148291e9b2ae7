#include "session/build_library.h"

#include "base/checked_math.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "compile/c_names.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status write_weights(const LibrarySources& sources, const fs::path& path) {
  static constexpr char kZeros[LibrarySources::kAlignment] = {};
  std::vector<std::string_view> pieces;
  int64_t end = 0;
  for (const Tensor& weight : sources.weights) {
    const int64_t begin = round_up(end, LibrarySources::kAlignment);
    pieces.emplace_back(kZeros, static_cast<size_t>(begin - end));
    pieces.push_back(text_of(weight.bytes()));
    end = begin + weight.byte_size();
  }
  return write_file_atomic(path, pieces);
}

// The first message of a compiler, without what leads there.
std::string first_error(std::string_view text) {
  for (std::string_view line : split_lines(text))
    if (line.find("error") != std::string_view::npos) return escape(line);
  return excerpt(trim(text));
}

// Runs the words, the first of which is looked for as a shell does.
Status run_tool(const std::vector<std::string>& words, std::string_view hint,
                const CancelToken* cancel) {
  const ProcessResult result = HONE_TRY(run_process("/usr/bin/env", words, {}, cancel));
  constexpr int kNoProgram = 127;  // env(1)
  if (result.signal == 0 && result.exit_code == kNoProgram)
    return unsupported("a library needs a C compiler; '{}' was not found", words[0])
        .with_hint(std::string(hint));
  if (result.signal != 0) return bad_input("{} ended by {}", words[0], signal_name(result.signal));
  if (result.exit_code == 0) return {};
  return bad_input("{}: {}", words[0], first_error(result.err))
      .with_hint(fmt::format("'{}' comes from the environment variable CC, or is the default, cc",
                             words[0]));
}

}  // namespace

bool is_library_path(const fs::path& path) {
  return path.extension() == ".so" || path.extension() == ".a";
}

std::string library_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  std::string_view name = stem;
  consume_prefix(name, "lib");
  return c_name(name);
}

fs::path header_path(const fs::path& library) {
  return library.parent_path() / (library_name(library) + ".h");
}

Status build_library(const LibrarySources& sources, const fs::path& path,
                     const LibraryBuild& build) {
  const TempDir folder = HONE_TRY(TempDir::create(build.scratch));
  const auto inside = [&](std::string_view name) { return (folder.path() / name).string(); };
  HONE_TRY(write_file_atomic(inside(sources.name + ".h"), sources.header));
  HONE_TRY(write_file_atomic(inside("model.c"), sources.source));
  HONE_TRY(write_weights(sources, inside("weights.bin")));
  HONE_TRY(write_file_atomic(inside("weights.s"), sources.weights_source(inside("weights.bin"))));
  std::string objects;  // as a file of arguments: they may be many
  for (size_t i = 0; i < sources.objects.size(); ++i) {
    const std::string object = inside(fmt::format("kernel{}.o", i));
    HONE_TRY(write_file_atomic(object, sources.objects[i]));
    objects += hone::quoted(object) + "\n";
  }

  std::vector<std::string> compile;
  for (std::string_view word : split_words(build.compiler)) compile.emplace_back(word);
  if (compile.empty()) return usage_error("the C compiler has no name");
  constexpr std::string_view kHint = "apt-get install gcc, or name one: CC=clang";
  const auto tool = [&](std::vector<std::string> words) {
    return run_tool(words, kHint, build.cancel);
  };
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> words = compile;
    words.insert(words.end(), {"-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden"});
    words.insert(words.end(), more);
    return words;
  };
  HONE_TRY(tool(with({"-c", inside("model.c"), "-o", inside("model.o")})));
  HONE_TRY(tool(with({"-c", inside("weights.s"), "-o", inside("weights.o")})));
  objects += hone::quoted(inside("model.o")) + "\n" + hone::quoted(inside("weights.o")) + "\n";
  HONE_TRY(write_file_atomic(inside("objects"), objects));
  const std::string list = "@" + inside("objects");
  const std::string made = inside("library");
  if (path.extension() == ".a")
    HONE_TRY(tool({"ar", "rcsD", made, list}));
  else
    HONE_TRY(tool(
        with({"-shared", "-o", made, list, fmt::format("-Wl,-soname,{}", path.filename().string()),
              "-Wl,-z,noexecstack"})));
  // The header first: whoever sees the library finds it.
  const MappedFile library = HONE_TRY(MappedFile::open(made));
  HONE_TRY(write_file_atomic(header_path(path), sources.header));
  return write_file_atomic(path, library.text());
}

}  // namespace hone
