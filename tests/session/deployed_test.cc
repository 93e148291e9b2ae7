#include "session/deployed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/rng.h"
#include "compile/native_model.h"
#include "ir/functional.h"
#include "ir/model_text.h"
#include "ir/reference/evaluate_model.h"
#include "ir/summary.h"
#include "ir/text.h"
#include "oracle/compare.h"
#include "runtime/hone.h"
#include "runtime/honec_layout.h"
#include "runtime/loaded_model.h"
#include "runtime/segment_run.h"
#include "tests/base/says_testing.h"
#include "tests/ir/segment_models.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

Result<std::string> bytes_of(const Model& model) {
  const HonecModel described = HONE_TRY(deployed_model(model, model, {.size = "--dim"}));
  std::vector<DeployedGraph> made;
  for (const Graph* graph : graphs_of(model))
    made.push_back(HONE_TRY(deployed_graph(*graph, static_cast<uint32_t>(made.size()),
                                           host_target().value(), {}, {.size = "--dim"})));
  std::vector<HonecProgram> programs;
  for (const DeployedGraph& one : made) programs.push_back(one.program());
  return HONE_TRY(honec_bytes(described, programs, "1.2.3")).joined();
}

Result<HonecFile> parse(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return HonecFile::parse(owner, std::as_bytes(std::span(*owner)));
}

std::shared_ptr<const LoadedModel> loaded(const Model& model) {
  return LoadedModel::load(parse(bytes_of(model).value()).value()).value();
}

Model parsed(std::string_view text) {
  Model model = parse_model(text).value();
  EXPECT_TRUE(verify(model).ok());
  return model;
}

Tensor f32(std::vector<double> values) {
  return Tensor::from_reals(Type::get(DType::f32, {static_cast<int64_t>(values.size())}), values);
}
Tensor i64(int64_t value) { return Tensor::from_integers(Type::scalar(DType::i64), {&value, 1}); }

// The same from the file as from the reference, within what native code may differ by.
void expect_same(const LoadedModel& model, const Model& origin, std::vector<Tensor> inputs) {
  const std::vector<Tensor> expected = evaluate_model(origin, inputs).value();
  const auto actual = model.run(inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  ASSERT_EQ(actual->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ((*actual)[i].type(), expected[i].type()) << i;
    const auto comparison =
        compare((*actual)[i], expected[i], default_tolerance(expected[i].dtype()));
    EXPECT_TRUE(comparison->passed()) << "output " << i << ": " << comparison->to_string();
  }
}

// ---- Sizes that are open -----------------------------------------------------------------------

TEST(Deployed, CodeForAllSizesComputesTheBitsOfTheCompiler) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph(
        {.seed = seed, .max_steps = 8, .max_elements = 64, .symbolic = true, .continuous = true});
    if (graph.is_static()) continue;
    const auto bytes = bytes_of(model_of(graph));
    if (!bytes.ok()) {
      EXPECT_EQ(bytes.error().code(), ErrorCode::unsupported) << bytes.error().to_string();
      EXPECT_THAT(bytes.error().hint(), HasSubstr("--dim "));
      continue;
    }
    const auto model = LoadedModel::load(parse(*bytes).value()).value();
    EXPECT_TRUE(model->file().programs()[0].is_open);
    Compilation compilation(graph, host_target().value());
    Rng rng(seed);
    for (int time = 0; time < 3; ++time) {
      Bindings sizes;
      for (Symbol symbol : graph.symbols()) {
        const int64_t step = symbol.multiple_of(), low = (symbol.min() + step - 1) / step;
        sizes.emplace(symbol.name(),
                      step * rng.between(low, std::min(symbol.max() / step, low + 2)));
      }
      const std::vector<Tensor> inputs =
          random_graph_inputs(specialize(graph, sizes).value(), rng.next());
      const auto direct = Executable::load(compilation.image_for(sizes).value()).value();
      const std::vector<Tensor> expected = direct->run(inputs).value();
      const auto actual = model->run(inputs);
      ASSERT_TRUE(actual.ok()) << actual.error().to_string();
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE((*actual)[i].same_bytes(expected[i])) << "output " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10);
}

TEST(Deployed, SizesThatDoNotFitAreRefused) {
  const auto model = loaded(
      model_of(build_zoo_model("mlp", {.size = ZooSize::tiny, .symbolic_batch = true}).value()));
  for (Type type : {Type::get(DType::f32, {0, 16}), Type::get(DType::f32, {2, 17}),
                    Type::get(DType::f64, {2, 16}), Type::get(DType::f32, {16})}) {
    const Tensor x = Tensor::zeros(type);
    const auto outputs = model->run({&x, 1});
    ASSERT_FALSE(outputs.ok());
    EXPECT_EQ(outputs.error().code(), ErrorCode::bad_input);
    EXPECT_THAT(outputs.error().what(), HasSubstr("input 'x'"));
  }
  EXPECT_FALSE(model->run({}).ok());
}

TEST(Deployed, TimesAreOfUnitsAndTheirSizes) {
  const auto model = loaded(model_of(
      parse_graph("graph @g(%x: f32[N]) -> f32[N] where N in 1..100 { %y = add %x, %x return %y }")
          .value()));
  std::vector<UnitTimes> times;
  RunTrace trace;
  for (size_t n : {2, 3, 2}) {
    const Tensor x = f32(std::vector<double>(n, 1.5));
    ASSERT_TRUE(model->run({&x, 1}, {.trace = &trace}, &times).ok());
  }
  ASSERT_EQ(times.size(), 2);
  EXPECT_EQ(times[0].inputs[0].to_string(), "f32[2]");
  EXPECT_EQ(times[0].runs, 2);
  ASSERT_EQ(times[0].times.size(), 1);
  EXPECT_EQ(times[0].times[0].runs, 2);
  EXPECT_EQ(times[1].runs, 1);
  ASSERT_EQ(trace.entries.size(), 3);
  EXPECT_EQ(trace.entries[1].program, 1);
  EXPECT_EQ(trace.entries[2].program, 0);
}

// More sizes than are kept, from several threads.
TEST(Deployed, ThreadsMeetDifferentSizes) {
  const auto model = loaded(model_of(
      parse_graph("graph @g(%x: f32[N]) -> f32[N] where N in 1..100 { %y = add %x, %x return %y }")
          .value()));
  std::atomic<int> wrong = 0;
  const auto run = [&](int64_t first) {
    for (int64_t n = first; n <= 100; n += 3) {
      const Tensor x = f32(std::vector<double>(static_cast<size_t>(n), 1.5));
      const auto y = model->run({&x, 1});
      if (!y.ok() || (*y)[0].elements() != n || (*y)[0].real_at(n - 1) != 3) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i <= 3; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// ---- Segments ----------------------------------------------------------------------------------

TEST(Deployed, SizesFollowFromData) {
  const Model origin = parsed(kPositives);
  const auto model = loaded(origin);
  ASSERT_NE(model->file().segments(), nullptr);
  expect_same(*model, origin, {f32({-1, 2, 0, 3.5, -4, 1})});
  expect_same(*model, origin, {f32({-1, -2, 0, -3, -4, -1})});
  expect_same(*model, origin, {f32({1, 2, 3, 4, 5, 6})});
}

TEST(Deployed, LoopsCarryAndGrow) {
  const Model origin = parsed(kLoop);
  const auto model = loaded(origin);
  for (int64_t trips : {3, 1000, 0})
    expect_same(*model, origin, {i64(trips), Tensor::scalar(DType::f32, 5)});
  const Model growing = parsed(kGrowingState);
  const auto grown = loaded(growing);
  expect_same(*grown, growing, {i64(2), f32({1, 2})});
  expect_same(*grown, growing, {i64(5), f32({1, 2, 3})});
}

TEST(Deployed, BranchesRunOneBody) {
  const Model origin = parsed(kIf);
  const auto model = loaded(origin);
  for (double p : {0, 1})
    expect_same(*model, origin, {Tensor::scalar(DType::boolean, p), f32({1, 2, 3, 4})});
}

TEST(Deployed, SegmentsRunFromC) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string path = folder.path() / "m.honec";
  ASSERT_TRUE(write_file_atomic(path, bytes_of(parsed(kPositives)).value()).ok());
  hone_model* model = nullptr;
  ASSERT_EQ(hone_load(path.c_str(), nullptr, &model, nullptr), HONE_OK);
  EXPECT_EQ(hone_size_count(model), 0);
  EXPECT_EQ(hone_input(model, 0)->dims[0], 6);
  EXPECT_EQ(hone_output(model, 0)->dims[0], -1);
  const float x[] = {-1, 2, 0, 3.5, -4, 1};
  const void* inputs[] = {x};
  hone_outputs* outputs = nullptr;
  ASSERT_EQ(hone_call(model, inputs, nullptr, 1, &outputs, nullptr), HONE_OK);
  ASSERT_EQ(hone_outputs_port(outputs, 1)->dims[0], 3);
  EXPECT_EQ(static_cast<const float*>(hone_outputs_data(outputs, 1))[1], 7);
  hone_outputs_free(outputs);
  hone_free(model);

  // Outputs whose sizes are numbers go where the caller says.
  constexpr std::string_view kSteps =
      "model @m(%n: i64[], %x: f32[2]) -> (%y: f32[2]) {\n"
      "  %y = loop trip %n with %s = %x {\n"
      "    %t = run %s graph @step(%s: f32[2]) { %t = add %s, %s return %t }\n"
      "    yield %t\n  }\n}\n";
  ASSERT_TRUE(write_file_atomic(path, bytes_of(parsed(kSteps)).value()).ok());
  ASSERT_EQ(hone_load(path.c_str(), nullptr, &model, nullptr), HONE_OK);
  const int64_t trips[] = {3, 0};
  float y[2] = {};
  for (int64_t trip : trips) {
    const void* given[] = {&trip, x};
    void* made[] = {y};
    ASSERT_EQ(hone_run(model, given, 2, made, 1, nullptr), HONE_OK);
    EXPECT_EQ(y[1], trip == 0 ? 2.0F : 16.0F);
    // No trip: the output is the input, and its bytes are copied.
    ASSERT_EQ(hone_call(model, given, nullptr, 2, &outputs, nullptr), HONE_OK);
    EXPECT_NE(hone_outputs_data(outputs, 0), static_cast<const void*>(x));
    hone_outputs_free(outputs);
  }
  hone_free(model);
}

TEST(Deployed, RefusesDeferredSegmentsByName) {
  struct Late : SegmentSource {
    Result<Body> specialize(std::span<const Type>) const override { return bad_input("not now"); }
    std::string describe() const override { return "node 'detect/nms'"; }
  };
  Model model = parsed(kPositives);
  model.segments.push_back({DeferredSegment{std::make_shared<Late>(), {"twice"}, {"late"}}});
  const auto refused = deployed_model(model, model, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(refused.error().what(), says("node 'detect/nms' ... compiled"));
  EXPECT_THAT(refused.error().hint(), HasSubstr("'hone run'"));
}

// The smallest sizes of all.
Bindings smallest(const OpenImage& open) {
  Bindings sizes;
  for (Symbol symbol : symbols_of(open)) {
    const int64_t step = symbol.multiple_of(), steps = symbol.min() / step;
    sizes.emplace(symbol.name(), (symbol.min() % step == 0 ? steps : steps + 1) * step);
  }
  return sizes;
}

// ---- Hostile files -----------------------------------------------------------------------------

// With checksums that fit: what stands in them is refused when the file is read or when it runs.
TEST(Deployed, HostileSegmentsAreRefused) {
  for (std::string_view text : {kPositives, kLoop, kIf}) {
    const std::string good = bytes_of(parsed(text)).value();
    honec::Header header;
    std::memcpy(&header, good.data(), sizeof header);
    std::vector<honec::Section> sections(header.sections);
    std::memcpy(sections.data(), good.data() + sizeof header,
                sections.size() * sizeof(honec::Section));
    ASSERT_EQ(sections[1].kind, static_cast<uint32_t>(honec::Kind::segments));
    Rng rng(1);
    int opened = 0, ran = 0;
    for (int time = 0; time < 2000; ++time) {
      std::string hostile = good;
      std::vector<honec::Section> table = sections;
      honec::Section& section = table[rng.below(table.size() - 2)];
      for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
        const size_t at = section.offset + rng.below(section.bytes);
        hostile[at] = rng.below(2) == 0 ? static_cast<char>(rng.below(8)) : '\xff';
      }
      section.checksum =
          hash_string(std::string_view(hostile).substr(section.offset, section.bytes));
      honec::Header sealed = header;
      sealed.checksum = honec::header_checksum(sealed, std::as_bytes(std::span(table)));
      std::memcpy(hostile.data(), &sealed, sizeof sealed);
      std::memcpy(hostile.data() + sizeof sealed, table.data(),
                  table.size() * sizeof(honec::Section));
      const auto file = parse(std::move(hostile));
      if (!file.ok()) continue;
      ++opened;
      for (size_t i = 0; i < file->programs().size(); ++i)
        if (const auto open = file->open_image(i); open.ok())
          if (const auto image = bound_image(*open, smallest(*open)); image.ok())
            (void)check_image(*image);
      // Code is not run: units give what their types say.
      const auto unit = [&](uint32_t which, std::span<const Tensor>,
                            const SegmentLimits&) -> Result<std::vector<Tensor>> {
        std::vector<Tensor> outputs;
        for (const HonecFile::Program& program : file->programs()) {
          if (program.unit != which || !outputs.empty()) continue;
          for (const image::Port& port : program.outputs) {
            Dims dims;
            for (Dim dim : port.type.dims()) dims.push_back(dim.is_static() ? dim : Dim(3));
            const Type type = HONE_TRY(Type::make(port.type.dtype(), dims));
            if (type.static_bytes() > 4096) return bad_input("large");
            outputs.push_back(Tensor::zeros(type));
          }
        }
        return outputs;
      };
      std::vector<Tensor> inputs;
      for (const image::Port& port : file->inputs())
        if (port.type.is_static() && port.type.static_bytes() < 4096)
          inputs.push_back(Tensor::zeros(port.type));
      if (file->segments() == nullptr || inputs.size() != file->inputs().size()) continue;
      ran += run_segments(*file->segments(), inputs, unit, {.max_trips = 100}).ok() ? 1 : 0;
    }
    EXPECT_GT(opened, 0);
    EXPECT_GT(ran, 0);
  }
}

TEST(Deployed, TreesThatNameNothingAreRefused) {
  const SegmentTree good = {{"u"}, {"x", "y"}, {{segments::Unit{0, {0}, {1}, {}}}}, {1}};
  EXPECT_TRUE(check(good, 1, {{1, 1}}).ok());
  EXPECT_FALSE(check(good, 3, {{1, 1}}).ok());
  EXPECT_FALSE(check(good, 1, {{2, 1}}).ok());
  EXPECT_FALSE(check(good, 1, {{1, 2}}).ok());
  EXPECT_FALSE(check(good, 1, {}).ok());
  const auto refuses = [&](auto change) {
    SegmentTree bad = good;
    change(bad, std::get<segments::Unit>(bad.steps[0].kind));
    return !check(bad, 1, {{1, 1}}).ok();
  };
  EXPECT_TRUE(refuses([](SegmentTree& tree, auto&) { tree.outputs = {2}; }));
  EXPECT_TRUE(refuses([](SegmentTree&, segments::Unit& unit) { unit.unit = 1; }));
  EXPECT_TRUE(refuses([](SegmentTree&, segments::Unit& unit) { unit.inputs = {7}; }));
  EXPECT_TRUE(refuses([](SegmentTree&, segments::Unit& unit) { unit.outputs = {7}; }));
  EXPECT_TRUE(refuses([](SegmentTree&, segments::Unit& unit) { unit.crops = {{1, 0, 0}}; }));
  EXPECT_TRUE(refuses([](SegmentTree&, segments::Unit& unit) { unit.crops = {{0, 0, 1}}; }));
  const auto none = [](uint32_t, std::span<const Tensor>, const SegmentLimits&) {
    return Result<std::vector<Tensor>>(std::vector<Tensor>{Tensor()});
  };
  const Tensor x = f32({1});
  const auto missing = run_segments(good, {&x, 1}, none);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().what(), says("'y' ... read"));
}

}  // namespace
}  // namespace hone::HONE_FILE
