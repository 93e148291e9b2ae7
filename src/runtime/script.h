#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/image.h"
#include "runtime/kernel_abi.h"
#include "runtime/object_code.h"
#include "transport/spmd.h"

namespace hone {

// A Script is an Image after checking: machine code in memory, blocks as jumps, places as pointers
// in one table. The frame that runs the script holds the address of each pointer. Most addresses
// are known when the frame is made, those of inputs and outputs when a run begins; addresses that
// move with a loop are computed before each command.
struct Script {
  // All memory that commands reach, in order: the arena, constants, inputs, outputs.
  struct Base {
    image::Place::Region region;
    uint32_t index;
    int64_t bytes;
  };

  // A place: base + offset, and the strides of steps times the trips of their loops.
  struct Pointer {
    uint32_t base;
    int64_t offset;
    int64_t bytes;
    uint32_t first_step;
    uint32_t last_step;  // one beyond

    bool moves() const { return first_step != last_step; }
  };

  // Phases of all kernels are in one list, kernel by kernel.
  struct Phase {
    PhaseFn function;  // null: the kernel has no object
    int64_t trips;
    bool is_parallel;
  };

  // The command of the image that a launch or a copy comes from.
  struct Origin {
    std::string command;
    std::string kernel;  // empty: a copy
  };

  // Or a message, which has one side.
  struct Collective {
    SpmdCollective collective;
    DType dtype;
    int64_t from_bytes;
    int64_t to_bytes;
    std::string result;
    std::optional<Message> message = {};
  };

  static constexpr uint32_t kNoOrigin = UINT32_MAX;

  struct Instruction {
    enum class Kind : uint8_t {
      launch,        // phases first..last on the pointers from `pointer` on
      copy,          // `count` bytes from `pointer` to the next one
      jump,          // to `target`
      jump_if_zero,  // to `target` if the byte at `pointer` is 0
      enter,         // loop `first` is at trip `count`
      next,          // adds `step` to the trip of loop `first`; to `target`, unless it is `count`
      start,         // collective `first`, from `pointer` to the next one
      send,          // by `first`, what lies at `pointer`
      receive,       // by `first`, to `pointer`
      wait,          // for collective or message `first`
      device_index,  // at `pointer`
    };
    Kind kind;
    uint32_t pointer = 0;
    uint32_t pointers = 0;  // their number, from `pointer` on
    bool moves = false;     // some of its pointers move
    uint32_t target = 0;    // an instruction
    uint32_t first = 0;
    uint32_t last = 0;  // one beyond
    uint32_t symbols = 0;
    uint32_t last_symbol = 0;  // one beyond
    int64_t count = 0;
    int64_t step = 0;
    uint32_t origin = kNoOrigin;
  };

  std::vector<Base> bases;
  uint32_t first_port = 0;                      // the base of the first input
  std::vector<std::optional<uint32_t>> donors;  // by output: the input that it may lie in
  std::vector<Pointer> pointers;
  std::vector<image::Step> steps;
  std::vector<Instruction> instructions;
  std::vector<Origin> origins;
  std::vector<Phase> phases;
  std::vector<Collective> collectives;
  std::vector<int64_t> symbols;
  std::vector<std::shared_ptr<const ObjectCode>> objects;
  uint32_t loops = 0;
  int64_t scratch_bytes = 0;  // per thread, of the kernel that needs most
};

// The parts of the condition that a jump_if_zero reads: ranges of instructions. A loop runs `test`
// and reads again behind each `then`.
struct ScriptCondition {
  struct Range {
    size_t begin = 0, end = 0;
  };
  bool is_loop = false;
  Range test, then, otherwise;  // of a loop; of both; of a branch
  size_t end = 0;               // where it goes on
};
ScriptCondition condition_at(const Script& script, size_t instruction);
// Phases and copies of a run whose loops of known counts are unrolled, and in which each condition
// holds once. INT64_MAX: 64 bits do not count them.
int64_t unrolled_steps(const Script& script);

// The commands are for as many devices as the place has.
Status check_place(const Script& script, const DevicePlace& place);

// The kernels that must have an object. Some: another device runs those that have none.
enum class Objects : uint8_t { of_all, of_some };

// Makes the script. Refuses an image that is malformed, or in which a command could reach beyond
// the memory that it names. The content of a loop of no trips is not checked.
Result<Script> resolve(const Image& image, std::span<const Import> imports,
                       Objects objects = Objects::of_all);

}  // namespace hone
