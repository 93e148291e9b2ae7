#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mlir/Parser/Parser.h>

#include "base/thread_pool.h"
#include "codegen/machine_code.h"
#include "codegen/module.h"

// LLVM ends the process where it does not know how to go on. Inside of hone, that is a fault of
// ours.

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

// A module of a function with this line in it.
Result<std::string> code_with(std::string_view line) {
  code::tell_llvm_how_to_fail();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  code::load_dialects(context);
  const std::string text = fmt::format("llvm.func @f() {{\n{}\nllvm.return\n}}", line);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  HONE_CHECK(module, "the text is wrong");
  return code::machine_code(*module, host_target().value(), CodeForm::object, CodeEffort::full);
}

// hone has no use for an assembler, so LLVM gives up.
constexpr std::string_view kAssembly = R"(llvm.inline_asm has_side_effects "nop", "" : () -> ())";

TEST(LlvmFaults, FatalErrorsAreThrown) {
  try {
    (void)code_with(kAssembly);
    FAIL() << "it compiles";
  } catch (const InternalError& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("LLVM gives up: Inline asm not supported"));
  }
}

TEST(LlvmFaults, TheyComeOutOfWorkersAndLeaveOthersAlone) {
  ThreadPool pool(2);
  const auto compile = [&](int64_t from, int64_t) {
    if (from == 0) (void)code_with(kAssembly);
    EXPECT_TRUE(code_with("").ok());
  };
  EXPECT_THROW(pool.parallel_for(0, 2, 1, compile), InternalError);
  EXPECT_TRUE(code_with("").ok());
}

TEST(LlvmFaults, ErrorsThatItGoesOnFromAreReturned) {
  testing::internal::CaptureStderr();
  const Result<std::string> code =
      code_with(R"(%0 = llvm.inline_asm "", "={nothing}" : () -> i64)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().code(), ErrorCode::internal);
  EXPECT_THAT(code.error().what(), HasSubstr("LLVM refuses the kernel: "));
}

}  // namespace
}  // namespace hone::HONE_FILE
