#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "codegen/gpu/gpu_code.h"

namespace hone {

// NVIDIA's assembler, if HONE_PTXAS names it, or if python3 finds the package of PyPI that has one,
// nvidia-cuda-nvcc-cu12.
inline const char* assembler() {
  static const std::string found = [] {
    const char* named = std::getenv("HONE_PTXAS");
    if (named != nullptr) return std::string(named);
    constexpr const char* kLook =
        "import os, sys\n"
        "paths = [os.path.join(p, 'nvidia/cuda_nvcc/bin/ptxas') for p in sys.path]\n"
        "print(next(filter(os.path.exists, paths), ''), end='')";
    const Result<ProcessResult> looked = run_process("python3", {"-c", kLook});
    return looked.ok() && looked->exit_code == 0 ? looked->out : std::string();
  }();
  return found.empty() ? nullptr : found.c_str();
}
inline constexpr const char* kNoAssembler =
    "there is no ptxas: HONE_PTXAS names none, and python3 has no package nvidia-cuda-nvcc-cu12";

// How often the text has the word.
inline size_t count(const std::string& text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// The name of the chip for which NVIDIA's tools take the code.
inline std::string chip_of(int64_t capability, bool is_exact) {
  return fmt::format("sm_{}{}", capability, is_exact ? "a" : "");
}

// Says what the assembler has against the text for a GPU; "" if nothing. Whoever loads an open one
// has the functions that it lacks.
inline std::string assembler_says(const std::string& ptx, int64_t capability, bool is_exact = false,
                                  bool is_open = false) {
  const std::string chip = chip_of(capability, is_exact);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("hone_{}_{}.ptx", ::getpid(), chip);
  const std::string cubin = path.native() + ".cubin";
  if (!write_file_atomic(path, ptx).ok()) return "error: its file cannot be written";
  std::vector<std::string> arguments = {"-arch=" + chip, path.native(), "-o", cubin};
  if (is_open) arguments.emplace_back("-c");
  const Result<ProcessResult> done = run_process(assembler(), arguments);
  std::filesystem::remove(path);
  std::filesystem::remove(cubin);
  if (!done.ok()) return done.error().to_string();
  return done->exit_code == 0 ? "" : "error: " + done->out + done->err;
}

// Says why an instruction is wrong; "" if it is not. Arithmetic on reals says how it rounds, it
// is never approximate, and addresses of global memory have 64 bits.
inline std::string fault_of(const std::string& line) {
  static const std::regex rounds(R"(\s(add|sub|mul|fma|div|sqrt|rcp)(\.\w+)*\.f(32|64)\s)");
  static const std::regex global(R"(\s(ld|st)\.global\S*\s)");
  static const std::regex wide(R"(\[%rd\d+(\+-?\d+)?\])");
  if (line.find(".approx") != std::string::npos || line.find(".ftz") != std::string::npos)
    return "it is approximate";
  const auto has = [&](std::string_view word) { return line.find(word) != std::string::npos; };
  if ((has(".f32") || has(".f64")) && std::regex_search(line, rounds) &&
      line.find(".rn") == std::string::npos)
    return "it does not round to nearest";
  if (line.find("\tcall") != std::string::npos) return "it calls something";
  if (has(".global") && std::regex_search(line, global) && !std::regex_search(line, wide))
    return "its address is narrow";
  return "";
}

// Facts that hold for every kernel.
inline void expect_facts(const GpuKernel& kernel, const TileProgram& program, int64_t capability) {
  EXPECT_EQ(kernel.capability, capability);
  EXPECT_NE(kernel.ptx.find(fmt::format(".target {}\n", chip_of(capability, kernel.is_exact))),
            std::string::npos);
  EXPECT_EQ(kernel.ptx.find("__nv_"), std::string::npos);
  EXPECT_EQ(kernel.ptx.find(".extern .func"), std::string::npos);
  ASSERT_EQ(kernel.phases.size(), program.phases.size());
  for (const GpuPhase& phase : kernel.phases) {
    EXPECT_NE(kernel.ptx.find(fmt::format(".entry {}(", phase.symbol)), std::string::npos);
    EXPECT_GE(phase.block_threads, 32);
    EXPECT_LE(phase.block_threads, 1024);
    EXPECT_EQ(phase.scratch_bytes % 64, 0);
  }
  size_t begin = 0;
  while (begin < kernel.ptx.size()) {
    const size_t end = kernel.ptx.find('\n', begin);
    const std::string line = kernel.ptx.substr(begin, end - begin);
    const std::string fault = fault_of(line);
    EXPECT_EQ(fault, "") << line;
    begin = end == std::string::npos ? kernel.ptx.size() : end + 1;
  }
  if (testing::Test::HasFailure()) return;
  if (assembler() != nullptr)
    EXPECT_EQ(assembler_says(kernel.ptx, capability, kernel.is_exact), "");
}

inline void expect_compiles(const TileProgram& program, int64_t capability) {
  const Result<GpuKernel> kernel = compile_for_gpu(program, capability, "k");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string() << "\n" << print(program);
  expect_facts(*kernel, program, capability);
  if (testing::Test::HasFailure()) ADD_FAILURE() << print(program);
}

}  // namespace hone
