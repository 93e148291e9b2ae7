#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "ir/text.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "learn/kernel_data.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "tests/program/random_kernels.h"

// Data sets of made-up times.

namespace hone {

class DataSetTest : public testing::Test {
 protected:
  std::string path(std::string_view name = "set") const { return (folder_.path() / name).native(); }
  DataSetInfo info() const {
    return {.target = target_,
            .threads = 1,
            .conditions = "protocol=1 threads=1 cold=none",
            .version = "test",
            .seed = 3,
            .schedules = 8};
  }
  DataSet make(std::string_view name = "set") const {
    return DataSet::make(path(name), info()).value();
  }

  struct Kernel {
    std::shared_ptr<const KernelFacts> facts;
    std::vector<Schedule> schedules;  // different ones, the planned one first
  };
  Kernel kernel(int64_t width, size_t schedules = 8) const {
    const std::string text =
        fmt::format("graph @g(%x: f32[30, {}]) {{ %y = softmax %x return %y }}", width);
    const auto facts = std::make_shared<const KernelFacts>(
        body_of_all(prepare(parse_graph(text).value()).value()));
    const ScheduleSpace space(facts->body, *facts, target_);
    return {facts, space.enumerate(schedules)};
  }

  Record record(const Kernel& kernel, size_t schedule, std::vector<double> seconds) const {
    return {.kind = "kernel",
            .subject = kernel.facts->hash,
            .choice = print(kernel.schedules[schedule]),
            .code = 1000 * kernel.facts->hash + schedule,
            .target = fingerprint(target_),
            .conditions = info().conditions,
            .seconds = std::move(seconds),
            .version = "test"};
  }
  // Records of all its schedules: the first takes 1 us, the next 2 us and so on.
  void fill(DataSet& set, const Kernel& kernel, std::vector<std::string> programs) const {
    std::vector<Record> records;
    for (size_t i = 0; i < kernel.schedules.size(); ++i) {
      const double s = 1e-6 * static_cast<double>(i + 1);
      records.push_back(record(kernel, i, {s, s, s}));
    }
    const KnownText text = {"kernel", kernel.facts->hash, print(kernel.facts->body)};
    ASSERT_TRUE(set.log().add(records, {&text, 1}).ok());
    std::vector<ProgramKernel> kernels;
    for (const std::string& program : programs)
      kernels.push_back({kernel.facts->hash, program, print(kernel.schedules[0]), 1e-6});
    ASSERT_TRUE(set.add(kernels).ok());
  }
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  Target target_ = host_target().value();
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
};

}  // namespace hone
