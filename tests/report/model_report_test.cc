#include "report/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/subprocess.h"
#include "ir/text.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr std::string_view kEvil = "</script><script>alert(1)</script><!--\"'\x01\xff\u202e";

size_t count_of(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

nlohmann::json data_of(const std::string& page) {
  constexpr std::string_view kBegin = "id=\"data\">";
  const size_t begin = page.find(kBegin) + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

ModelReport empty_report(std::string model) {
  ModelReport report;
  report.model = std::move(model);
  report.version = "0";
  report.time = "now";
  report.target = host_target().value();
  return report;
}

// All that a page can show, with names from somebody who would like it to show more; a graph of
// `steps` steps.
ModelReport evil_report(size_t steps) {
  const std::string evil(kEvil);
  ModelReport report = empty_report(evil);
  report.commands = {evil};
  report.notes = {evil};
  report.summary.emplace();
  report.summary->name = evil;
  report.summary->inputs = {{evil, Type::get(DType::f32, {4})}};
  report.stages = {{CompileStage::graph, 1}, {CompileStage::plan, 2}, {CompileStage::plan, 3}};
  report.sides = {{"hone", {{1, 2, 3}}}, {evil, {{2, 3, 4}}, 1.5, Interval{1.25, 1.75}}};
  report.failures.push_back({evil, bad_input("{}", evil).at(evil).with_hint(evil)});
  ReportedGraph& graph = report.graphs.emplace_back();
  graph.name = evil;
  graph.profile.emplace();
  graph.graph.emplace();
  graph.memory.emplace();
  graph.memory->moments = static_cast<int64_t>(steps);
  graph.memory->height = 1 << 20;
  graph.graph->schedules = {{"0x1", "gemm", evil}};
  for (uint32_t i = 0; i < steps; ++i) {
    const std::string name = fmt::format("k{}", i);
    StepTime& time = graph.profile->steps.emplace_back();
    time = {.layers = {fmt::format("{}/block{}/{}", evil, i / 100, i)},
            .command = name,
            .kernel = evil,
            .writes = "f32[4]",
            .algorithm = "gemm",
            .schedule = "",
            .launches = 1,
            .seconds = 1e-3 / (i + 1),
            .priced = 1e-3,
            .operations = i % 7 == 0 ? 0.0 : 1e6,
            .bytes = 1e4};
    graph.profile->seconds += time.seconds;
    GraphPicture::Step& step = graph.graph->steps.emplace_back();
    step = {.name = name, .kernel = evil, .layers = time.layers, .schedule = 0, .needs = {}};
    if (i > 0) step.needs.push_back(i - 1);
    if (i > 5) step.needs.push_back(i - 5);
    step.nodes = {{evil, "dot", "f32[4]", "[1, 0]"}};
    if (i < 1000) graph.memory->buffers.push_back({evil, "f32[4]", i, i + 1, 0, 64});
  }
  graph.memory->load = {64};
  graph.tuning.emplace();
  graph.tuning->kernels = {{evil, 2, {{1e-3, 2e-3, false, 1}, {2e-3, 1e-3, true, 2}}}};
  graph.tuning->progress = {{0, 2e-3}, {2, 1e-3}};
  graph.tuning->best = KnownPlan{{}, 1.5, 1.25, 1.75};
  return report;
}

TEST(ModelReport, HasNoElementsButItsOwn) {
  const std::string plain = report_page(empty_report("m"));
  const std::string evil = report_page(evil_report(20));
  for (const std::string_view part : {"<script", "</script", "<!--", "<img"})
    EXPECT_EQ(count_of(evil, part), count_of(plain, part)) << part;
  EXPECT_THAT(evil, HasSubstr("<title>&lt;/script&gt;"));
  const nlohmann::json data = data_of(evil);
  const std::string shown = "</script><script>alert(1)</script><!--\"'\\u{0001}\\xff\\u{202e}";
  EXPECT_EQ(data["model"], shown);
  EXPECT_EQ(data["graphs"][0]["graph"]["steps"][0][5][0][0], shown);
  EXPECT_EQ(data["failures"][0]["hint"], shown);
}

TEST(ModelReport, SumsStagesUpAndTellsFailures) {
  const nlohmann::json data = nlohmann::json::parse(report_json(evil_report(3)));
  EXPECT_EQ(data["stages"], nlohmann::json::parse(R"([["graph", 1.0, 1], ["plan", 5.0, 2]])"));
  EXPECT_EQ(data["failures"][0]["code"], 3);
  EXPECT_EQ(data["sides"][1]["ratio"], 1.5);
  EXPECT_EQ(data["sides"][1]["interval"][0], 1.25);
  EXPECT_EQ(data["graphs"][0]["tuning"]["kernels"][0]["points"][1][2], 1);
  EXPECT_THAT(data["graphs"][0]["profile"]["steps"], SizeIs(3));
}

TEST(ModelReport, OfLargeModelsIsBounded) {
  const std::string page = report_page(evil_report(10'000));
  EXPECT_LT(page.size(), size_t{40} << 20);
}

// A failure costs its part alone.
TEST(ModelReport, OfAModelThatDoesNotRunShowsItsGraphs) {
  const Model model = model_of(parse_graph(R"(
    graph @g(%x: f32[16, 32], %w: f32[32, 64]) -> f32[16, 64] {
      %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
      %y = tanh %h
      return %y
    })")
                                   .value());
  NativeOptions options;
  options.target = host_target().value();
  ModelReport report = empty_report("m");
  ASSERT_TRUE(summarize_into(report, model).ok());
  ASSERT_TRUE(plan_into(report, model, options, {}, nullptr, {}).ok());
  EXPECT_THAT(report.failures, SizeIs(0));
  ASSERT_THAT(report.graphs, SizeIs(1));
  EXPECT_TRUE(report.graphs[0].graph && report.graphs[0].memory);
  EXPECT_EQ(report.summary->op_counts.at("dot"), 1);
  EXPECT_EQ(report.graph_count, 1u);
}

TEST(ModelReport, MeasuresAndNotesWhatFails) {
  Source source = {.model = model_of(parse_graph(R"(
    graph @g(%x: f32[16, 32]) -> f32[16, 32] { %y = tanh %x return %y })")
                                         .value())};
  NativeOptions options;
  options.target = host_target().value();
  options.threads = 1;
  const RunInputs inputs =
      resolve_inputs(signature_of(source.model), {}, 0, Engine::native).value();
  ModelReport report = empty_report("m");
  const ReportSubject subject = {
      .source = source, .inputs = inputs, .options = options, .seconds = 0.01, .runs_rival = false};
  ASSERT_TRUE(measure_into(report, subject).ok());
  EXPECT_THAT(report.failures, SizeIs(0));
  ASSERT_THAT(report.sides, SizeIs(1));
  ASSERT_THAT(report.graphs, SizeIs(1));
  ASSERT_TRUE(report.graphs[0].profile.has_value());
  EXPECT_GT(report.graphs[0].profile->steps[0].bytes, 0);

  RunInputs tight = inputs;
  tight.tensors.clear();  // as if they did not fit
  ModelReport failed = empty_report("m");
  const ReportSubject without = {
      .source = source, .inputs = tight, .options = options, .seconds = 0.01, .runs_rival = false};
  ASSERT_TRUE(measure_into(failed, without).ok());
  ASSERT_THAT(failed.failures, SizeIs(1));
  EXPECT_EQ(failed.failures[0].what, "compile and run the model");
  ASSERT_THAT(failed.graphs, SizeIs(1));
  EXPECT_TRUE(failed.graphs[0].graph.has_value());
  EXPECT_THAT(failed.sides, SizeIs(0));

  const CancelToken cancelled;
  const_cast<CancelToken&>(cancelled).cancel();
  ModelReport stopped = empty_report("m");
  ReportSubject interrupted = subject;
  interrupted.face.cancel = &cancelled;
  EXPECT_EQ(measure_into(stopped, interrupted).error().code(), ErrorCode::interrupted);
}

// A page of thousands of steps, all of whose names are hostile, works in a browser.
TEST(ModelReport, WorksInABrowserHoweverLargeAndHostile) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string page = (folder.path() / "page.html").string();
  ASSERT_TRUE(write_file_atomic(page, report_page(evil_report(3'000))).ok());
  const ProcessResult result =
      run_process(HONE_TEST_DIR "/report/check_page.sh", {page}, {.wall_seconds = 300}).value();
  if (result.exit_code == 77) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

}  // namespace
}  // namespace hone::HONE_FILE
