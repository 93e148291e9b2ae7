#include <gtest/gtest.h>

#include "oracle/compare.h"
#include "program/tiles/interpret.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"

// Loops that run side by side: what the interpreter does one trip after another, vectors do at
// once.

namespace hone::HONE_FILE {
namespace {

using tested::says;

// Small whole numbers, of which sums and products are exact in every type.
Tensor pattern(Type type) {
  std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int64_t>((i * 7 + i / 5) % 5) - (is_signed(type.dtype()) ? 2 : 0);
  if (!is_real(type.dtype())) return Tensor::from_integers(type, numbers);
  const std::vector<double> reals(numbers.begin(), numbers.end());
  return Tensor::from_reals(type, reals);
}

void check(std::string_view text) {
  SCOPED_TRACE(text);
  Result<TileProgram> program = parse_tiles(text);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  std::vector<Tensor> inputs;
  for (const TileBuffer& buffer : program->buffers)
    if (buffer.role == BufferRole::input) inputs.push_back(pattern(buffer.type));
  Result<std::vector<Tensor>> expected = interpret(*program, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  for (const Target& target : host_targets()) {
    SCOPED_TRACE(name(target.isa));
    Result<std::vector<Tensor>> actual = run_native(*program, inputs, target, 2);
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (size_t i = 0; i < expected->size(); ++i)
      EXPECT_TRUE((*actual)[i].same_bytes((*expected)[i]))
          << compare((*actual)[i], (*expected)[i], {}).value().to_string()
          << compile_tiles(*program, target, "kernel", CodeForm::mlir).value();
  }
}

// The code that one condition decides is behind one branch.
TEST(Lockstep, PointsWithOneConditionBranchOnce) {
  constexpr std::string_view kText =
      R"(tiles @parts(@a: f32[3, 4, 16], @b: f32[2, 4, 16]) -> (@y: f32[5, 4, 16]) {
    threads t in 1 {
      for c in 5 {
        unroll i in 4 {
          lanes j in 16 {
            %zero = number 0: f32
            %0 = load @b[c - 3, i, j] if 0 <= c - 3 < 2 else %zero
            %1 = load @a[c, i, j] if 0 <= c < 3 else %0
            store @y[c, i, j] = %1
          }
        }
      }
    }
  })";
  check(kText);
  const std::string code =
      compile_tiles(parse_tiles(kText).value(), host_targets()[0], "k", CodeForm::mlir).value();
  size_t branches = 0;
  for (size_t at = code.find("scf.if"); at != std::string::npos; at = code.find("scf.if", at + 1))
    ++branches;
  EXPECT_EQ(branches, 2u) << code;
}

// Conditions that differ from point to point, and points that one of them decides for.
TEST(Lockstep, ConditionsOfSomeOfTheLoops) {
  check(R"(tiles @padded(@x: f32[4, 5, 8]) -> (@y: f32[6, 6, 8]) {
    threads t in 3 {
      unroll i in 2 {
        unroll k in 6 {
          lanes j in 8 {
            %zero = number 0: f32
            %0 = load @x[2*t + i - 1, k, j] if 0 <= 2*t + i - 1 < 4 and 0 <= k < 5 else %zero
            store @y[2*t + i, k, j] = %0
          }
        }
      }
    }
  })");
}

TEST(Lockstep, RegisterTileOfAProduct) {
  check(R"(tiles @gemm(@p: f32[9, 6], @w: f32[9, 32]) -> (@y: f32[6, 32]) {
    threads t in 3 {
      unroll i in 2 {
        lanes j in 32 {
          %zero = number 0: f32
          %sum = for k in 9 carry (%acc = %zero by add) {
            %a = load @p[k, 2*t + i]
            %b = load @w[k, j]
            %next = fma %a, %b, %acc
            yield %next
          }
          store @y[2*t + i, j] = %sum
        }
      }
    }
  })");
}

TEST(Lockstep, LanesThatReduce) {
  for (const char* count : {"8", "16", "12", "7"})
    for (const char* kind : {"add", "max", "min", "mul"})
      check(fmt::format(R"(tiles @r(@x: f32[3, 5, {0}]) -> (@y: f32[3]) {{
        threads i in 3 {{
          %first = number 1: f32
          %all = lanes j in {0} carry (%a = %first by {1}) {{
            %part = for k in 5 carry (%b = %a by {1}) {{
              %x = load @x[i, k, j]
              %n = {1} %b, %x
              yield %n
            }}
            yield %part
          }}
          store @y[i] = %all
        }}
      }})",
                        count, kind));
}

TEST(Lockstep, UnrolledTripsThatReduce) {
  check(R"(tiles @r(@x: i32[4, 24]) -> (@y: i32[8]) {
    lanes j in 8 {
      %zero = number 0: i32
      %all = unroll u in 3 carry (%a = %zero by add) {
        %part = for k in 4 carry (%b = %a by add) {
          %x = load @x[k, 8*u + j]
          %n = add %b, %x
          yield %n
        }
        yield %part
      }
      store @y[j] = %all
    }
  })");
}

// A machine without scatters takes each lane on its own. A block of code for each of them once made
// LLVM take a minute for such a kernel.
TEST(Lockstep, ScatteredLanesThatAreShutMakeNoBlocks) {
  HONE_ONE_RUN_OF(3);
  const std::string_view text = R"(tiles @s(@x: f32[40, 32], @w: f32[40, 32]) -> (@y: f32[40, 32]) {
    for b in 1 {
      %zero = number 0: f32
      unroll i in 32 {
        lanes j in 64 {
          %x = load @x[64*b + j, i] if 0 <= 64*b + j < 40 else %zero
          %w = load @w[64*b + j, i] if 0 <= 64*b + j < 40 else %x
          %n = add %x, %w
          store @y[64*b + j, i] = %n if 0 <= 64*b + j < 40
        }
      }
    }
  })";
  check(text);
  for (const Target& target : host_targets()) {
    const std::string code =
        compile_tiles(parse_tiles(text).value(), target, "kernel", CodeForm::assembly).value();
    size_t blocks = 0;
    for (size_t at = code.find("\n.L"); at != std::string::npos; at = code.find("\n.L", at + 1))
      ++blocks;
    EXPECT_LT(blocks, 200) << name(target.isa);  // of 2,048 lanes
  }
}

TEST(Lockstep, ElementsOfEveryType) {
#define HONE_DTYPE(id, text, bits, kind, storage_only) \
  check(fmt::format(R"(tiles @c(@x: {0}[3, 20]) -> (@y: {0}[20, 3], @z: {0}[3, 20]) {{
    for i in 3 {{
      for b in 2 {{
        lanes j in 16 {{
          %zero = number 0: {0}
          %x = load @x[i, 16*b + j] if 0 <= 16*b + j < 20 else %zero
          store @y[16*b + j, i] = %x if 0 <= 16*b + j < 20
          store @z[i, 16*b + j] = %x if 0 <= 16*b + j < 20
        }}
      }}
    }}
  }})",                                                \
                    text));
#include "tensor/dtypes.def"
}

TEST(Lockstep, IndicesFromData) {
  check(R"(tiles @g(@x: f32[6, 4], @i: i64[20]) -> (@y: f32[20, 4]) {
    for b in 3 {
      lanes j in 8 {
        %zero = number 0: i64
        %at = load @i[8*b + j] if 0 <= 8*b + j < 20 else %zero
        index row in 0..5 = %at
        for c in 4 {
          %x = load @x[row, c]
          store @y[8*b + j, c] = %x if 0 <= 8*b + j < 20
        }
      }
    }
  })");
}

// The last lane is the last element: nothing beyond it may be read.
TEST(Lockstep, LanesThatLieInAFewVectors) {
  for (const char* type : {"f32", "f64", "i8", "bf16"})
    for (const char* at : {"2*j", "3*j", "4*j", "5*j", "45 - 3*j", "4*floordiv(j, 4) + k",
                           "16*mod(j, 3)", "floordiv(j, 5) + 7*mod(j, 5)"})
      check(fmt::format(R"(tiles @g(@x: {0}[3, 80]) -> (@y: {0}[3, 4, 16]) {{
        for i in 3 {{
          for k in 4 {{
            lanes j in 16 {{
              %x = load @x[i, {1}]
              store @y[i, k, j] = %x
            }}
          }}
        }}
      }})",
                        type, at));
}

TEST(Lockstep, GuardsOfLoopsAroundAndOfLanes) {
  check(R"(tiles @pad(@x: f32[5, 13]) -> (@y: f32[8, 16]) {
    threads i in 2 {
      unroll u in 4 {
        lanes j in 16 {
          %edge = number 9: f32
          %x = load @x[4*i + u - 1, j - 2] if 1 <= 4*i + u < 6 and 2 <= j < 15 else %edge
          store @y[4*i + u, j] = %x
        }
      }
    }
  })");
}

// The second half of what row u loads lies where the first half of row u + 1 does; all of its lanes
// are masked out.
TEST(Lockstep, MaskedLoadsThatMeet) {
  check(R"(tiles @w(@x: f32[8, 8]) -> (@y: f32[8, 2]) {
    for i in 8 {
      unroll u in 2 {
        %zero = number 0: f32
        %sum = unroll r in 2 carry (%s = %zero by add) {
          %part = lanes j in 16 carry (%a = %s by add) {
            %x = load @x[u + r, i + j - 1] if 0 <= j < 3 and 0 <= i + j - 1 < 8 else %zero
            %n = add %a, %x
            yield %n
          }
          yield %part
        }
        store @y[i, u] = %sum
      }
    }
  })");
}

// LLVM unrolls both loops, and then would select instructions for half an hour.
TEST(Lockstep, MaskedStoresOfOneLane) {
  check(R"(tiles @fill() -> (@y: f32[16, 64, 1]) {
    for i in 16 {
      for j in 64 {
        lanes k in 32 {
          %one = number 1: f32
          store @y[i, j, k] = %one if 0 <= k < 1
        }
      }
    }
  })");
}

// A gather of one place for all lanes, hoisted out of loops, was no valid code of LLVM's.
TEST(Lockstep, LanesThatReadOnePlace) {
  check(R"(tiles @conv(@x: i8[4, 4], @w: i8[4, 2, 2]) -> (@y: i8[4, 12]) {
    for i in 4 {
     %o = number 0: i8
     unroll u in 6 {
      lanes l in 2 {
       %sum = for c in 2 carry (%a = %o by add) {
        %row = for r in 2 carry (%b = %a by add) {
         %p = position r + u - 1: i64
         index at in 0..3 = %p
         %x = load @x[c + 2*floordiv(i, 2), at] if 0 <= l < 1 and 0 <= 2*u + l + 2*r - 2 < 7 else %o
         %w = load @w[i, c, r]
         %m = mul %x, %w
         %n = add %b, %m
         yield %n
        }
        yield %row
       }
       store @y[i, 2*u + l] = %sum
      }
     }
    }
  })");
}

TEST(Lockstep, LanesThatWriteOnePlace) {
  check(R"(tiles @last(@x: f32[3, 8]) -> (@y: f32[3]) {
    for i in 3 {
      lanes l in 8 {
        %x = load @x[i, l]
        store @y[i] = %x if 5 <= l < 6
      }
    }
  })");
}

TEST(Lockstep, DivisionsOfTheLane) {
  check(R"(tiles @reshape(@x: f32[4, 6]) -> (@y: f32[24]) {
    for b in 3 {
      lanes j in 8 {
        %x = load @x[floordiv(8*b + j, 6), mod(8*b + j, 6)]
        store @y[8*b + j] = %x
      }
    }
  })");
}

// The guard is about 2*u + l, which stands as u + floordiv(l, 2) where it matters.
TEST(Lockstep, QuotientsWithinGuards) {
  check(R"(tiles @blocked(@x: f32[6]) -> (@y: f32[2, 3]) {
    for b in 2 {
      unroll u in 2 {
        lanes l in 2 {
          %none = number 0: f32
          %x = load @x[3*b + 2*u + l] if 0 <= 2*u + l < 3 else %none
          store @y[mod(3*b + l, 2), u + floordiv(3*b + l, 2)] = %x if 0 <= 2*u + l < 3
        }
      }
    }
  })");
}

TEST(Lockstep, ScratchAndPositions) {
  check(R"(tiles @s(@x: i32[4, 8]) -> (@y: i32[4, 8]) {
    scratch @a: i32[8]
    scratch @b: i32[8]
    threads i in 4 {
      lanes j in 8 {
        %x = load @x[i, j]
        %p = position 7 - j: i32
        %n = mul %x, %p
        store @a[7 - j] = %n
        store @b[j] = %x
      }
      lanes k in 8 {
        %u = load @a[k]
        %v = load @b[k]
        %n2 = sub %u, %v
        store @y[i, k] = %n2
      }
    }
  })");
}

TEST(Lockstep, WhatCodeCannotDoIsRefused) {
  const Target host = host_target().value();
  auto complaint = [&](std::string_view text) {
    return compile_tiles(parse_tiles(text).value(), host, "kernel").error().what();
  };
  EXPECT_THAT(complaint(R"(tiles @k(@x: f32[4, 4]) -> (@y: f32[4, 4]) {
    lanes i in 4 { lanes j in 4 {
 %x = load @x[i, j]
 store @y[i, j] = %x
 } }
  })"),
              says("lanes loop j"));
}

}  // namespace
}  // namespace hone::HONE_FILE
