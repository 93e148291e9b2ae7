#include "cost/kernel_nest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/op_facts.h"
#include "kernel/algorithms/algorithm.h"
#include "kernel/contraction.h"
#include "kernel/matrix.h"
#include "target/estimate.h"

namespace hone {
namespace {

// The number of places in a page that lines `stride` bytes apart take, if that is a page or more.
// Infinite: they are nearer.
double places_in_pages(double stride) {
  if (!(std::abs(stride) >= kPage)) return std::numeric_limits<double>::infinity();
  double places = 1;
  while (places < kPage / kLine && std::fmod(stride * places, kPage) != 0) places *= 2;
  return places;
}

// A reduction by max or min of reals, of which one may be NaN: a comparison, a choice, and the op.
constexpr double kWithNan = 3;

double slots_of_step(const Graph& graph, NodeId node, DType dtype) {
  const Op& op = graph.op(node);
  const bool is_fold = combines_by_kind(op.opcode());
  if (!is_fold || !is_real(dtype)) return slots_of(op.opcode(), dtype);
  const Opcode combine = combine_of(op.word("kind"));
  return picks_one(combine) ? kWithNan : slots_of(op.opcode(), dtype);
}

constexpr double kWiden = 1;  // slots to make f32 of f16 or bf16; panels have it as f32
// A number that all lanes share, such as the scale of a block, is unpacked by scalar instructions
// beside those of vectors. They take this part of the time of these.
constexpr double kUnpackShared = 0.25;
// Longer, where the numbers in a byte do not come out side by side: shifts are by what a loop says,
// and each trip waits for it.
constexpr double kFieldByField = 2;

// The slots that a core takes for a vector multiply-add of numbers of a type that has a peak.
double seconds_of_vector(const Target& target, DType type) {
  return 2 * (vector_bytes(target.isa) * 8 / bits(type)) / target.peak(type);
}

}  // namespace

double KernelTerms::total() const {
  const double largest = std::max({arithmetic, access, latency, memory});
  const double hidden = std::max(arithmetic, latency) + access + memory - largest;
  return largest + not_hidden * hidden + overhead + fork_join;
}

std::vector<PriceTerm> KernelTerms::named() const {
  return {{"arithmetic", arithmetic}, {"access", access},     {"latency", latency},
          {"memory", memory},         {"overhead", overhead}, {"fork_join", fork_join}};
}

KernelPrice::KernelPrice(const KernelFacts& facts, const Target& target, const Prices& prices,
                         int64_t threads)
    : KernelPrice(facts, target, prices, threads, facts.body.window) {}

KernelPrice::KernelPrice(const KernelFacts& facts, const Target& target, const Prices& prices,
                         int64_t threads, std::span<const int64_t> window,
                         std::span<const ValueId> held)
    : target_(target),
      prices_(prices),
      threads_(static_cast<double>(threads)),
      loops_(facts.loops),
      parallel_(facts.space.parallel),
      is_whole_(window.empty()) {
  const Graph& graph = facts.body.graph;
  int widest = 4;
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    widest = std::max(widest, bits(graph.type(ValueId{v}).dtype()) / 8);
  vector_ = vector_bytes(target.isa) / widest;
  registers_ = target.isa == Isa::avx512 ? 32 : 16;
  slot_ = seconds_of_vector(target, DType::f32);
  for (size_t d = 0; d < std::min(window.size(), loops_.size()); ++d)
    loops_[d].extent = static_cast<double>(window[d]);
  if (facts.contraction.ok()) {
    const NodeId anchor = facts.space.anchor;
    if (const auto words = word_products(graph, anchor, relation_of(graph, anchor))) {
      word_loop_ = words->iter + parallel_ - graph.type(graph.result(anchor)).rank();
      in_word_ = static_cast<double>(words->each());
    }
    matrix_ = matrix_numbers(graph, anchor);
  }
  add_work(facts);
  add_accesses(facts, held);
  if (!window.empty())
    for (Access& access : accesses_) access.bytes = part_in_window(access);
  find_fields();
  for (const Access& access : accesses_) bytes_ += access.is_field ? 0 : access.bytes;
  for (const Work& work : work_) work_slots_ += slots_alone(work);
  in_order_ = part_in_order(facts);
  of_kernel_ = features_of_kernel(facts);
  for (Algorithm algorithm : kAlgorithms)
    if (const AlgorithmDef& def = def_of(algorithm); !def.is_for_gpu())
      roles_[static_cast<size_t>(algorithm)] = def.roles(facts);
}

// ---- Facts, as the target sees them ------------------------------------------------------------

namespace {

// For each node the operand of the contraction that alone needs it; -1: none, or others need it.
std::vector<int> sides_of(const KernelFacts& facts) {
  constexpr int kUnknown = -2;
  const Graph& graph = facts.body.graph;
  std::vector<int> sides(graph.node_count(), -1);
  if (!facts.contraction.ok()) return sides;
  std::vector<int> of_value(graph.value_count(), kUnknown);
  for (ValueId v : graph.outputs()) of_value[v.index] = -1;
  for (size_t i = graph.node_count(); i-- > 0;) {
    const NodeId n{static_cast<uint32_t>(i)};
    int side = kUnknown;
    for (ValueId v : graph.results(n)) {
      const int other = of_value[v.index];
      if (other != kUnknown) side = side == kUnknown || side == other ? other : -1;
    }
    sides[i] = side == kUnknown ? -1 : side;
    const std::span<const ValueId> operands = graph.operands(n);
    for (size_t o = 0; o < operands.size(); ++o) {
      if (operands[o].is_none()) continue;
      int& known = of_value[operands[o].index];
      const int needed = n == facts.space.anchor ? static_cast<int>(o) : sides[i];
      known = known == kUnknown || known == needed ? needed : -1;
    }
  }
  return sides;
}

}  // namespace

void KernelPrice::add_work(const KernelFacts& facts) {
  const Graph& graph = facts.body.graph;
  const std::vector<int> sides = sides_of(facts);
  for (const KernelFacts::Arithmetic& each : facts.arithmetic) {
    const DType dtype = graph.type(graph.result(each.node)).dtype();
    const double slots = slots_of_step(graph, each.node, dtype) * slots_in(dtype);
    if (slots == 0) continue;
    const int side = sides[each.node.index];
    if (side >= 0) is_made_[static_cast<size_t>(side)] = true;
    const auto known = std::ranges::find_if(work_, [&](const Work& work) {
      return work.loops == each.loops && work.cut == each.cut && work.share == each.share &&
             work.side == side && !work.is_sum && !each.is_sum;
    });
    if (known == work_.end())
      work_.push_back({each.loops, slots, each.is_sum, each.cut, each.share, side});
    else
      known->slots += slots;
  }
}

// Counts all points, one after another.
double KernelPrice::slots_alone(const Work& work) const {
  double slots = work.slots * work.share;
  for (Loops left = work.loops; left != 0; left &= left - 1)
    slots *= std::max(loops_[static_cast<size_t>(std::countr_zero(left))].extent, 1.0);
  return slots;
}

// To its access relation each update of a scatter may be any result's. Its code copies the operand,
// vector by vector, and goes through the updates once.
double KernelPrice::part_in_order(const KernelFacts& facts) const {
  const Graph& graph = facts.body.graph;
  const NodeId anchor = graph.producer(graph.outputs()[0]);
  if (class_of(graph.opcode(anchor)) != OpClass::ordered) return 1;
  double points = 1;
  for (const KernelFacts::Loop& loop : loops_) points *= std::max(loop.extent, 1.0);
  const auto elements = [&](ValueId value) {
    double product = 1;
    for (const Dim& dim : graph.type(value).dims())
      product *= static_cast<double>(dim.range().high);
    return product;
  };
  const double results = elements(graph.outputs()[0]);
  double others = 0;
  for (const ValueId operand : graph.operands(anchor).subspan(1))
    if (!operand.is_none()) others += elements(operand);
  return points > 2 * results + others ? (results / vector_ + others) / points : 1;
}

// The largest arrays decide.
void KernelPrice::add_accesses(const KernelFacts& facts, std::span<const ValueId> held) {
  const Graph& graph = facts.body.graph;
  std::vector<double> bytes;
  for (const KernelFacts::Array& array : facts.arrays) bytes.push_back(array.bytes);
  std::ranges::sort(bytes, std::greater<>());
  const double least = bytes.size() > kMaxAccesses ? bytes[kMaxAccesses - 1] : 0;
  for (const KernelFacts::Array& array : facts.arrays)
    if (array.bytes >= least && accesses_.size() < kMaxAccesses) {
      accesses_.push_back(access_of(array));
      const DType dtype = graph.type(array.value).dtype();
      accesses_.back().is_widened = array.side >= 0 && is_real(dtype) && bits(dtype) == 16;
      accesses_.back().is_held = std::ranges::find(held, array.value) != held.end();
    }
}

// Packed weights are blocks of several fields: scales, and bytes of numbers. Whoever reads a block
// has the lines of all of its fields.
void KernelPrice::find_fields() {
  for (const Access& access : accesses_)
    if (is_made(access.side) && access.element == 1)
      is_packed_[static_cast<size_t>(access.side)] = true;
  const auto loops = [](const Access& access) { return std::popcount(access.loops); };
  for (Access& access : accesses_)
    access.is_field =
        is_packed(access.side) && std::ranges::any_of(accesses_, [&](const Access& other) {
          const bool is_wider =
              loops(other) > loops(access) || (loops(other) == loops(access) && &other < &access);
          return &other != &access && other.side == access.side && other.value == access.value &&
                 is_wider;
        });
  Loops all = 0;
  for (const Work& work : work_)
    if (is_packed(work.side)) all |= work.loops;
  for (const Access& access : accesses_)
    if (is_packed(access.side) && access.element == 1 && !access.is_field)
      fields_ |= all & ~access.loops & ~((1U << parallel_) - 1);
}

// Slots of making numbers of packed weights, each time.
double KernelPrice::slots_of_unpacking(const Nest& nest, const Work& work) const {
  const bool is_shared = nest.lanes >= 0 && (work.loops >> nest.lanes & 1) == 0;
  const double slots = work.slots * (is_shared ? kUnpackShared : 1);
  for (Loops left = work.loops & fields_; left != 0; left &= left - 1) {
    const auto l = static_cast<size_t>(std::countr_zero(left));
    if (nest.tile[l] < loops_[l].extent) return slots * kFieldByField;
  }
  return slots;
}

KernelPrice::Access KernelPrice::access_of(const KernelFacts::Array& array) const {
  Access access = {.loops = array.loops,
                   .element = array.element,
                   .bytes = array.bytes,
                   .is_store = array.is_store,
                   .value = array.value.index,
                   .side = array.side,
                   .run = array.run,
                   .jump = array.jump,
                   .jump_places = places_in_pages(array.jump * array.element),
                   .guards = array.guards,
                   .uncut = array.uncut,
                   .cut = array.cut,
                   .share = array.share,
                   .steps = array.steps};
  // Words lie beside each other.
  if (word_loop_ && array.side >= 0 && access.run == in_word_) access.run = kLine / access.element;
  for (size_t l = 0; l < loops_.size(); ++l) {
    access.along[l].stride = array.stride[l];
    look_along(l, array.first[l], access);
    // Data decides where the next one lies.
    if ((array.data >> l & 1) != 0 && access.along[l].stride == 0)
      access.along[l].stride = std::numeric_limits<double>::quiet_NaN();
    if (access.along[l].stride == 1) access.contiguous |= 1U << l;
    access.along[l].places = places_in_pages(access.along[l].stride * access.element);
    if ((access.loops >> l & 1) != 0 && std::abs(access.along[l].stride) > 0)  // not a NaN
      access.ascending[access.ascending_count++] = static_cast<uint8_t>(l);
  }
  find_near(access);
  access.elsewhere = reductions_beside(access.loops);
  std::ranges::sort(std::span(access.ascending).first(access.ascending_count), {},
                    [&](uint8_t l) { return std::abs(access.along[l].stride); });
  return access;
}

// All that coefficients decide about an array before there is a schedule.
void KernelPrice::find_near(Access& access) const {
  access.near = 0;
  for (size_t l = 0; l < loops_.size(); ++l)
    if (access.along[l].span <= prices_.near_vectors * vector_) access.near |= 1U << l;
}

void KernelPrice::reprice(const Prices& prices) {
  prices_ = prices;
  for (Access& access : accesses_) find_near(access);
}

// Loops of reductions that run before or after what these loops are around. Without a loop of a
// reduction it may stand in any.
KernelPrice::Loops KernelPrice::reductions_beside(Loops loops) const {
  Loops within = 0, all = 0;
  for (size_t l = 0; l < loops_.size(); ++l) {
    if (loops_[l].is_result) continue;
    all |= 1U << l;
    if ((loops >> l & 1) != 0) within |= loops_[l].together | loops_[l].around;
  }
  return within == 0 ? 0 : all & ~within;
}

// Where a vector's elements lie.
void KernelPrice::look_along(size_t loop, const std::vector<double>& first, Access& access) const {
  const double count = std::min(vector_, loops_[loop].extent);
  access.along[loop].repeat = 1;
  access.along[loop].span = std::abs(access.along[loop].stride) * (count - 1) + 1;
  if (!std::isnan(access.along[loop].stride)) return;
  access.along[loop].span = std::numeric_limits<double>::infinity();
  if (first.empty() || static_cast<double>(first.size()) < count) return;
  const auto vector = std::span(first).first(static_cast<size_t>(std::ceil(count)));
  const auto [low, high] = std::ranges::minmax(vector);
  access.along[loop].span = high - low + 1;
  const auto other = std::ranges::find_if(vector, [&](double at) { return at != vector[0]; });
  access.along[loop].repeat = static_cast<double>(other - vector.begin());
}

double KernelPrice::slots_in(DType type) const {
  const bool is_computed_in_it = bits(type) >= 32 && target_.peak(type) > 0;
  return is_computed_in_it ? seconds_of_vector(target_, type) / slot_ : 1;
}

// ---- Terms -------------------------------------------------------------------------------------

KernelTerms KernelPrice::terms(const Schedule& schedule) const {
  return terms(schedule, std::numeric_limits<double>::infinity(), nullptr);
}

KernelTerms KernelPrice::describe(const Schedule& schedule, Features& features) const {
  features = of_kernel_;
  return terms(schedule, std::numeric_limits<double>::infinity(), &features);
}

KernelTerms KernelPrice::terms(const Schedule& schedule, double limit, Features* features) const {
  switch (schedule.algorithm()) {
#define HONE_ALGORITHM(member, ...) \
  case Algorithm::member: return price_##member(schedule, limit, features);
#include "kernel/algorithms.def"
  }
  return {};
}

KernelTerms KernelPrice::price_generic(const Schedule& schedule, double limit,
                                       Features* features) const {
  if (in_order_ == 1) return price_nest(schedule, limit, features);
  KernelTerms terms = price_nest(schedule, std::numeric_limits<double>::infinity(), features);
  for (double* term : {&terms.arithmetic, &terms.access, &terms.latency, &terms.overhead})
    *term *= in_order_;
  terms.memory = memory_seconds();
  return terms;
}

KernelTerms KernelPrice::price_nest(const Schedule& schedule, double limit,
                                    Features* features) const {
  Nest nest = nest_of(schedule);
  add_nest(schedule, nest);
  return price_loops(schedule, nest, limit, features);
}

KernelTerms KernelPrice::price_gemm(const Schedule& schedule, double limit,
                                    Features* features) const {
  Nest nest = nest_of(schedule);
  add_gemm(schedule, nest);
  return price_loops(schedule, nest, limit, features);
}

// Its stages are priced one by one (analytic_kernel.h).
KernelTerms KernelPrice::price_chain(const Schedule& /*schedule*/, double /*limit*/,
                                     Features* /*features*/) const {
  HONE_CHECK(false, "a chain is priced as one nest");
}

#define HONE_FOR_GPU_ALONE(algorithm)                                                    \
  KernelTerms KernelPrice::price_##algorithm(const Schedule&, double, Features*) const { \
    HONE_CHECK(false, "blocks of threads are priced for a CPU");                         \
  }
HONE_FOR_GPU_ALONE(block_rows)
HONE_FOR_GPU_ALONE(block_tiles)
HONE_FOR_GPU_ALONE(block_winograd)
HONE_FOR_GPU_ALONE(block_chain)
HONE_FOR_GPU_ALONE(block_scan)
HONE_FOR_GPU_ALONE(block_sort)
HONE_FOR_GPU_ALONE(block_scatter)
HONE_FOR_GPU_ALONE(block_sums)
HONE_FOR_GPU_ALONE(block_copy)
#undef HONE_FOR_GPU_ALONE

// Lanes of a reduction come together once for each result, by halves.
double KernelPrice::slots_of_folding(const Nest& nest, const Work& work) const {
  if (!work.is_sum || nest.lanes < parallel_ || (work.loops >> nest.lanes & 1) == 0) return 0;
  const Loops results = work.loops & ((1U << parallel_) - 1);
  return runs(nest, results) * std::log2(nest.lane_count) * (prices_.transpose + work.slots);
}

// On average. A loop whose tiles do not divide its extent ends with a smaller one, which is a phase
// of its own: threads wait for each other before it.
double KernelPrice::threads_at_work(const Nest& nest, int divided) const {
  struct Phase {
    double trips = 1;  // that threads share
    double work = 1;   // in trips of a whole tile
  };
  std::array<Phase, 1 << kMaxDivided> phases;
  size_t count = 1;
  for (int t = 0; t < divided; ++t) {
    const double trips = nest.steps[static_cast<size_t>(t)].trips;
    const double whole = std::floor(trips), rest = trips - whole;
    const bool has_both = whole > 0 && rest > 0 && 2 * count <= phases.size();
    for (size_t p = 0; p < count; ++p) {
      if (has_both) phases[count + p] = {phases[p].trips, phases[p].work * rest};
      phases[p].trips *= has_both ? whole : std::ceil(trips);
      phases[p].work *= has_both ? whole : trips;
    }
    if (has_both) count *= 2;
  }
  double all = 0, alone = 0;
  for (size_t p = 0; p < count; ++p) {
    all += phases[p].work;
    alone += phases[p].work * std::ceil(phases[p].trips / threads_) / phases[p].trips;
  }
  return all / alone;
}

KernelTerms KernelPrice::price_loops(const Schedule& schedule, Nest& nest, double limit,
                                     Features* features) const {
  Counted counted;
  // Prices the work of reductions in each trip, and around them: code that stands apart is read
  // apart.
  struct Place {
    double slots = 0, loaded = 0, code = 0;
  };
  std::array<Place, 2> places;
  const auto place_of = [&](Loops loops) -> Place& {
    return places[(loops >> parallel_) != 0 ? 1 : 0];
  };
  double latency = 0, trips = 1;
  // Registers of what sums side by side have in common, and of a number that goes to all lanes,
  // which AVX-512 takes from memory.
  double shared = 1, to_all = 0;
  for (const Access& access : accesses_) {
    if (access.side < 0 || nest.lanes < 0) continue;
    if ((access.loops >> nest.lanes & 1) != 0)
      shared = std::max(shared, side_by_side(nest, access.loops) / repeats(nest, access));
    else if (target_.isa != Isa::avx512)
      to_all = 1;
  }
  for (const Work& work : work_) {
    if (work.side >= 0 && nest.packings[static_cast<size_t>(work.side)] != Packing::no)
      continue;  // among the copies
    // Products of words, and the numbers in a word that are unpacked together.
    const bool are_words = nest.word && (work.is_sum || work.side >= 0);
    const double needed = nest.is_cut(work.cut) ? work.share : 1;
    const bool is_unpacking = is_packed(work.side);
    const double count = needed * runs(nest, work.loops, is_unpacking) / (are_words ? in_word_ : 1);
    const double wide = side_by_side(nest, work.loops);
    const double each = are_words && work.is_sum ? *nest.word
                        : is_unpacking           ? slots_of_unpacking(nest, work)
                                                 : work.slots;
    Place& place = place_of(work.loops);
    if (work.is_sum && nest.matrix) {
      place.slots += count * work.slots * *nest.matrix;
      continue;
    }
    const double room = registers_ - (work.is_sum ? shared + to_all : 3);
    const double spilled = std::clamp(wide - room, 0.0, wide) / wide;
    counted.spilled = std::max(counted.spilled, spilled);
    counted.sums = std::max(counted.sums, wide);
    place.slots += count * (each + prices_.spill * spilled);
    place.code += wide * each;
    place.slots += needed * slots_of_folding(nest, work);
    if (!work.is_sum) continue;
    latency += count / wide * prices_.sum_latency;
    trips += count / wide;
  }
  for (size_t a = 0; a < accesses_.size(); ++a) {
    const Access& access = accesses_[a];
    if (nest.matrix && access.side >= 0) continue;  // The unit loads tiles beside its products.
    Place& place = place_of(access.loops);
    const double each = slots_of(nest, access) + branches(nest, access);
    const double count = runs(nest, access.loops) / repeats(nest, access);
    counted.by_access[a] = each * count;
    if (access.is_widened && !nest.word && nest.packing(access) == Packing::no)
      place.slots += kWiden * count;
    if (nest.word && access.side >= 0) counted.by_access[a] /= in_word_;
    place.loaded += counted.by_access[a];
    const double instructions =
        target_.isa == Isa::avx512 ? std::min(each, prices_.apart_code) : each;
    place.code += instructions * side_by_side(nest, access.loops);
  }
  places[1].loaded += nest.passed;
  double results = 1;
  for (size_t i = 0; i < nest.count; ++i)
    if (loops_[nest.steps[i].loop].is_result) results *= nest.steps[i].trips;
  std::array<Runs, kMaxAccesses> touched;
  for (size_t a = 0; a < accesses_.size(); ++a) {
    touched[a] = runs_of(nest, accesses_[a]);
    const double count = accesses_[a].share * touched[a].count;
    counted.runs += count;
    if (touched[a].go_on) counted.followed += count;
  }
  for (size_t a = 0; a < accesses_.size(); ++a) {
    if (touched[a].go_on && counted.runs <= prices_.followed) continue;
    const double start = results * accesses_[a].share * touched[a].count * prices_.start;
    counted.starts += start;
    place_of(accesses_[a].loops).loaded += start;
  }
  double slots = 0, loaded = 0;
  const double fast_code = std::max(prices_.code, 1.0);  // prices of a file may say 0
  for (const Place& place : places) {
    const double slower = 1 + std::max(place.code - fast_code, 0.0) / fast_code / 4;
    slots += slower * place.slots;
    loaded += slower * place.loaded;
  }

  const bool is_divided = threads_ > 1 && schedule.threads > 0;
  const double threads = is_divided ? threads_at_work(nest, schedule.threads) : 1;
  KernelTerms terms = {.not_hidden = prices_.not_hidden};
  terms.arithmetic = slots * slot_ / threads;
  terms.access = loaded * slot_ / threads;
  terms.latency = latency * slot_ / threads;
  for (size_t i = 0; i < nest.divided; ++i)
    counted.divided = std::max(counted.divided, 1.0) * std::ceil(nest.steps[i].trips);
  const double loops = (trips + results) * prices_.trip + counted.divided * prices_.divided_trip;
  terms.overhead = (loops + nest.copies) * slot_ / threads;
  if (is_divided) terms.fork_join = target_.fork_join;
  if (terms.total() < limit) terms.memory = memory(nest, threads, counted);
  if (features == nullptr) return terms;
  counted.arithmetic = slots;
  counted.access = loaded;
  counted.trips = trips + results;
  counted.code = std::max(places[0].code, places[1].code);
  counted.threads = threads;
  counted.balance = is_divided ? threads / threads_ : 1 / threads_;
  describe_terms(terms, nest, counted, *features);
  describe_memory(nest, counted, *features);
  describe_accesses(nest, counted, *features);
  describe_tiles(schedule, nest, *features);
  describe_loops(schedule, nest, *features);
  if (schedule.algorithm() == Algorithm::gemm) describe_gemm(schedule, nest, *features);
  features->divided_loops = static_cast<float>(schedule.threads);
  return terms;
}

}  // namespace hone
