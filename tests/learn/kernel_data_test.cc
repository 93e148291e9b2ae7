#include "learn/kernel_data.h"

#include <gmock/gmock.h>

#include "tests/base/says_testing.h"
#include "tests/learn/data_set_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class KernelDataTest : public DataSetTest {
 protected:
  std::string failure(const std::string& folder) const {
    const Result<KernelData> data = load_kernel_data(folder);
    return data.ok() ? "" : data.error().to_string();
  }
};

TEST_F(KernelDataTest, HasThePlannedScheduleFirstAndTheProgramsSorted) {
  const Kernel softmax = kernel(64);
  {
    DataSet set = make();
    std::vector<Record> records;
    for (size_t i : {3, 2, 1, 0})
      records.push_back(record(softmax, i, {1e-6 * static_cast<double>(i + 1)}));
    const KnownText text = {"kernel", softmax.facts->hash, print(softmax.facts->body)};
    ASSERT_TRUE(set.log().add(records, {&text, 1}).ok());
    const std::string planned = print(softmax.schedules[0]);
    ASSERT_TRUE(set.add(std::vector<ProgramKernel>{{softmax.facts->hash, "zoo:b", planned, 2e-6},
                                                   {softmax.facts->hash, "zoo:a", planned, 2e-6}})
                    .ok());
  }
  const KernelData data = load_kernel_data(path()).value();
  EXPECT_EQ(fingerprint(data.target), fingerprint(target_));
  EXPECT_EQ(data.threads, 1);
  EXPECT_EQ(data.conditions, info().conditions);
  ASSERT_THAT(data.kernels, SizeIs(1));
  const KernelSample& sample = data.kernels[0];
  EXPECT_EQ(sample.timed.facts->hash, softmax.facts->hash);
  EXPECT_EQ(sample.timed.schedules[0], softmax.schedules[0]);
  EXPECT_THAT(sample.timed.seconds, ElementsAre(1e-6, 4e-6, 3e-6, 2e-6));
  EXPECT_THAT(sample.programs, ElementsAre("zoo:a", "zoo:b"));
  EXPECT_THAT(programs_of(data), ElementsAre("zoo:a", "zoo:b"));
  EXPECT_EQ(sample.kind, "rows");
}

TEST_F(KernelDataTest, MergesRecordsOfEqualCode) {
  const Kernel softmax = kernel(64);
  {
    DataSet set = make();
    fill(set, softmax, {"zoo:a"});
    Record again = record(softmax, 1, {2.4e-6, 2.4e-6, 2.4e-6});
    Record spelled = record(softmax, 2, {2.1e-6, 2.1e-6, 2.1e-6});
    spelled.code = again.code;  // another spelling of the same loops
    ASSERT_TRUE(set.log().add(std::vector<Record>{again, spelled}).ok());
  }
  const KernelData data = load_kernel_data(path()).value();
  EXPECT_EQ(data.duplicates, 2);
  const KernelSample& sample = data.kernels.at(0);
  EXPECT_THAT(sample.timed.schedules, SizeIs(softmax.schedules.size()));
  EXPECT_THAT(sample.runs[1], ElementsAre(2e-6, 2.4e-6, 2.1e-6));
  EXPECT_NEAR(sample.timed.seconds[1], std::cbrt(2e-6 * 2.4e-6 * 2.1e-6), 1e-12);
}

// Among runs of the same code, those count that are near the fastest, whichever came first.
TEST_F(KernelDataTest, LeavesOutRunsOfASlowMachine) {
  const Kernel softmax = kernel(64);
  {
    DataSet set = make();
    fill(set, softmax, {"zoo:a"});
    const Record later = record(softmax, 1, {1.5e-6, 1.5e-6, 1.5e-6});
    const Record slower = record(softmax, 2, {3.9e-6, 3.9e-6, 3.9e-6});
    ASSERT_TRUE(set.log().add(std::vector<Record>{later, slower}).ok());
  }
  const KernelData data = load_kernel_data(path()).value();
  EXPECT_EQ(data.slow, 2);
  const KernelSample& sample = data.kernels.at(0);
  EXPECT_EQ(sample.timed.seconds[1], 1.5e-6);
  EXPECT_EQ(sample.timed.seconds[2], 3e-6);
  EXPECT_THAT(sample.runs[1], ElementsAre(1.5e-6));
}

TEST_F(KernelDataTest, LeavesOutWhatTellsNothing) {
  const Kernel softmax = kernel(64), few = kernel(32, 2), unplanned = kernel(48);
  {
    DataSet set = make();
    fill(set, softmax, {"zoo:a"});
    fill(set, few, {"zoo:a"});
    fill(set, unplanned, {});
    ASSERT_TRUE(
        set.add(std::vector<ProgramKernel>{
                    {unplanned.facts->hash, "zoo:a", "{algorithm = nest, order = [7]}", 1e-6},
                    {12345, "zoo:a", "{algorithm = nest, order = [0]}", 1e-6}})
            .ok());
    Record noisy = record(softmax, 0, {1e-6, 5e-6, 9e-6});
    Record failed = record(softmax, 1, {});
    failed.outcome = Outcome::crashed;
    Record unfit = record(softmax, 2, {1e-6, 1e-6, 1e-6});
    unfit.choice = "{algorithm = unheard, order = [0]}";
    unfit.code = 7;
    ASSERT_TRUE(set.log().add(std::vector<Record>{noisy, failed, unfit}).ok());
  }
  const KernelData data = load_kernel_data(path()).value();
  EXPECT_THAT(data.kernels, SizeIs(1));
  EXPECT_EQ(data.kernels[0].timed.seconds[0], 1e-6);
  EXPECT_EQ(data.noisy, 1);
  EXPECT_EQ(data.failed, 1);
  EXPECT_EQ(data.unfit, 1);
  EXPECT_EQ(data.left_out, 2);
}

TEST_F(KernelDataTest, CountsKernelsWhoseTimesAreAllNoisy) {
  const Kernel softmax = kernel(64);
  {
    DataSet set = make();
    ASSERT_TRUE(set.add(std::vector<ProgramKernel>{
                            {softmax.facts->hash, "zoo:a", print(softmax.schedules[0]), 1e-6}})
                    .ok());
    ASSERT_TRUE(set.log().add(std::vector<Record>{record(softmax, 0, {1e-6, 5e-6, 9e-6})}).ok());
  }
  const KernelData data = load_kernel_data(path()).value();
  EXPECT_THAT(data.kernels, SizeIs(0));
  EXPECT_EQ(data.noisy, 1);
  EXPECT_EQ(data.left_out, 1);
}

TEST_F(KernelDataTest, NoiseIsHowFarPlacesDiffer) {
  const Kernel softmax = kernel(64);
  {
    DataSet set = make();
    fill(set, softmax, {"zoo:a"});
    ASSERT_TRUE(
        set.log().add(std::vector<Record>{record(softmax, 0, {1.1e-6, 1e-6, 0.9e-6})}).ok());
  }
  const KernelSample sample = load_kernel_data(path()).value().kernels.at(0);
  EXPECT_NEAR(sample.noise[0], 0.396 * 0.2 / 2, 1e-9);  // of two races, the other without noise
  EXPECT_EQ(sample.noise[1], 0);
}

TEST_F(KernelDataTest, RefusesWhatIsNoDataSetOrADamagedOne) {
  EXPECT_THAT(failure(path("none")), says("data set ... dataset.json"));
  {
    DataSet set = make();
    fill(set, kernel(64), {"zoo:a"});
  }
  const std::string good = read_file(path("set/dataset.json"), 1 << 20).value();
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write("set/dataset.json", text);
    return failure(path());
  };
  EXPECT_THAT(edited("\"format\": 1", "\"format\": 2"), HasSubstr("its format is 2"));
  EXPECT_THAT(edited("\"threads\": 1", "\"threads\": 0"), HasSubstr("0 threads are outside of"));
  EXPECT_THAT(edited("\"fingerprint\": \"0x", "\"fingerprint\": \"0x0"),
              HasSubstr("0x and 16 digits"));
  EXPECT_THAT(edited("\"conditions\"", "\"condition\""),
              HasSubstr("the field 'conditions' is missing"));
  EXPECT_THAT(edited("{", "["), says("JSON"));
  write("set/dataset.json", good);
  write("set/programs.jsonl", "{\"kernel\":\"0x12\"}\n");
  EXPECT_THAT(failure(path()), HasSubstr("programs.jsonl:1"));
  EXPECT_THAT(failure(path()), HasSubstr("'kernel' is not 0x and 16 digits"));
}

TEST_F(KernelDataTest, RefusesATextThatIsNotTheKernel) {
  const Kernel softmax = kernel(64), other = kernel(32);
  {
    DataSet set = make();
    const KnownText text = {"kernel", softmax.facts->hash, print(other.facts->body)};
    ASSERT_TRUE(set.log().add({}, {&text, 1}).ok());
    fill(set, softmax, {"zoo:a"});
  }
  EXPECT_THAT(failure(path()), says("text ... kernel"));
}

// ---- Sets
// ----------------------------------------------------------------------------------------

TEST_F(KernelDataTest, ASetIsOfOneTargetAndOneProtocol) {
  make();
  const auto refused = [&](const DataSetInfo& info) {
    const Result<DataSet> set = DataSet::make(path(), info);
    return set.ok() ? "" : set.error().to_string();
  };
  DataSetInfo other = info();
  other.target.cpu = "another processor";
  EXPECT_THAT(refused(other), says("different processors"));
  other = info();
  other.conditions = "protocol=2 threads=1 cold=none";
  EXPECT_THAT(refused(other), HasSubstr("one was measured as 'protocol=1 threads=1 cold=none'"));
  if (target_.cores > 1) {
    other = info();
    other.threads = 2;
    EXPECT_THAT(refused(other), says("1 threads ... 2"));
  }
  other = info();
  other.seed = 4;
  EXPECT_EQ(refused(other), "");
  EXPECT_EQ(DataSet::open(path())->info().seed, 4);
}

// The rates of the machine, as 'hone target probe' measures them.
TEST_F(KernelDataTest, KeepsAProbeOfItsTarget) {
  Target probe = target_;
  probe.measured = true;
  probe.peak(DType::f32) *= 1.5;
  {
    DataSet set = make();
    EXPECT_FALSE(set.info().probe);
    Target other = probe;
    other.cpu = "another";
    EXPECT_THAT(set.know_probe(other).error().to_string(), says("probe is not one of its target"));
    EXPECT_THAT(set.know_probe(target_).error().to_string(),
                says("probe is not one of its target"));
    ASSERT_TRUE(set.know_probe(probe).ok());
    fill(set, kernel(64), {"zoo:a"});
  }
  EXPECT_TRUE(make().info().probe);  // it stays when the set goes on
  const KernelData data = load_kernel_data(path()).value();
  ASSERT_TRUE(data.probe);
  EXPECT_EQ(data.probe->peak(DType::f32), probe.peak(DType::f32));
  EXPECT_FALSE(data.target.measured);
}

TEST_F(KernelDataTest, MergeAddsWhatIsNotThere) {
  DataSet a = make("a");
  fill(a, kernel(64), {"zoo:a"});
  {
    DataSet b = make("b");
    fill(b, kernel(64), {"zoo:b"});
    fill(b, kernel(32), {"zoo:b"});
  }
  const DataSet b = DataSet::open(path("b")).value();
  EXPECT_EQ(merge(a, b)->kernels, 2);
  EXPECT_EQ(merge(a, b)->kernels, 0);
  const KernelData data = load_kernel_data(a).value();
  EXPECT_THAT(data.kernels, SizeIs(2));
  EXPECT_THAT(programs_of(data), ElementsAre("zoo:a", "zoo:b"));

  DataSetInfo other = info();
  other.target.cpu = "another processor";
  const DataSet c = DataSet::make(path("c"), other).value();
  EXPECT_THAT(merge(a, c).error().to_string(), HasSubstr("never mixed"));
}

TEST_F(KernelDataTest, ProgramsHaveNamesOfOneLine) {
  DataSet set = make();
  for (const char* name : {"", " a", "a\nb", "a#b", "\xff"})
    EXPECT_FALSE(set.add(std::vector<ProgramKernel>{{1, name, "{}", 0}}).ok()) << name;
  EXPECT_THAT(set.kernels(), IsEmpty());
}

TEST_F(KernelDataTest, RefusesRecordsOfAnotherTargetOrProtocol) {
  const Kernel softmax = kernel(64);
  Record other_way = record(softmax, 0, {5e-7}), other_target = other_way;
  other_way.conditions = "protocol=9 threads=1 cold=none";
  other_target.target = 1;
  const auto failure = [&](const std::string& name, const Record& record) {
    DataSet set = make(name);
    fill(set, softmax, {"zoo:a"});
    EXPECT_TRUE(set.log().add({&record, 1}).ok());
    return load_kernel_data(set).error().to_string();
  };
  EXPECT_THAT(failure("a", other_way), AllOf(HasSubstr("log.db, record 9"), HasSubstr("protocol=9"),
                                             HasSubstr("protocol=1")));
  EXPECT_THAT(failure("b", other_target),
              AllOf(HasSubstr("log.db, record 9"), HasSubstr("never mixed")));
}

TEST_F(KernelDataTest, RefusesRecordsWithoutProgramsAndPricesBelowZero) {
  {
    DataSet set = make();
    fill(set, kernel(64), {"zoo:a"});
  }
  const std::string programs = read_file(path("set/programs.jsonl"), 1 << 20).value();
  std::filesystem::remove(path("set/programs.jsonl"));
  EXPECT_THAT(load_kernel_data(path()).error().to_string(),
              AllOf(HasSubstr("programs.jsonl"), HasSubstr("the log has 8 records")));
  std::string text = programs;
  text.replace(text.find("\"price\":"), 8, "\"price\":-");
  write("set/programs.jsonl", text);
  EXPECT_THAT(load_kernel_data(path()).error().to_string(),
              AllOf(HasSubstr("programs.jsonl:1"), HasSubstr("its price is -1e-06 s")));
}

// ---- Splits ------------------------------------------------------------------------------------

TEST(ProgramSplit, IsText) {
  const std::string text =
      "train zoo:a\ntrain zoo:b,size=tiny\nvalidation my model.onnx\ntest zoo:c\n";
  const ProgramSplit split = parse_split(text, "f").value();
  EXPECT_THAT(split.of(Part::train), ElementsAre("zoo:a", "zoo:b,size=tiny"));
  EXPECT_THAT(split.of(Part::validation), ElementsAre("my model.onnx"));
  EXPECT_EQ(print(split), text);
  EXPECT_EQ(parse_split("# nets\n\n  test   zoo:c # new\ntrain zoo:b,size=tiny\ntrain zoo:a\n"
                        "validation my model.onnx",
                        "f")
                .value(),
            split);
}

TEST(ProgramSplit, AProgramInTwoPartsIsAnError) {
  const auto failure = [](std::string_view text) {
    return parse_split(text, "f.split").error().to_string();
  };
  EXPECT_THAT(failure("train a\ntest b\ntest a"),
              HasSubstr("the program 'a' is in train and in test (f.split:3)"));
  EXPECT_THAT(failure("train a\ntrain a"), HasSubstr("is in train and in train (f.split:2)"));
  // Also by the name of its files.
  EXPECT_THAT(failure("train zoo:alexnet\ntest zoo_alexnet"),
              HasSubstr("the program 'zoo_alexnet' is in train as 'zoo:alexnet' and in test"));
  EXPECT_THAT(failure("trian a"), says("'trian' ... train, validation, test"));
  EXPECT_THAT(failure("test"), HasSubstr("'test' names no program"));
}

TEST(ProgramSplit, AtRandomKeepsFamiliesTogether) {
  const std::vector<std::string> programs = {"zoo:bert_base", "zoo:gpt2",     "zoo:gpt2_decode",
                                             "zoo:mixer",     "zoo:resnet18", "zoo:resnet50",
                                             "zoo:unet",      "random:1",     "random:2"};
  EXPECT_EQ(family_of("zoo:resnet18,size=tiny"), "resnet");
  EXPECT_EQ(family_of("random:2"), "random:2");
  EXPECT_EQ(family_of("3d.onnx"), "3d.onnx");
  EXPECT_EQ(family_of("../models/bert_base.onnx"), family_of("zoo:bert_base"));
  std::set<std::string> tested;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ProgramSplit split = random_split(programs, seed).value();
    EXPECT_EQ(split, random_split(programs, seed).value());
    EXPECT_EQ(parse_split(print(split), "f").value(), split);
    size_t count = 0;
    for (Part part : kParts) {
      EXPECT_FALSE(split.of(part).empty());
      count += split.of(part).size();
      const auto has = [&](const char* program) {
        return std::ranges::binary_search(split.of(part), program);
      };
      EXPECT_EQ(has("zoo:resnet18"), has("zoo:resnet50"));
      EXPECT_EQ(has("zoo:gpt2"), has("zoo:gpt2_decode"));
    }
    EXPECT_EQ(count, programs.size());
    tested.insert(split.of(Part::test).begin(), split.of(Part::test).end());
  }
  EXPECT_GT(tested.size(), 6u);
  EXPECT_FALSE(random_split(std::span(programs).first(1), 0).ok());
  EXPECT_THAT(random_split({}, 0).error().to_string(), HasSubstr("no programs to split"));
  EXPECT_FALSE(random_split(programs, 0, {.validation = 0.5, .test = 0.5}).ok());
  EXPECT_THAT(random_split(programs, 0, {.validation = 0}).value().of(Part::validation), IsEmpty());
}

// The splits that figures in docs/learned-prices.md are made with.
TEST(ProgramSplit, OfTheDataOfTheRepositoryAreDrawnByTheirSeeds) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const ProgramSplit split =
        read_split(fmt::format(HONE_TEST_DIR "/../data/splits/{}.split", seed)).value();
    std::vector<std::string> programs;
    for (Part part : kParts)
      programs.insert(programs.end(), split.of(part).begin(), split.of(part).end());
    std::ranges::sort(programs);
    EXPECT_THAT(programs, SizeIs(30));
    EXPECT_EQ(random_split(programs, seed).value(), split) << seed;
  }
}

// A kernel of a tested program is not trained on.
TEST_F(KernelDataTest, ASharedKernelIsInOnePart) {
  const Kernel shared = kernel(64), own = kernel(32), other = kernel(48);
  {
    DataSet set = make();
    fill(set, shared, {"zoo:a", "zoo:b"});
    fill(set, own, {"zoo:a"});
    fill(set, other, {"zoo:c"});
  }
  const KernelData data = load_kernel_data(path()).value();
  const ProgramSplit split = parse_split("train zoo:a\ntest zoo:b", "f").value();
  EXPECT_TRUE(check(split, data).ok());
  const auto hashes = [&](Part part) {
    std::vector<uint64_t> all;
    for (const KernelSample& kernel : hone::part(data, split, part))
      all.push_back(kernel.timed.facts->hash);
    return all;
  };
  EXPECT_THAT(hashes(Part::train), ElementsAre(own.facts->hash));
  EXPECT_THAT(hashes(Part::validation), IsEmpty());
  EXPECT_THAT(hashes(Part::test), ElementsAre(shared.facts->hash));
  const ProgramSplit unknown = parse_split("train zoo:a\ntest zoo:bb", "f").value();
  EXPECT_THAT(check(unknown, data).error().to_string(), says("'zoo:bb' ... test"));
}

}  // namespace
}  // namespace hone::HONE_FILE
