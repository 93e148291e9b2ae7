#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "compile/native_model.h"
#include "oracle/conformance.h"
#include "target/target.h"

// Functions that contain their answers: those of several devices, and those with probes.

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;

// How a run by the reference and one by compiled code end: "pass, pass".
std::string ends_of(std::string_view text, const std::string& program) {
  const Result<TempDir> folder = TempDir::create(fs::temp_directory_path());
  const fs::path file = folder->path() / "p.mlir";
  EXPECT_TRUE(write_file_atomic(file, text).ok());
  std::string ends;
  for (const bool native : {false, true}) {
    CaseOptions options = {.program = program};
    if (native)
      options.compile = [](const Model& model) -> Result<std::shared_ptr<const Runnable>> {
        return std::shared_ptr<const Runnable>(
            HONE_TRY(NativeModel::make(model, HONE_TRY(host_target()), {})));
      };
    const CaseOutcome outcome = run_checked_program(file, options);
    ends += (native ? ", " : "") + std::string(name(outcome.result));
    if (!outcome.reason.empty()) ends += " (" + outcome.reason + ")";
  }
  return ends;
}

// Three replicas send their numbers around; the answer of the first one may be wrong.
std::string ring(std::string_view answer) {
  return fmt::format(
      "func.func @f(%x: tensor<2xi32>) -> (tensor<2xi32>, tensor<ui32>) {{\n"
      "  %0 = \"stablehlo.collective_permute\"(%x) {{source_target_pairs = "
      "dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64>}} : (tensor<2xi32>) -> tensor<2xi32>\n"
      "  %1 = stablehlo.replica_id : tensor<ui32>\n"
      "  return %0, %1 : tensor<2xi32>, tensor<ui32>\n}}\n"
      "func.func @main() {{\n"
      "  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
      "  %b = stablehlo.constant dense<[3, 4]> : tensor<2xi32>\n"
      "  %c = stablehlo.add %a, %b : tensor<2xi32>\n"
      "  %r:6 = \"interpreter.run_parallel\"(%a, %b, %c) {{programs = [[@f], [@f], [@f]]}} : "
      "(tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<ui32>, "
      "tensor<2xi32>, tensor<ui32>, tensor<2xi32>, tensor<ui32>)\n"
      "  check.expect_eq_const %r#0, dense<{}> : tensor<2xi32>\n"
      "  check.expect_eq_const %r#2, dense<[1, 2]> : tensor<2xi32>\n"
      "  check.expect_eq_const %r#4, dense<[3, 4]> : tensor<2xi32>\n"
      "  check.expect_eq_const %r#5, dense<2> : tensor<ui32>\n"
      "  func.return\n}}\n",
      answer);
}

TEST(CheckedProgram, RunsProgramsOnSeveralDevices) {
  EXPECT_EQ(ends_of(ring("[4, 6]"), "main"), "pass, pass");
  EXPECT_EQ(ends_of(ring("[4, 7]"), "main"),
            "wrong (1 of 2 elements differ; element 1 is 6, expected 7), "
            "wrong (1 of 2 elements differ; element 1 is 6, expected 7)");
}

std::string probed(std::string_view checks) {
  return fmt::format(
      "func.func @main() {{\n"
      "  %zero = stablehlo.constant dense<0> : tensor<i64>\n"
      "  %one = stablehlo.constant dense<1> : tensor<i64>\n"
      "  %two = stablehlo.constant dense<2> : tensor<i64>\n"
      "  %three = interpreter.probe %two, probe_id = \"outside\" : tensor<i64>\n"
      "  %r:2 = stablehlo.while(%i = %zero, %s = %one) : tensor<i64>, tensor<i64>\n"
      "  cond {{\n"
      "    %p = stablehlo.compare LT, %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>\n"
      "    stablehlo.return %p : tensor<i1>\n"
      "  }} do {{\n"
      "    %t = stablehlo.add %s, %two : tensor<i64>\n"
      "    %seen = interpreter.probe %t, probe_id = \"sum\" : tensor<i64>\n"
      "    %j = stablehlo.add %i, %one : tensor<i64>\n"
      "    stablehlo.return %j, %seen : tensor<i64>, tensor<i64>\n"
      "  }}\n{}  func.return\n}}\n",
      checks);
}

TEST(CheckedProgram, RemembersWhatProbesSawInEachTrip) {
  EXPECT_EQ(ends_of(probed("  %c3 = stablehlo.constant dense<3> : tensor<i64>\n"
                           "  %c5 = stablehlo.constant dense<5> : tensor<i64>\n"
                           "  check.expect_serialized_eq %c3, probe_id = \"sum\", iter = 0 : "
                           "tensor<i64>\n"
                           "  check.expect_serialized_eq %c5, probe_id = \"sum\", iter = 1 : "
                           "tensor<i64>\n"
                           "  check.expect_serialized_eq %two, probe_id = \"outside\" : "
                           "tensor<i64>\n"),
                    "main"),
            "pass, pass");
  EXPECT_THAT(ends_of(probed("  check.expect_serialized_eq %one, probe_id = \"sum\", iter = 1 : "
                             "tensor<i64>\n"),
                      "main"),
              testing::StartsWith("wrong (1 of 1 elements differ; element 0 is 1, expected 5)"));
  EXPECT_THAT(ends_of(probed("  check.expect_serialized_eq %one, probe_id = \"none\" : "
                             "tensor<i64>\n"),
                      "main"),
              testing::HasSubstr("trip 0 of 'none' was not probed"));
}

}  // namespace
}  // namespace hone::HONE_FILE
