#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ir/reference/scalar_op.h"
#include "program/tiles/access_counter.h"
#include "program/tiles/interpret.h"
#include "program/tiles/swizzle.h"

// The state of a program that is interpreted, for the files that say what its statements do.

namespace hone::tile {

inline constexpr int64_t kMaxBufferElements = int64_t{1} << 28;
inline constexpr uint32_t kNobody = UINT32_MAX;

// The content of a buffer, and who touched it.
struct BufferState {
  std::vector<ScalarNumber> elements;
  std::vector<bool> is_known;
  // Per element, in this phase: the trip of the threads loops that wrote it, and one that read it.
  std::vector<uint32_t> writer, reader;
  std::vector<bool> is_under_way;  // by a copy that nobody has waited for
  std::vector<bool> is_unfenced;   // stored by a thread: other units do not see it yet
  Ints dims;
  DType dtype;
  bool is_swizzled;
  size_t
      per_thread;  // elements of each thread of a block, which follow each other; 0: all have all

  // `owners` threads have one each; 0: all threads have one together.
  BufferState(const TileBuffer& buffer, int64_t owners)
      : elements(static_cast<size_t>(buffer.type.static_elements() * std::max<int64_t>(owners, 1))),
        is_known(elements.size()),
        writer(elements.size(), kNobody),
        reader(elements.size(), kNobody),
        is_under_way(elements.size()),
        is_unfenced(elements.size()),
        dims(buffer.type.static_dims()),
        dtype(buffer.type.dtype()),
        is_swizzled(buffer.is_swizzled),
        per_thread(owners == 0 ? 0 : static_cast<size_t>(buffer.type.static_elements())) {}
  void next_phase() {
    std::ranges::fill(writer, kNobody);
    std::ranges::fill(reader, kNobody);
  }
};

// The phases of an mbarrier.
struct Mbarrier {
  int64_t arrivals = 0;  // of a phase
  int64_t missing = 0;   // of them, in this phase
  int64_t bytes = 0;     // that have to come in it; below 0: that came before they were expected
  int64_t ended = 0;     // phases
  uint32_t maker = 0;    // agent
  std::optional<uint32_t> waited = {};  // epoch in which threads waited last

  void try_end() {
    if (missing > 0 || bytes != 0) return;
    ++ended;
    missing = arrivals;
  }
  bool has_ended(int64_t parity) const { return ended % 2 != parity; }
};

class Interpreter {
 public:
  Interpreter(const TileProgram& program, const InterpretOptions& options);
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);

 private:
  using MbarrierPlace = std::pair<BufferId, size_t>;
  // A box that is copied.
  struct Box {
    BufferId to = 0;
    std::pair<BufferId, size_t> barrier = {};
    std::vector<size_t> places = {};
    std::vector<ScalarNumber> numbers = {};
    std::optional<int64_t> phase = {};  // of its mbarrier, in which it has come
  };
  // In a phase of blocks loops a trip is an agent: a thread between two barriers.
  struct Agent {
    uint32_t block = 0, epoch = 0, thread = 0;
  };
  // An element that is copied in the background.
  struct Copied {
    BufferId buffer = 0;
    size_t element = 0;
    int64_t thread = 0, group = 0;
  };

  // ---- Memory, statements of a thread, and loops (interpret.cc) ---------------------------------
  static void forget(BufferState& memory);
  Status read(std::span<const Tensor> inputs);
  Result<std::vector<Tensor>> outputs() const;
  std::optional<size_t> element(const std::vector<IndexExpr>& index,
                                const std::vector<Guard>& guards, const BufferState& memory) const;
  int64_t most_threads() const;
  bool is_contended(BufferId buffer, uint32_t other) const;
  Error contention(BufferId buffer, size_t element) const;
  Status execute(const Block& body);
  Status execute(const Number& s);
  Status execute(const Position& s);
  Status execute(const Compute& s);
  Status execute(const Fma& s);
  Status execute(const Quad& s);
  Status execute(const Pair& s);
  Status execute(const Choose& s);
  Status execute(const Load& s);
  Result<uint32_t> read_word(BufferId buffer, size_t at);
  Status read(BufferId buffer, size_t at, ScalarNumber& number);
  Status execute(const Store& s);
  static double half(const ScalarNumber& word, bool is_second);
  void add_products(const Product& s, const ScalarNumber& lhs, const ScalarNumber& rhs,
                    ScalarNumber& sum) const;
  Status execute(const Product& s);
  Status execute(const KernelWait& /*s*/) { return {}; }
  void note(const void* statement, BufferId buffer, size_t element, int64_t count = 1);
  Status execute(const Loop& s);
  void forget_scratch();

  // ---- What the threads of a block do together (interpret_blocks.cc) ----------------------------
  Status execute(const Barrier& /*s*/);
  Status execute(const WarpCombine& s);
  Status execute(const BlockVote& s);
  Error not_waited(BufferId buffer, size_t element) const;
  Status execute(const AsyncCopy& s);
  Status execute(const CopyGroup& /*s*/);
  Status execute(const CopyWait& s);
  Status no_copies_left() const;
  Status execute(const MatrixLoad& s);
  Status execute(const WarpProduct& s);
  Status multiply(const WarpProduct& s, int64_t warp);
  double next_sum(double exact) const;
  Result<ScalarNumber*> factor(BufferId buffer, std::vector<IndexExpr> index, int64_t warp,
                               LanePlace place);
  static double part_of(DType numbers, uint32_t word, int part);
  Status run_threads(const Loop& s);
  void start_block();

  // ---- Copies and products on Hopper (interpret_groups.cc) --------------------------------------
  void be_unit(int64_t number);
  Result<Mbarrier*> mbarrier(const MbarrierPlace& place, bool is_own_thread);
  MbarrierPlace place_of(BufferId buffer, const std::vector<IndexExpr>& index) const;
  Status execute(const MbarrierInit& s);
  Status execute(const MbarrierExpect& s);
  Status execute(const TensorCopy& s);
  ScalarNumber number_of_box(const TensorCopy& s, int64_t row, int64_t column) const;
  Status check_unit(BufferId buffer, size_t at, bool writes) const;
  void land(Box& box);
  Status execute(const MbarrierWait& s);
  Status execute(const ProxyFence& /*s*/);
  Status execute(const GroupProduct& s);
  Result<std::vector<double>> lines_of(BufferId buffer, const std::vector<IndexExpr>& index,
                                       int64_t first, int64_t lines, bool is_across);
  Result<ScalarNumber*> group_sum(const GroupProduct& s, int64_t thread, int64_t number);

  const TileProgram& program_;
  const InterpretOptions& options_;
  std::vector<BufferState> memories_;
  std::vector<ScalarNumber> scalars_;
  std::vector<int64_t> indices_;
  std::vector<std::optional<BufferId>> output_in_;  // by input: the output that may lie in it
  std::map<const Compute*, ScalarOp> ops_;
  std::vector<ScalarNumber> operands_;
  uint32_t trip_ = 0;  // of the threads loops of the phase, counted over all of them
  std::vector<Agent> agents_;
  int64_t block_threads_ = 0;  // 0: the phase has no blocks loops
  uint32_t block_ = 0, epoch_ = 0;
  int64_t thread_ = 0;
  size_t thread_index_ = 0;                              // of the threads loop that a block runs
  std::vector<Copied> copies_;                           // under way
  int64_t groups_ = 0;                                   // of copies that are closed
  static constexpr uint32_t kUnits = uint32_t{1} << 16;  // no threads of a block
  std::vector<Box> boxes_;                               // that are copied
  std::map<MbarrierPlace, Mbarrier> mbarriers_;          // of the block
  AccessCounter counter_;
  Rng rng_;
  int64_t statements_ = 0;
};

}  // namespace hone::tile
