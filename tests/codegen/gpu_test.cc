#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "compile/gpu_kernels.h"
#include "ir/functional.h"
#include "ir/op_def.h"
#include "program/tiles/simt.h"
#include "program/tiles/tile_builder.h"
#include "quantize/rewrite.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/ptx_facts.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"
#include "zoo/zoo.h"

// No GPU is needed: these tests read the text. With NVIDIA's assembler in HONE_PTXAS they assemble
// it, too.

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kCapabilities[] = {80, 90};

GpuKernel compiled(std::string_view text, int64_t capability = 80) {
  const TileProgram program = parse_tiles(text).value();
  Result<GpuKernel> kernel = compile_for_gpu(program, capability, "k");
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  if (!kernel.ok()) return {};
  expect_facts(*kernel, program, capability);
  return *std::move(kernel);
}

// ---- What the text says -------------------------------------------------------------------------

TEST(Gpu, AKernelHasOneFunctionForEachPhase) {
  const GpuKernel kernel = compiled(R"(tiles @f(@x: f32[N]) -> (@y: f32[N]) where N in 1..4096 {
    shared @t: f32[N]
    threads i in N {
      %x = load @x[i]
      store @t[i] = %x
    }
    threads i in N {
      %t = load @t[i]
      %y = mul %t, %t
      store @y[i] = %y
    }
  })");
  ASSERT_EQ(kernel.phases.size(), 2U);
  EXPECT_EQ(kernel.phases[0].symbol, "k_0");
  EXPECT_EQ(kernel.phases[1].symbol, "k_1");
  // Buffers x, y, t; the size N; scratch; begin and end.
  EXPECT_THAT(kernel.ptx, HasSubstr("k_1_param_6"));
  EXPECT_THAT(kernel.ptx, Not(HasSubstr("k_1_param_7")));
  EXPECT_THAT(kernel.ptx, HasSubstr(".maxntid 256"));
  EXPECT_THAT(kernel.ptx, HasSubstr("mul.rn.f32"));
  EXPECT_THAT(kernel.ptx, HasSubstr("ld.global.nc.f32"));  // of an input
  EXPECT_THAT(kernel.ptx, HasSubstr("ld.global.f32"));     // of what another phase wrote
  EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
}

TEST(Gpu, LanesBecomeThreads) {
  const GpuKernel kernel = compiled(R"(tiles @f(@x: f32[64, 16]) -> (@y: f32[64, 16]) {
    threads i in 64 {
      lanes j in 16 {
        %x = load @x[i, j]
        %y = sqrt %x
        store @y[i, j] = %y
      }
    }
  })");
  EXPECT_THAT(kernel.ptx, HasSubstr("sqrt.rn.f32"));
  EXPECT_THAT(kernel.ptx, HasSubstr("%ntid.x"));
  EXPECT_THAT(kernel.ptx, HasSubstr("%nctaid.x"));
  EXPECT_EQ(kernel.phases[0].trip_of, TripOf::thread);
}

TEST(Gpu, LargeKernelsAccessFourNumbersAtATime) {
  const auto ptx = [](std::string_view type, int64_t columns) {
    return compiled(fmt::format("tiles @f(@x: {0}[4096, {1}], @b: {0}[{1}]) -> (@y: {0}[4096, "
                                "{1}]) {{ threads i in 4096 {{ threads j in {1} {{ "
                                "%x = load @x[i, j] %b = load @b[j] %y = add %x, %b "
                                "store @y[i, j] = %y }} }} }}",
                                type, columns))
        .ptx;
  };
  const std::string whole = ptx("f32", 256), halves = ptx("i16", 256), odd = ptx("f32", 257);
  EXPECT_THAT(whole, HasSubstr("ld.global.nc.v4.f32"));
  EXPECT_THAT(whole, HasSubstr("st.global.v4.f32"));
  EXPECT_THAT(halves, HasSubstr("st.global.v4.u16"));
  EXPECT_THAT(odd, Not(HasSubstr(".v4")));
}

// A part of another buffer begins at any element.
TEST(Gpu, PartsOfBuffersHaveNoWideAccesses) {
  const TileProgram copy =
      parse_tiles(
          "tiles @f(@x: f32[4096, 256]) -> (@y: f32[4096, 256]) { threads i in 4096 { "
          "threads j in 256 { %x = load @x[i, j] store @y[i, j] = %x } } }")
          .value();
  EXPECT_THAT(compile_for_gpu(copy, 80, "k", true)->ptx, HasSubstr(".v4"));
  EXPECT_THAT(compile_for_gpu(copy, 80, "k", false)->ptx, Not(HasSubstr(".v4")));
  const TileProgram pieces =
      parse_tiles(
          "tiles @f(@x: f32[4, 64]) -> (@y: f32[4, 64]) { block @b: f32[64] "
          "blocks i in 4 { threads t in 16 { copy 4 @b[4*t] = @x[i, 4*t] } group wait 0 "
          "barrier threads u in 64 { %x = load @b[u] store @y[i, u] = %x } } }")
          .value();
  EXPECT_TRUE(compile_for_gpu(pieces, 80, "k", true).ok());
  EXPECT_THAT(compile_for_gpu(pieces, 80, "k", false),
              tested::refuses(ErrorCode::unsupported, "pieces ... any element"));
}

TEST(Gpu, ScratchLiesWhereItFits) {
  const auto text = [](int64_t elements) {
    return fmt::format(R"(tiles @f(@x: f32[8, {0}]) -> (@y: f32[8, {0}]) {{
    scratch @t: f32[{0}]
    threads i in 8 {{
      for j in {0} {{
        %x = load @x[i, j]
        store @t[j] = %x
      }}
      for j in {0} {{
        %t = load @t[{0} - j - 1]
        store @y[i, j] = %t
      }}
    }}
  }})",
                       elements);
  };
  const GpuKernel small = compiled(text(100)), large = compiled(text(100'000));
  EXPECT_THAT(small.ptx, HasSubstr("ld.local.f32"));
  EXPECT_EQ(small.phases[0].scratch_bytes, 0);
  EXPECT_THAT(large.ptx, Not(HasSubstr(".local")));
  EXPECT_EQ(large.phases[0].scratch_bytes, 400'000);
}

TEST(Gpu, TheChipIsNamedThatRunsTheCode) {
  constexpr std::string_view kText =
      "tiles @f(@x: f32[4]) -> (@y: f32[4]) { threads i in 4 { %x = load @x[i] store @y[i] = %x } "
      "}";
  for (const auto& [capability, target] :
       {std::pair<int64_t, std::string_view>{80, ".target sm_80"},
        {86, ".target sm_86"},
        {87, ".target sm_86"},
        {89, ".target sm_89"},
        {90, ".target sm_90"},
        {120, ".target sm_90"}}) {
    const GpuKernel kernel = compile_for_gpu(parse_tiles(kText).value(), capability, "k").value();
    EXPECT_THAT(kernel.ptx, HasSubstr(target));
    EXPECT_EQ(kernel.capability, capability);
  }
}

TEST(Gpu, WhatCannotBecomeCodeIsRefused) {
  using tested::refuses;
  const TileProgram copy =
      parse_tiles(
          "tiles @f(@x: f32[4]) -> (@y: f32[4]) { for i in 4 { %x = load @x[i] "
          "store @y[i] = %x } }")
          .value();
  EXPECT_THAT(compile_for_gpu(copy, 75, "k"),
              refuses(ErrorCode::unsupported, "kernel 'f' ... capability 75 ... 80"));
  TileProgram wrong = copy;
  wrong.buffers[1].type = Type::get(DType::f32, {3});
  EXPECT_THAT(compile_for_gpu(wrong, 80, "k"), refuses(ErrorCode::bad_input, "@y"));
  const TileProgram large =
      parse_tiles(
          "tiles @f(@x: f32[4]) -> (@y: f32[4]) { scratch @t: f32[100000000] "
          "threads i in 4 { %x = load @x[i] store @t[i] = %x store @y[i] = %x } }")
          .value();
  EXPECT_THAT(compile_for_gpu(large, 80, "k"),
              refuses(ErrorCode::unsupported, "400000000 bytes ... 16777216"));
  // 508 inputs, an output, scratch and the trips are all that a launch may pass.
  const auto sum_of = [](int inputs) {
    TileBuilder sum("f");
    std::vector<tile::BufferId> ids;
    for (int i = 0; i < inputs; ++i)
      ids.push_back(sum.buffer("x", Type::get(DType::f32, {4}), BufferRole::input));
    const tile::BufferId y = sum.buffer("y", Type::get(DType::f32, {4}), BufferRole::output);
    sum.loop(Exec::threads, "i", 4, [&](IndexExpr i) {
      for (tile::BufferId id : ids) sum.store(y, {i}, sum.load(id, {i}));
    });
    return std::move(sum).finish();
  };
  EXPECT_TRUE(compile_for_gpu(sum_of(508), 80, "k").ok());
  EXPECT_THAT(compile_for_gpu(sum_of(509), 80, "k"),
              refuses(ErrorCode::unsupported, "kernel 'f' ... 4104 bytes ... 4096"));
}

// ---- All that hone makes ------------------------------------------------------------------------

// A kernel with each op that takes operands of one type. Each result is the one element of a
// buffer.
class OpsOfType {
 public:
  explicit OpsOfType(DType dtype) : dtype_(dtype), tiles_("ops") {
    for (int code = 0; code < kOpcodeCount; ++code) {
      const auto opcode = static_cast<Opcode>(code);
      if (!is_elementwise(opcode)) continue;
      for (int count : {1, 2, 3}) add(opcode, count, {});
      for (std::string_view direction : {"eq", "ne", "lt", "le", "gt", "ge"})
        add(opcode, 2, {{"direction", std::string(direction)}});
      for (int to = 0; to < kDTypeCount; ++to) add(opcode, 1, {{"dtype", static_cast<DType>(to)}});
    }
  }

  size_t count() const { return calls_.size(); }

  TileProgram program() && {
    std::vector<tile::BufferId> inputs, outputs;
    for (int i = 0; i < 3; ++i)
      inputs.push_back(tiles_.buffer("x", Type::get(dtype_, {8}), BufferRole::input));
    const tile::BufferId chosen =
        tiles_.buffer("c", Type::get(DType::boolean, {8}), BufferRole::input);
    for (const Call& call : calls_)
      outputs.push_back(tiles_.buffer("y", Type::get(call.result, {8}), BufferRole::output));
    tiles_.loop(Exec::loop, "i", 8, [&](IndexExpr i) {
      std::vector<tile::Scalar> numbers;
      for (tile::BufferId input : inputs) numbers.push_back(tiles_.load(input, {i}));
      const tile::Scalar truth = tiles_.load(chosen, {i});
      for (size_t c = 0; c < calls_.size(); ++c) {
        std::vector<tile::Scalar> operands(numbers.begin(), numbers.begin() + calls_[c].operands);
        if (calls_[c].op.opcode() == Opcode::select) operands = {truth, numbers[0], numbers[1]};
        tiles_.store(outputs[c], {i}, tiles_.compute(calls_[c].op, operands));
      }
    });
    return std::move(tiles_).finish();
  }

 private:
  struct Call {
    Op op;
    int operands;
    DType result;
  };

  void add(Opcode opcode, int count, const Attrs& attrs) {
    const Result<Op> op = Op::make(opcode, attrs);
    if (!op.ok()) return;
    std::vector<Type> types(static_cast<size_t>(count), Type::scalar(dtype_));
    if (opcode == Opcode::select) types[0] = Type::scalar(DType::boolean);
    const Result<std::vector<Type>> results = infer({*op, types});
    if (results.ok()) calls_.push_back({*op, count, (*results)[0].dtype()});
  }

  DType dtype_;
  std::vector<Call> calls_;
  TileBuilder tiles_;
};

TEST(Gpu, EveryOpOfTheTableHasCode) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    SCOPED_TRACE(name(dtype));
    OpsOfType ops(dtype);
    EXPECT_GT(ops.count(), 0U);
    if (!tested::in_share(static_cast<uint64_t>(i), 3)) continue;
    expect_compiles(std::move(ops).program(), kCapabilities[i % 2]);
  }
}

void check_contractions(uint64_t first, uint64_t count) {
  const Target host = host_target().value();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(RandomGemm(rng).graph());
    draw_layouts(body, {}, rng);
    donate_some(body, rng);
    const Schedule schedule = random_schedule(body, restricted(host, Isa::avx2), rng);
    expect_compiles(build_kernel(body, schedule, "k").value(), kCapabilities[seed % 2]);
    if (testing::Test::HasFailure()) return;
  }
}

void check_nodes(uint64_t first, uint64_t count) {
  each_node_kernel(first, count, [](const NodeKernel& kernel) {
    expect_compiles(kernel.program.value(), kCapabilities[kernel.seed % 2]);
  });
}

TEST(Gpu, RandomContractionsHaveCode) { check_contractions(0, 12); }
TEST(Gpu, RandomNodesHaveCode) { check_nodes(0, 6); }
TEST(Gpu, DISABLED_SweepContractions) { check_contractions(1'000'000, 2'000); }
TEST(Gpu, DISABLED_SweepNodes) { check_nodes(100'000, 1'000); }

// Constants come before the wait for other kernels, by way of the cache for what never changes. All
// else comes behind it, by the usual way.
TEST(Gpu, CodeForHopperWaitsForKernelsBeforeIt) {
  constexpr const char* kText =
      "tiles @f(@w: f32[64] constant, @x: f32[64]) -> (@y: f32[64]) { threads i in 64 { "
      "%w = load @w[i] %x = load @x[i] %y = add %w, %x store @y[i] = %y } }";
  const std::string ptx = compiled(kText, 90).ptx;
  const size_t wait = ptx.find("griddepcontrol.wait;");
  ASSERT_NE(wait, std::string::npos) << ptx;
  EXPECT_EQ(count(ptx, "ld.global.nc"), 1U) << ptx;
  EXPECT_LT(ptx.find("ld.global.nc"), wait) << ptx;
  EXPECT_EQ(count(ptx, "ld.global"), 2U) << ptx;
  EXPECT_GT(ptx.rfind("ld.global"), wait) << ptx;
  EXPECT_GT(ptx.find("st.global"), wait) << ptx;
  EXPECT_GT(ptx.find("griddepcontrol.launch_dependents;"), wait) << ptx;
  EXPECT_EQ(count(compiled(kText, 80).ptx, "griddepcontrol"), 0U);
}

// So a kernel of a default plan fetches its first weights before it waits, in parts of bf16.
TEST(Gpu, ProductsOfDefaultPlansFetchWeightsBeforeTheyWait) {
  Rng rng(1);
  Builder b;
  const Value x = b.parameter("x", DType::f32, {128, 768});
  std::vector<double> weights;
  for (int i = 0; i < 768 * 768; ++i) weights.push_back(rng.uniform(-1, 1));
  const Value w = b.constant(Tensor::from_reals(Type::get(DType::f32, {768, 768}), weights));
  const Graph graph =
      b.finish({b.op(Opcode::dot, {x, w}, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}})})
          .value();
  const Target target = preset_gpu("sm_90").value();
  Compilation compilation(graph, target, CompileOptions());
  const Program& program = *compilation.program().value();
  const GpuCode code = compile_gpu_kernels(program, target, default_pool(), {}).value();
  bool has_fetch = false;
  for (const GpuKernel& kernel : code.gpu) {
    const std::string& ptx = kernel.ptx;
    for (size_t at = ptx.find(".entry"); at != std::string::npos; at = ptx.find(".entry", at + 1)) {
      const std::string before = ptx.substr(at, ptx.find("griddepcontrol.wait", at) - at);
      has_fetch |= count(before, "ld.global") > 0 && count(before, "st.shared") > 0;
    }
  }
  EXPECT_TRUE(has_fetch) << print(*compilation.plan().value());
}

// The graph with its layers in bf16.
Graph in_bf16(const Graph& graph) {
  const std::vector<quantize::Layer> layers = quantize::layers_of(graph).value();
  std::vector<quantize::LayerChoice> choices;
  for (const quantize::Layer& layer : layers)
    choices.push_back(
        {.level = layer.why_not.empty() ? quantize::Precision::bf16 : quantize::Precision::f32});
  return quantize::quantized(graph, layers, choices, 32).value();
}

// The kernels of the plan for a GPU, but those for the CPU beside it.
void check_model(std::string_view model, int64_t capability, DType dtype) {
  SCOPED_TRACE(fmt::format("{} for sm_{} in {}", model, capability, name(dtype)));
  const Target target = preset_gpu(fmt::format("sm_{}", capability)).value();
  Graph graph = build_zoo_model(model, {.size = ZooSize::tiny}).value();
  if (dtype == DType::bf16) graph = in_bf16(graph);
  Compilation compilation(graph, target, CompileOptions());
  const Result<const Program*> program = compilation.program();
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const Result<GpuCode> code = compile_gpu_kernels(**program, target, default_pool(), {});
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  for (size_t k = 0; k < code->gpu.size(); ++k)
    if (code->on_cpu[k].empty())
      expect_facts(code->gpu[k], simt_form((*program)->kernels[k].tiles), capability);
}

// A run has a share of them, and mlp.
TEST(Gpu, KernelsOfModelsHaveCode) {
  uint64_t number = 0;
  for (const ZooEntry& entry : zoo_entries())
    for (int64_t capability : {80, 90})
      for (DType dtype : {DType::f32, DType::bf16})
        if (tested::in_share(number++, 30) || entry.name == std::string_view("mlp"))
          check_model(entry.name, capability, dtype);
}

TEST(Gpu, TheAssemblerTakesTheTextAndNoOther) {
  if (assembler() == nullptr) GTEST_SKIP() << kNoAssembler;
  const GpuKernel kernel = compiled(
      "tiles @f(@x: f32[4]) -> (@y: f32[4]) { threads i in 4 { %x = load @x[i] store @y[i] = %x } "
      "}",
      90);
  EXPECT_EQ(assembler_says(kernel.ptx, 90), "");
  EXPECT_THAT(assembler_says(kernel.ptx + "nonsense", 90), HasSubstr("error"));
}

}  // namespace
}  // namespace hone::HONE_FILE
