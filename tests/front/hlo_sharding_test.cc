#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "front/hlo/hlo.h"
#include "front/hlo/write/write.h"
#include "ir/sharding.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"

// The shardings that programs state: each form is read, and what is written comes back.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// The shardings of parameters and outputs, as the text of a graph shows them.
std::string shown(const Result<Model>& model) {
  if (!model.ok()) return model.error().to_string();
  const Graph& graph = *single_graph(*model);
  std::string text;
  if (graph.shardings() == nullptr) return "nothing";
  for (const MeshRef& mesh : meshes_of(graph))
    text += fmt::format("{} = {}; ", mesh->name, axes_text(*mesh));
  for (const auto& [value, sharding] : graph.shardings()->values)
    text += fmt::format("{} {} {}; ", graph.label(value), sharding.mesh->name, dims_text(sharding));
  for (const auto& [output, sharding] : graph.shardings()->outputs)
    text += fmt::format("out{} {} {}; ", output, sharding.mesh->name, dims_text(sharding));
  return text;
}

std::string of_hlo(std::string_view sharding, std::string_view head = ", num_partitions=8") {
  return shown(parse_hlo(fmt::format("HloModule m{}\n\nENTRY main {{\n"
                                     "  x = f32[8,6]{{1,0}} parameter(0), sharding={}\n"
                                     "  ROOT y = f32[8,6]{{1,0}} negate(x)\n}}\n",
                                     head, sharding),
                         "p"));
}

TEST(HloSharding, ReadsTilesOfDevices) {
  EXPECT_EQ(of_hlo("{devices=[2,4]<=[8]}"), "devices8 = [d = 8]; %x devices8 [d:(1)2, d:(2)4]; ");
  EXPECT_EQ(of_hlo("{devices=[8,1]<=[8]}"), "devices8 = [d = 8]; %x devices8 [d, -]; ");
  EXPECT_EQ(of_hlo("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"),
            "devices8 = [d = 8]; %x devices8 [d:(2)4, -]; ");
  EXPECT_EQ(of_hlo("{devices=[4,2]<=[2,4]T(1,0)}"),
            "devices8 = [d = 8]; %x devices8 [d:(2)4, d:(1)2]; ");
  EXPECT_EQ(of_hlo("{devices=[2,4]<=[2,2,2]T(1,0,2)}"),
            "devices8 = [d = 8]; %x devices8 [d:(2)2, d:(1)2 d:(4)2]; ");
  EXPECT_EQ(of_hlo("{devices=[2,2]0,2,1,3}"),
            "devices4 = [d = 4] devices [0, 2, 1, 3]; %x devices4 [d:(1)2, d:(2)2]; ");
  EXPECT_EQ(of_hlo("{devices=[2,2]0,1,2,3}"), "devices4 = [d = 4]; %x devices4 [d:(1)2, d:(2)2]; ");
  // 2 does not cut the 3 of 3 x 2: the devices are one list, which is in order.
  EXPECT_EQ(of_hlo("{devices=[2,3]<=[3,2]}"), "devices6 = [d = 6]; %x devices6 [d:(1)2, d:(2)3]; ");
  EXPECT_EQ(of_hlo("{replicated}"), "devices8 = [d = 8]; %x devices8 [-, -]; ");
  EXPECT_EQ(of_hlo("{maximal device=3}"), "device3 = [] devices [3]; %x device3 [-, -]; ");
  EXPECT_EQ(of_hlo("{manual}"), "nothing");
  EXPECT_EQ(of_hlo("{unknown}"), "nothing");
}

TEST(HloSharding, ReadsMeshes) {
  EXPECT_EQ(of_hlo("{mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2, ?}], replicated={'b':(1)2}}"),
            "mesh = [a = 2, b = 4]; %x mesh [a, b:(2)2 open] replicated [b:(1)2]; ");
  // The word of the user counts, not what follows from it.
  EXPECT_EQ(of_hlo("{devices=[4,2]<=[8]}, frontend_attributes={xla.sdy.sharding=\""
                   "#sdy.sharding<@mesh, [{\\\"x\\\", ?}, {}p1], unreduced={\\\"y\\\"}>\"}",
                   ", frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"x\"=4, \"y\"=2]>}}"),
            "mesh = [x = 4, y = 2]; %x mesh [x open, - priority 1] partial sum [y]; ");
}

TEST(HloSharding, RefusesOtherAttributes) {
  constexpr std::string_view kHead =
      ", frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"x\"=4]>}}";
  for (const std::string_view form :
       {"#other.thing<@mesh, [{}, {}]>", "#other.thing<[<@mesh, [{}, {}]>]>",
        "#sdy.sharding_per_value<[#other.thing<@mesh, [{}, {}]>]>"})
    EXPECT_THAT(
        of_hlo(fmt::format("{{replicated}}, frontend_attributes={{xla.sdy.sharding=\"{}\"}}", form),
               kHead),
        testing::HasSubstr("sdy.sharding"));
}

TEST(HloSharding, ReadsTuplesAndResults) {
  EXPECT_EQ(
      shown(parse_hlo(
          "HloModule m, num_partitions=2, frontend_attributes={xla.sdy.meshes={m = "
          "#sdy.mesh<[\"a\"=2]>}}\n\nENTRY main {\n"
          "  p = (f32[4], f32[2,2]) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}}\n"
          "  x = f32[4] get-tuple-element(p), index=0\n"
          "  s = f32[4] custom-call(x), custom_call_target=\"Sharding\", sharding={replicated}\n"
          "  n = f32[4] negate(s)\n"
          "  ROOT r = f32[4] custom-call(n), custom_call_target=\"xla.sdy.FuncResultSharding\", "
          "frontend_attributes={xla.sdy.sharding=\"#sdy.sharding_per_value<[<@m, "
          "[{\\\"a\\\"}]>]>\"}\n}\n",
          "p")),
      "m = [a = 2]; %p m [a]; %p m [-]; %p.1 m [-, -]; out0 m [a]; ");
}

Result<Model> of_stablehlo(std::string_view body) {
  return parse_hlo(
      fmt::format(
          "module {{\n"
          "  sdy.mesh @none = <[]>\n"
          "  sdy.mesh @m = <[\"a\"=2]>\n"
          "  func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {{\n"
          "{}  }}\n"
          "}}\n",
          body),
      "p");
}

// Neither names a mesh: theirs is the one that has axes.
TEST(HloSharding, ReadsGroupsAndBarriers) {
  const Result<Model> model = of_stablehlo(
      "    sdy.sharding_group %x group_id = 1 : tensor<8x8xf32>\n"
      "    %0 = sdy.propagation_barrier %y allowed_direction=FORWARD : tensor<8x8xf32>\n"
      "    %1 = \"sdy.propagation_barrier\"(%0) <{allowed_direction = 2 : i32}> : "
      "(tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "    %2 = stablehlo.add %0, %1 : tensor<8x8xf32>\n"
      "    sdy.sharding_group %2 group_id=1 : tensor<8x8xf32>\n"
      "    return %2 : tensor<8x8xf32>\n");
  EXPECT_EQ(shown(model),
            "m = [a = 2]; %x m [open, open] group 1; %2 m [open, open] passes forward; "
            "%3 m [open, open] passes backward; %4 m [open, open] group 1; ");
  EXPECT_THAT(print_stablehlo(*model), refuses(ErrorCode::unsupported, "groups of values"));
}

TEST(HloSharding, RefusesGroupsWithoutANumber) {
  const auto one = [](std::string_view op) {
    return of_stablehlo(
        fmt::format("    {} : tensor<8x8xf32>\n"
                    "    return %x : tensor<8x8xf32>\n",
                    op));
  };
  EXPECT_THAT(one("sdy.sharding_group %x"), refuses(ErrorCode::bad_input, "number of the group"));
  EXPECT_THAT(one("%0 = sdy.propagation_barrier %x"),
              refuses(ErrorCode::bad_input, "directions ... missing"));
  EXPECT_THAT(one("%0 = sdy.propagation_barrier %x allowed_direction=UP"),
              refuses(ErrorCode::bad_input, "'UP' is none of NONE"));
}

// Tiles are of the axes of the mesh that the program declares, if it is the only one.
TEST(HloSharding, SaysTilesInTheMeshOfTheProgram) {
  constexpr std::string_view kHead =
      ", num_partitions=8, frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<[\"a\"=2, "
      "\"one\"=1, \"b\"=4]>}}";
  EXPECT_EQ(of_hlo("{devices=[2,4]<=[8]}", kHead), "m = [a = 2, one = 1, b = 4]; %x m [a, b]; ");
  EXPECT_EQ(of_hlo("{devices=[4,2]<=[8]}", kHead),
            "m = [a = 2, one = 1, b = 4]; %x m [a b:(1)2, b:(2)2]; ");
  EXPECT_EQ(of_hlo("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}", kHead),
            "m = [a = 2, one = 1, b = 4]; %x m [b, -]; ");
  EXPECT_EQ(of_hlo("{replicated}", kHead), "m = [a = 2, one = 1, b = 4]; %x m [-, -]; ");
}

constexpr std::string_view kShardy =
    "module @m {\n"
    "  sdy.mesh @mesh = <[\"a\"=2, \"b\"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>\n"
    "  sdy.mesh @one = <[], device_ids=[3]>\n"
    "  func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\", ?}, "
    "{\"b\":(1)2}p1], replicated={\"b\":(2)2}>}) -> (tensor<8x6xf32> {jax.result_info = \"y\", "
    "sdy.sharding = #sdy.sharding<@mesh, [{}, {\"b\"}]>}) {\n"
    "    %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[#sdy.sharding<@one, "
    "[]>]>} : "
    "tensor<8x6xf32>\n"
    "    %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {?}], unreduced={\"a\"}> : "
    "tensor<8x6xf32>\n"
    "    return %1 : tensor<8x6xf32>\n"
    "  }\n"
    "}\n";

TEST(HloSharding, ReadsShardy) {
  EXPECT_EQ(shown(parse_hlo(kShardy, "p")),
            "mesh = [a = 2, b = 4] devices [7, 6, 5, 4, 3, 2, 1, 0]; one = [] devices [3]; "
            "%x mesh [a open, b:(1)2 priority 1] replicated [b:(2)2]; "
            "%y one [-, -]; %y mesh [open, open] partial sum [a]; "
            "out0 mesh [-, b]; ");
}

// Through both languages, the text of a graph, and back.
TEST(HloSharding, ComesBackFromBothLanguages) {
  const Model model = parse_hlo(kShardy, "p").value();
  const std::string want = shown(model);
  const Graph graph = parse_graph(print(*single_graph(model))).value();
  EXPECT_EQ(shown(model_of(graph)), want);
  for (const auto& print_model : {print_stablehlo, print_hlo}) {
    const std::string text = print_model(model_of(graph)).value();
    EXPECT_EQ(shown(parse_hlo(text, "written")), want) << text;
  }
}

TEST(HloSharding, ComesBackFromLoops) {
  const Graph graph = parse_graph(
                          "graph @main(%x: f32[4] on @m [x]) -> f32[4] mesh @m = [x = 2] {\n"
                          "  %c = constant 2 : f32[]\n"
                          "  %r = while %x condition (%a: f32[4]) {\n"
                          "    %s = reduce %a {kind = sum, axes = [0]}\n"
                          "    %l = constant 100 : f32[]\n"
                          "    %p = compare %s, %l {direction = lt}\n"
                          "    return %p\n"
                          "  } body (%b: f32[4] on @m [open]) {\n"
                          "    %d = add %b, %b : f32[4] on @m [x]\n"
                          "    return %d\n"
                          "  } : f32[4] on @m [x]\n"
                          "  return %r\n}\n")
                          .value();
  for (const auto& print_model : {print_stablehlo, print_hlo}) {
    const std::string text = print_model(model_of(graph)).value();
    const Result<Model> again = parse_hlo(text, "written");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << text;
    const std::string printed = print(*single_graph(*again));
    EXPECT_THAT(printed, testing::HasSubstr("mesh @m = [x = 2]"));
    EXPECT_THAT(printed, testing::HasSubstr(": f32[4] on @m [open]")) << text;
    EXPECT_THAT(printed, testing::HasSubstr("add %0, %0 : f32[4] on @m [x]")) << text;
  }
}

TEST(HloSharding, TakesNoRuleForASharding) {
  EXPECT_EQ(shown(parse_hlo("HloModule m, num_partitions=8\n\nENTRY main {\n"
                            "  x = f32[8]{0} parameter(0)\n"
                            "  ROOT y = f32[8]{0} negate(x), frontend_attributes={"
                            "xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i])->([i]) {i=8}>\"}"
                            "\n}\n",
                            "p")),
            "nothing");
}

TEST(HloSharding, BoundsDevicesMeshesAndParts) {
  EXPECT_THAT(of_hlo("{replicated}", ", replica_count=65536, num_partitions=65536"),
              testing::HasSubstr("p:4"));
  std::string meshes;
  for (int i = 0; i < 5000; ++i)
    meshes += fmt::format(
        "  r{} = f32[8]{{0}} negate(x), sharding={{mesh['a{}'=2], [{{'a{}'}}]}}\n", i, i, i);
  EXPECT_THAT(shown(parse_hlo("HloModule m, num_partitions=2\n\nENTRY main {\n"
                              "  x = f32[8]{0} parameter(0)\n" +
                                  meshes + "  ROOT y = f32[8]{0} negate(x)\n}\n",
                              "p")),
              testing::HasSubstr("more than 4096 meshes"));
  std::string parts;
  for (int i = 0; i < 100; ++i) parts += " d:(1)1";
  EXPECT_THAT(parse_graph("graph @g(%x: f32[8] on @m [" + parts +
                          "]) -> f32[8] mesh @m = [d = 2] {\n  return %x\n}\n"),
              refuses(ErrorCode::limit, "'d' ... 64 parts"));
}

TEST(HloSharding, RefusesWhatDoesNotFit) {
  EXPECT_THAT(of_hlo("{devices=[2,2,2]<=[8]}"), testing::HasSubstr("tiles of 3 dims"));
  EXPECT_THAT(of_hlo("{devices=[2,4]<=[9]}"), testing::HasSubstr("p:4"));
  EXPECT_THAT(of_hlo("{devices=[2,2]0,1,2,2}"), testing::HasSubstr("different"));
  EXPECT_THAT(of_hlo("{foo}"), testing::HasSubstr("'foo'"));
  EXPECT_THAT(of_hlo("{mesh['a'=2], [{'b'}, {}]}"), testing::HasSubstr("no axis 'b'"));
  EXPECT_THAT(of_hlo("{{replicated}, {replicated}}"), testing::HasSubstr("more shardings"));
  std::string text(kShardy);
  text.replace(text.find("<@one"), 5, "<@two");
  EXPECT_THAT(parse_hlo(text, "p"), refuses(ErrorCode::bad_input, "p:5 ... 'two'"));
}

}  // namespace
}  // namespace hone::HONE_FILE
