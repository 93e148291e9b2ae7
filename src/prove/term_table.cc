#include "prove/term_table.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/hash.h"
#include "prove/sorted_runs.h"
#include "rules/sizes.h"

namespace hone {
namespace {

constexpr size_t kSizes = 3;
// Two terms about order may be equal wherever numbers stand in most of their orders.
constexpr size_t kOrderedTests = 30;
constexpr uint16_t kIllTyped = UINT16_MAX;

uint64_t words_of(FieldElement x, int) { return x.residue(); }
uint64_t words_of(__int128 x, int i) { return static_cast<uint64_t>(x >> (64 * i)); }

}  // namespace

// ---- Types --------------------------------------------------------------------------------------

uint16_t TermTable::type_id(Type type) {
  const auto at = std::ranges::find(types_, type);
  if (at != types_.end()) return static_cast<uint16_t>(at - types_.begin());
  std::vector<Type> bound;
  for (const Bindings& sizes : sizes_) {
    const Result<Type> one = type.bind(sizes);
    if (!one.ok() || !one->is_static() || one->static_elements() > (1 << 12)) return kIllTyped;
    bound.push_back(*one);
  }
  if (types_.size() + 1 >= kIllTyped) return kIllTyped;
  types_.push_back(type);
  static_types_.push_back(std::move(bound));
  return static_cast<uint16_t>(types_.size() - 1);
}

uint16_t TermTable::result_type(uint16_t op, std::array<uint16_t, 3> operands) {
  uint64_t key = op;
  for (uint16_t type : operands) key = (key << 16) | type;
  const auto found = result_types_.find(key);
  if (found != result_types_.end()) return found->second;
  std::vector<Type> types;
  for (uint16_t type : operands)
    if (type != kIllTyped) types.push_back(types_[type]);
  const Result<std::vector<Type>> result = infer({.op = ops_.ops[op], .operands = types});
  const uint16_t type = result.ok() && result->size() == 1 ? type_id((*result)[0]) : kIllTyped;
  result_types_.emplace(key, type);
  return type;
}

// ---- The table ----------------------------------------------------------------------------------

TermTable::Id TermTable::find(const Fingerprint& print) const {
  for (size_t at = print.first & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at] == kNone) return kNone;
    if (terms_[slots_[at]].print == print) return slots_[at];
  }
}

void TermTable::insert(const Term& term) {
  terms_.push_back(term);
  if (2 * terms_.size() > slots_.size()) {
    slots_.assign(std::max<size_t>(1024, 2 * slots_.size()), kNone);
    for (Id id = 0; id + 1 < terms_.size(); ++id) {
      size_t at = terms_[id].print.first & (slots_.size() - 1);
      while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = id;
    }
  }
  size_t at = term.print.first & (slots_.size() - 1);
  while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = static_cast<Id>(terms_.size() - 1);
}

Status TermTable::add(const Term& term, const Limits& limits, const Duplicate& duplicate) {
  ++counts_.made;
  if (!slots_.empty())
    if (const Id same = find(term.print); same != kNone) return duplicate(term, same);
  if (terms_.size() >= limits.max_terms)
    return over_limit("there are more than {} different terms", limits.max_terms);
  ++counts_.distinct;
  insert(term);
  return {};
}

// A term that is never looked for.
Result<TermTable::Id> TermTable::keep(const Term& term, const Limits& limits) {
  if (terms_.size() >= limits.max_terms)
    return over_limit("there are more than {} different terms", limits.max_terms);
  terms_.push_back(term);
  return static_cast<Id>(terms_.size() - 1);
}

void TermTable::add_nodes(Id id, std::vector<Id>& nodes) const {
  if (is_leaf(terms_[id]) || std::ranges::find(nodes, id) != nodes.end()) return;
  nodes.push_back(id);
  for (Id operand : terms_[id].operands)
    if (operand != kNone) add_nodes(operand, nodes);
}

int TermTable::union_size(Id a, Id b) const {
  std::vector<Id> nodes;
  add_nodes(a, nodes);
  add_nodes(b, nodes);
  return static_cast<int>(nodes.size());
}

// The terms that have `ops` ops together with x. Some share no part with x and have the right
// number. Its own parts are among them if x has that many ops itself, and so are terms of its size
// that share a part.
std::vector<TermTable::Id> TermTable::partners(Id x, int size_of_x, int ops) const {
  std::vector<Id> found;
  const auto add_level = [&](int level) {
    for (Id y = level_begin_[static_cast<size_t>(level)];
         y < level_begin_[static_cast<size_t>(level) + 1]; ++y)
      if (union_size(x, y) == ops) found.push_back(y);
  };
  const int rest = ops - size_of_x;
  if (rest <= size_of_x) add_level(rest);
  if (rest == 0) {
    std::vector<Id> parts;
    add_nodes(x, parts);
    found.insert(found.end(), parts.begin(), parts.end());
  }
  // Two of one size, with all but a few parts in common: found by looking at the users of parts.
  if (rest > 0 && rest < size_of_x) {
    std::vector<Id> parts;
    add_nodes(x, parts);
    for (int level = rest + 1; level <= size_of_x; ++level)
      for (Id y = level_begin_[static_cast<size_t>(level)];
           y < level_begin_[static_cast<size_t>(level) + 1]; ++y) {
        const auto in = [&](Id o) {
          return o != kNone && std::ranges::find(parts, o) != parts.end();
        };
        if (std::ranges::any_of(terms_[y].operands, in) && union_size(x, y) == ops)
          found.push_back(y);
      }
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

// From the terms up to x, each two that have `ops` ops together with it, in both orders.
std::vector<std::pair<TermTable::Id, TermTable::Id>> TermTable::pairs_with(Id x, int ops) const {
  std::vector<Id> near;
  for (Id y = 0; y <= x; ++y)
    if (union_size(x, y) <= ops) near.push_back(y);
  std::vector<std::pair<Id, Id>> pairs;
  for (Id y : near)
    for (Id z : near) {
      std::vector<Id> nodes;
      for (Id each : {x, y, z}) add_nodes(each, nodes);
      if (static_cast<int>(nodes.size()) == ops) pairs.emplace_back(y, z);
    }
  return pairs;
}

Result<TermTable> TermTable::make(const TermOps& ops, uint64_t seed) {
  TermTable table;
  table.ops_ = ops;
  table.seed_ = seed;
  Rule head = {.name = "", .left = Graph(), .right = Graph(), .guard = {}};
  for (Type type : ops.inputs) head.left.add_parameter(type);
  Rng rng(seed);
  table.sizes_ = distinct_sizes(head, kSizes, rng);
  if (table.sizes_.empty()) return bad_input("the inputs have no sizes to test at");
  for (Op op : ops.ops) {
    const Arity arity = operand_arity(op.def());
    if (arity.min > 3) return unsupported("'{}' has more than three operands", op.name());
  }
  table.is_about_order_ = std::ranges::any_of(ops.ops, [](Op op) { return is_about_order(op); });
  if (table.is_about_order_)
    for (size_t i = table.sizes_.size(); i < kOrderedTests; ++i)
      table.sizes_.push_back(table.sizes_[i % std::min(kSizes, i)]);
  for (Op op : ops.ops) {
    std::vector<Op>& at_sizes = table.static_ops_.emplace_back();
    for (const Bindings& sizes : table.sizes_) at_sizes.push_back(op.bind(sizes).canonical());
  }
  return table;
}

// ---- Enumeration --------------------------------------------------------------------------------

// A term of the last level, with its place among the terms that are made: where the third operand
// is, if no op has one.
struct TermTable::ShortMade {
  Term term;
  static ShortMade of(Term term, uint32_t place) {
    term.operands[2] = place;
    return {term};
  }
  uint32_t place() const { return term.operands[2]; }
  Term plain() const {
    Term plain = term;
    plain.operands[2] = kNone;
    return plain;
  }
};
struct TermTable::LongMade {
  Term term;
  uint32_t at;
  static LongMade of(const Term& term, uint32_t place) { return {term, place}; }
  uint32_t place() const { return at; }
  Term plain() const { return term; }
};

// Evaluates with one kind of numbers.
template <class Numbers, class Made>
class TermTable::Enumeration {
 public:
  using Elements = std::vector<typename Numbers::Number>;
  using Value = std::vector<Elements>;  // at each list of sizes

  Enumeration(TermTable& table, const Limits& limits, ThreadPool& pool, Progress& progress,
              const CancelToken* cancel, const Duplicate& duplicate)
      : table_(table),
        limits_(limits),
        pool_(pool),
        progress_(progress),
        cancel_(cancel),
        duplicate_(duplicate),
        firsts_(limits.memory / 4 * 3, limits.spill),
        twins_(limits.memory / 4, limits.spill) {}

  Status run() {
    HONE_TRY(leaves());
    for (int ops = 1; ops <= limits_.max_ops; ++ops) HONE_TRY(level(ops));
    return {};
  }

 private:
  // The state of one thread that evaluates.
  struct Worker {
    explicit Worker(uint64_t seed) : numbers(seed), evaluator(numbers, tables) {}
    Numbers numbers;
    ReadTables tables;
    ExactEvaluator<Numbers> evaluator;
  };

  struct First {
    Made made;
    bool operator<(const First& other) const {
      const auto key = [](const First& first) {
        return std::tuple(first.made.term.print.first, first.made.term.print.second,
                          first.made.place());
      };
      return key(*this) < key(other);
    }
  };
  // One that computes what another one does.
  struct Twin {
    Made made;
    Id same;
    bool operator<(const Twin& other) const { return made.place() < other.made.place(); }
  };

  // An op to be applied to x, and to partners if it has more operands.
  struct Task {
    uint16_t op;
    Id x;
    int size;  // of x
  };

  Status leaves() {
    Rng rng(table_.seed_);
    uint16_t number = static_cast<uint16_t>(table_.ops_.ops.size());
    const auto put = [&](Type type, const auto& element) -> Status {
      Term term = {.print = {}, .op = number++, .type = table_.type_id(type)};
      if (term.type == kIllTyped) return bad_input("the inputs are too large");
      Value value;
      for (Type at : table_.static_types_[term.type]) {
        Elements& elements = value.emplace_back();
        for (int64_t i = 0; i < at.static_elements(); ++i)
          elements.push_back(element(value.size()));
      }
      term.print = print_of(term, value);
      HONE_TRY(table_.add(term, limits_, duplicate_));
      if (values_.size() < table_.terms_.size()) values_.push_back(std::move(value));
      return {};
    };
    for (Type type : table_.ops_.inputs)
      HONE_TRY(put(type, [&](size_t test) { return random(type, test, rng); }));
    Worker worker(table_.seed_);
    for (double constant : table_.ops_.constants)
      HONE_TRY(
          put(Type::scalar(DType::f32), [&](size_t) { return worker.numbers.number(constant); }));
    table_.level_begin_ = {0, static_cast<Id>(table_.terms_.size())};
    return {};
  }

  // Some of the numbers with an order are equal in every second test.
  typename Numbers::Number random(Type type, size_t test, Rng& rng) {
    if constexpr (std::is_same_v<Numbers, FieldNumbers>) {
      return FieldElement::from_residue(rng.next());
    } else {
      const int64_t most = test % 2 == 0 ? 60 : 3;
      return type.dtype() == DType::boolean ? rng.between(0, 1) : rng.between(-most, most);
    }
  }

  Status level(int ops) {
    std::vector<Task> tasks;
    for (int size = ops - 1; size >= 0; --size)
      for (Id x = table_.level_begin_[static_cast<size_t>(size)];
           x < table_.level_begin_[static_cast<size_t>(size) + 1]; ++x)
        for (uint16_t op = 0; op < table_.ops_.ops.size(); ++op)
          if (size == ops - 1 || most_operands(op) * size >= ops - 1)
            tasks.push_back({op, x, size});
    progress_.start(static_cast<int64_t>(tasks.size()), fmt::format("terms of {} ops", ops));
    constexpr size_t kBlock = 4096;
    for (size_t begin = 0; begin < tasks.size(); begin += kBlock) {
      if (cancel_ != nullptr) HONE_TRY(cancel_->check());
      const size_t count = std::min(kBlock, tasks.size() - begin);
      HONE_TRY(block(std::span(tasks).subspan(begin, count), ops));
      progress_.advance(static_cast<int64_t>(count));
    }
    if (ops == limits_.max_ops) HONE_TRY(tell_last_apart());
    progress_.finish(
        fmt::format("{} made, {} distinct", table_.counts_.made, table_.counts_.distinct));
    table_.level_begin_.push_back(static_cast<Id>(table_.terms_.size()));
    // Values of terms that terms of the last level have for operands of operands are kept.
    if (ops <= limits_.max_ops - 2) keep_values();
    return {};
  }

  // One, two, or three; an op of any number, such as a concat, has two.
  int most_operands(uint16_t op) const {
    const Arity arity = operand_arity(table_.ops_.ops[op].def());
    return arity.min == 3 ? 3 : arity.max >= 2 ? 2 : 1;
  }

  // Types first, one after the other; then values, on all threads; then the table, in order.
  Status block(std::span<const Task> tasks, int ops) {
    std::vector<Term> made;
    for (const Task& task : tasks) types_of(task, ops, made);
    constexpr int64_t kGrain = 256;
    pool_.parallel_for(0, static_cast<int64_t>(made.size()), kGrain, [&](int64_t from, int64_t to) {
      std::unique_ptr<Worker> worker = take_worker();
      for (int64_t i = from; i < to; ++i) evaluate(made[static_cast<size_t>(i)], *worker);
      give_worker(std::move(worker));
    });
    for (const Term& term : made) {
      if (term.print == Fingerprint()) continue;
      HONE_TRY(ops == limits_.max_ops ? add_last(term) : table_.add(term, limits_, duplicate_));
    }
    return {};
  }

  // Terms of the last level are parts of none, so they need not be found again. They are told apart
  // by sorting, and a term is kept only if another one is like it.
  Status add_last(const Term& term) {
    if (place_ == kNone) return over_limit("there are more than {} terms of a level", place_);
    ++table_.counts_.made;
    const Made made = Made::of(term, place_++);
    const Id same = table_.find(term.print);
    return same == kNone ? firsts_.add({made}) : twins_.add({made, same});
  }

  Status tell_last_apart() {
    std::optional<Made> first;
    Id same = kNone;
    table_.counts_.spilled += firsts_.spilled();
    HONE_TRY(firsts_.merge([&](const First& each) -> Status {
      const Made& made = each.made;
      if (!first || first->term.print != made.term.print) {
        first = made;
        same = kNone;
        ++table_.counts_.distinct;
        return {};
      }
      if (same == kNone) same = HONE_TRY(table_.keep(first->plain(), limits_));
      return twins_.add({made, same});
    }));
    table_.counts_.spilled += twins_.spilled();
    return twins_.merge([&](const Twin& twin) -> Status {
      if (cancel_ != nullptr) HONE_TRY(cancel_->check());
      return duplicate_(twin.made.plain(), twin.same);
    });
  }

  void types_of(const Task& task, int ops, std::vector<Term>& made) {
    const auto put = [&](Id a, Id b = kNone, Id c = kNone) {
      std::array<uint16_t, 3> types = {kIllTyped, kIllTyped, kIllTyped};
      const std::array<Id, 3> operands = {a, b, c};
      for (size_t o = 0; o < 3 && operands[o] != kNone; ++o)
        types[o] = table_.terms_[operands[o]].type;
      const uint16_t type = table_.result_type(task.op, types);
      if (type != kIllTyped)
        made.push_back({.print = {}, .op = task.op, .type = type, .operands = operands});
    };
    const Id x = task.x;
    if (most_operands(task.op) == 1) return put(x);
    if (most_operands(task.op) == 3) {
      // x is the last of them; where it stands twice, its first place counts.
      for (auto [y, z] : table_.pairs_with(x, ops - 1)) {
        put(x, y, z);
        if (y != x) put(y, x, z);
        if (y != x && z != x) put(y, z, x);
      }
      return;
    }
    const bool commutes = table_.ops_.ops[task.op].def().traits.commutative;
    for (Id y : table_.partners(x, task.size, ops - 1)) {
      const bool same_level = y >= table_.level_begin_[static_cast<size_t>(task.size)];
      if (same_level && y > x) continue;  // made from y's side
      put(y, x);
      if (!commutes && y != x) put(x, y);
    }
  }

  const Value& value_of(Id id, Worker& worker, Value& scratch) {
    if (id < values_.size()) return values_[id];
    scratch = computed(table_.terms_[id], worker);
    return scratch;
  }

  Value computed(const Term& term, Worker& worker) {
    Value scratch[3];
    std::vector<const Value*> operands;
    for (size_t o = 0; o < 3 && term.operands[o] != kNone; ++o)
      operands.push_back(&value_of(term.operands[o], worker, scratch[o]));
    Value value;
    for (size_t s = 0; s < table_.sizes_.size(); ++s) {
      std::vector<const Elements*> elements;
      std::vector<Type> types;
      for (size_t o = 0; o < operands.size(); ++o) {
        elements.push_back(&(*operands[o])[s]);
        types.push_back(table_.static_types_[table_.terms_[term.operands[o]].type][s]);
      }
      Result<Elements> result = worker.evaluator.apply(table_.static_ops_[term.op][s], elements,
                                                       types, table_.static_types_[term.type][s]);
      if (!result.ok()) return {};
      value.push_back(std::move(*result));
    }
    return value;
  }

  void evaluate(Term& term, Worker& worker) {
    const Value value = computed(term, worker);
    if (!value.empty()) term.print = print_of(term, value);
  }

  Fingerprint print_of(const Term& term, const Value& value) const {
    Fingerprint print = {hash_mix(term.type + 1), hash_mix(term.type + 0x10001)};
    for (const Elements& elements : value)
      for (const auto& x : elements)
        for (int i = 0; i < static_cast<int>(sizeof(x) / 8); ++i) {
          print.first = hash_combine(print.first, words_of(x, i));
          print.second = hash_combine(words_of(x, i), print.second);
        }
    return print;
  }

  void keep_values() {
    Worker worker(table_.seed_);
    for (Id id = static_cast<Id>(values_.size()); id < table_.terms_.size(); ++id)
      values_.push_back(computed(table_.terms_[id], worker));
  }

  std::unique_ptr<Worker> take_worker() {
    const std::lock_guard lock(mutex_);
    if (workers_.empty()) return std::make_unique<Worker>(table_.seed_);
    std::unique_ptr<Worker> worker = std::move(workers_.back());
    workers_.pop_back();
    return worker;
  }
  void give_worker(std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    workers_.push_back(std::move(worker));
  }

  TermTable& table_;
  const Limits& limits_;
  ThreadPool& pool_;
  Progress& progress_;
  const CancelToken* cancel_;
  const Duplicate& duplicate_;
  SortedRuns<First> firsts_;   // of the last level, but for those that are like smaller ones
  SortedRuns<Twin> twins_;     // in the order in which they are made
  uint32_t place_ = 0;         // of the next term of the last level
  std::vector<Value> values_;  // of the first terms
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

Status TermTable::enumerate(const Limits& limits, ThreadPool& pool, Progress& progress,
                            const CancelToken* cancel, const Duplicate& duplicate) {
  const bool has_three =
      std::ranges::any_of(ops_.ops, [](Op op) { return operand_arity(op.def()).min == 3; });
  const auto run = [&]<class Numbers, class Made>(std::type_identity<Numbers>,
                                                  std::type_identity<Made>) {
    return Enumeration<Numbers, Made>(*this, limits, pool, progress, cancel, duplicate).run();
  };
  const auto run_with = [&]<class Numbers>(std::type_identity<Numbers> numbers) {
    return has_three ? run(numbers, std::type_identity<LongMade>())
                     : run(numbers, std::type_identity<ShortMade>());
  };
  return is_about_order_ ? run_with(std::type_identity<OrderedNumbers>())
                         : run_with(std::type_identity<FieldNumbers>());
}

}  // namespace hone
