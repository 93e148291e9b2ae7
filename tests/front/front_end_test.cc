#include "front/front_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::HasSubstr;

std::string_view name_of(std::string_view beginning) {
  const FrontEnd* const found = recognized_front_end(beginning);
  return found == nullptr ? "" : found->name;
}

TEST(FrontEnds, RecognizeWhatTheyWriteByWhatIsInIt) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const Model model = model_of(build_zoo_model("mlp", {.size = ZooSize::tiny}).value());
  for (const FrontEnd& each : front_ends()) {
    SCOPED_TRACE(each.name);
    const std::filesystem::path file = folder.path() / fmt::format("model{}", each.extension);
    if (each.extension == ".gguf") {  // a format that hone only reads
      EXPECT_THAT(each.save(file, model, {}), refuses(ErrorCode::unsupported, "model.gguf"));
      EXPECT_EQ(name_of("GGUF\3"), each.name);
      continue;
    }
    ASSERT_TRUE(each.save(file, model, {}).ok());
    EXPECT_EQ(front_end_named(file)->name, each.name);
    EXPECT_EQ(name_of(file_beginning(file)), each.name);
    const Model again = each.load(file, {}).value();
    EXPECT_EQ(again.inputs.size(), model.inputs.size());
  }
  EXPECT_EQ(front_end_named("model.bin"), nullptr);
  EXPECT_THAT(front_end_list(), HasSubstr("(.gguf)"));
  EXPECT_THAT(front_end_list(), HasSubstr("(.onnx)"));
  EXPECT_THAT(front_end_list(), HasSubstr("(.hone)"));
}

TEST(FrontEnds, TellTextsFromBytes) {
  EXPECT_EQ(name_of("graph @g() -> () {}"), "a graph file");
  EXPECT_EQ(name_of("# one\r\n  # two\n\nmodel @m"), "a graph file");
  EXPECT_EQ(name_of("weights \"w.npz\"\n"), "a graph file");
  EXPECT_EQ(name_of("\x08\x09\x12\x04hone"), "an ONNX file");
  EXPECT_EQ(name_of(std::string_view("\x3a\x02\x0a\x00", 4)), "an ONNX file") << "graph first";
  EXPECT_EQ(name_of("// RUN\n\nmodule @m attributes {} {"), "a text of StableHLO");
  EXPECT_EQ(name_of("#loc = loc(unknown)\nfunc.func @main("), "a text of StableHLO");
  EXPECT_EQ(name_of("HloModule f, num_partitions=8"), "a text of HLO");
  EXPECT_EQ(name_of("ML\xEFR"), "a text of StableHLO") << "its bytecode, to be refused";
  for (const char* other : {"", "modules", "# nothing", "version https://git-lfs",
                            "BERT is a model", "{}", "PK\x03\x04", "\x93NUMPY\x01",
                            "\x7f"
                            "ELF"})
    EXPECT_EQ(name_of(other), "") << other;
}

TEST(FrontEnds, SeeTheBeginningOfARegularFile) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  EXPECT_EQ(file_beginning(folder.path()), "");
  EXPECT_EQ(file_beginning(folder.path() / "nowhere"), "");
  const std::filesystem::path file = folder.path() / "long";
  ASSERT_TRUE(write_file_atomic(file, std::string(10'000, 'x')).ok());
  EXPECT_EQ(file_beginning(file), std::string(4096, 'x'));
}

}  // namespace
}  // namespace hone::HONE_FILE
