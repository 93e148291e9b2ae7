#include "lab/data/layout_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "lab/data/layout_text.h"
#include "target/fingerprint.h"
#include "tests/lab/layout_testing.h"
#include "tests/learn/data_set_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LayoutSetTest : public DataSetTest {
 protected:
  LayoutFile layouts() const {
    LayoutFile file = small_layouts();
    file.target = fingerprint(target_);
    return file;
  }
  void write(const DataSet& set, const LayoutFile& file, bool is_random) const {
    ASSERT_TRUE(make_folders(set.folder() + "/layout").ok());
    ASSERT_TRUE(
        write_npz(layout_path(set.folder(), file.program, is_random), arrays_of(file)).ok());
  }
};

TEST_F(LayoutSetTest, CountsWhatFilesHave) {
  const DataSet set = make();
  EXPECT_THAT(count_layouts(set).value(), IsEmpty());
  write(set, layouts(), true);
  const std::vector<LayoutCounts> counts = count_layouts(set).value();
  ASSERT_THAT(counts, SizeIs(1));
  EXPECT_EQ(counts[0].program, "zoo:mlp,size=tiny");
  EXPECT_EQ(counts[0].sort, "random");
  EXPECT_EQ(counts[0].nodes, 2U);
  EXPECT_EQ(counts[0].configurable, 1U);
  EXPECT_EQ(counts[0].assignments, 2U);
  EXPECT_EQ(counts[0].whole, 1U);
  EXPECT_EQ(counts[0].known, 0.75);
  EXPECT_NEAR(*counts[0].error, 1.0 / 101, 1e-9);
  EXPECT_TRUE(counts[0].is_done);
  EXPECT_THAT(layout_counts_text(counts), HasSubstr("2 assignments of layouts, 1 runs of whole "
                                                    "programs; composed times are off by 1.0 %"));
  EXPECT_EQ(layout_counts_text({}), "");
  EXPECT_THAT(data_set_json(load_kernel_data(set).value(), counts),
              HasSubstr("\"priced_by\": \"analytic\""));
  LayoutFile elsewhere = layouts();
  elsewhere.target = 1;
  write(set, elsewhere, true);
  EXPECT_THAT(count_layouts(set).error().to_string(), HasSubstr("never mixed"));
}

TEST_F(LayoutSetTest, MergesTakeTheFileThatKnowsMore) {
  DataSet into = make("into");
  const DataSet from = make("from");
  write(from, layouts(), true);
  write(from, layouts(), false);
  EXPECT_EQ(merge_layouts(into, from).value(), 2);
  EXPECT_EQ(merge_layouts(into, from).value(), 0);
  EXPECT_EQ(read_layout_file(layout_path(into.folder(), "zoo:mlp,size=tiny", true))->times,
            layouts().times);
  LayoutFile more = layouts();
  more.times.whole[1] = 200;
  write(from, more, true);
  more.times.whole = {0, 0};
  write(from, more, false);
  EXPECT_EQ(merge_layouts(into, from).value(), 1);
  EXPECT_EQ(count_layouts(into).value()[1].whole, 2U);
  more.times.whole = {101, 0};
  more.times.known = {1, 1};
  write(from, more, false);
  EXPECT_EQ(merge_layouts(into, from).value(), 1);
  EXPECT_EQ(count_layouts(into).value()[0].known, 1);
}

TEST_F(LayoutSetTest, SplitsCountGraphs) {
  const DataSet set = make();
  write(set, layouts(), true);
  write(set, layouts(), false);
  ProgramSplit split;
  split.of(Part::train) = {"zoo:mlp,size=tiny"};
  const std::string text = split_text(count_layouts(set).value(), split);
  EXPECT_THAT(text, HasSubstr("\ntrain              1       2            4\n"));
  EXPECT_THAT(text, HasSubstr("\ntest               0       0            0\n"));
}

}  // namespace
}  // namespace hone::HONE_FILE
