#include "base/text.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "program/tiles/index_parser.h"
#include "program/tiles/parser.h"

// Recursive descent. verify() checks the form; here only names and types are found.

namespace hone {

namespace {

using namespace tile;

class TileParser {
 public:
  explicit TileParser(TextParser& text) : text_(text), indices_(text) {}

  Result<TileProgram> program() {
    HONE_TRY(text_.expect("tiles"));
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::global, "the kernel's name"));
    program_.name = label.name;
    HONE_TRY(signature());
    HONE_TRY(text_.expect("{"));
    while (const std::optional<BufferRole> role = local_role()) {
      text_.take();
      const bool is_swizzled = role == BufferRole::block && text_.eat("swizzled");
      HONE_TRY(buffer(*role));
      program_.buffers.back().is_swizzled = is_swizzled;
    }
    HONE_TRY(resolve_types());
    for (std::optional<Exec> exec; (exec = loop_word());) {
      Loop phase = HONE_TRY(loop(*exec, {}));
      program_.phases.push_back(std::move(phase));
    }
    if (!text_.peek().is("}")) return text_.expected("a loop or '}'");
    HONE_TRY(text_.expect("}"));
    return std::move(program_);
  }

 private:
  std::optional<BufferRole> local_role() const {
    if (text_.peek().is("shared")) return BufferRole::shared;
    if (text_.peek().is("scratch")) return BufferRole::scratch;
    if (text_.peek().is("block")) return BufferRole::block;
    if (text_.peek().is("own")) return BufferRole::own;
    return std::nullopt;
  }

  Status signature() {
    HONE_TRY(parameters(BufferRole::input));
    HONE_TRY(text_.expect("->"));
    HONE_TRY(parameters(BufferRole::output));
    return text_.where();
  }

  Status parameters(BufferRole role) {
    HONE_TRY(text_.expect("("));
    if (text_.eat(")")) return {};
    do {
      const bool is_update = role == BufferRole::output && text_.eat("update");
      HONE_TRY(buffer(is_update ? BufferRole::update : role));
      if (role == BufferRole::input) program_.buffers.back().is_constant = text_.eat("constant");
      if (role == BufferRole::output && text_.eat("in"))
        program_.buffers.back().donor = HONE_TRY(known_buffer());
    } while (text_.eat(","));
    return text_.expect(")");
  }

  Status buffer(BufferRole role) {
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::global, "a buffer, like @x"));
    HONE_TRY(text_.expect(":"));
    types_.push_back(HONE_TRY(text_.type_text()));
    const auto id = static_cast<uint32_t>(program_.buffers.size());
    if (label.is_number || !buffers_.define(label.name, false, id))
      return text_.at(label.token, bad_input("{} cannot name a buffer here", label.token.text));
    program_.buffers.push_back({std::string(label.name), {}, role});
    return {};
  }

  Status resolve_types() {
    for (size_t i = 0; i < types_.size(); ++i) {
      const Type type = HONE_TRY(text_.type(types_[i]));
      program_.buffers[i].type = type;
    }
    return {};
  }

  // ---- Statements ------------------------------------------------------------------------------

  // Up to the closing brace or `yield`.
  Result<Block> body() {
    TextParser::Nesting nesting(text_);
    HONE_TRY(text_.check_depth("loops"));
    const size_t chosen = chosen_.size();
    Block statements;
    while (!text_.peek().is("}") && !text_.peek().is("yield")) HONE_TRY(statement(statements));
    for (; chosen_.size() > chosen; chosen_.pop_back()) indices_.leave(chosen_.back());
    return statements;
  }

  Status statement(Block& out) {
    if (text_.peek().kind == TokenKind::value) return definition(out);
    if (text_.peek().is("store")) return store(out);
    if (text_.peek().is("product")) return product(out);
    if (text_.peek().is("index")) return choose(out);
    if (text_.peek().is("combine")) return combine(out);
    if (text_.peek().is("vote")) return vote(out);
    if (text_.peek().is("copy")) return copy(out);
    if (text_.peek().is("matrices")) return matrices(out);
    if (text_.peek().is("multiply")) return multiply(out);
    if (text_.eat("init")) return init(out);
    if (text_.eat("expect")) return expect(out);
    if (text_.eat("await")) return await(out);
    if (text_.eat("fetch")) return fetch(out);
    if (text_.eat("fence")) {
      out.push_back({ProxyFence()});
      return {};
    }
    if (text_.eat("group")) {
      out.push_back({CopyGroup()});
      return {};
    }
    if (text_.eat("wait")) {
      out.push_back({CopyWait{HONE_TRY(text_.integer("a number", 0, kMostOpenGroups))}});
      return {};
    }
    if (text_.eat("barrier")) {
      out.push_back({Barrier()});
      return {};
    }
    if (std::optional<Exec> exec = loop_word()) return loop(out, *exec, {});
    return text_.expected("a statement");
  }

  std::optional<Exec> loop_word() {
    for (Exec exec : {Exec::threads, Exec::loop, Exec::unroll, Exec::lanes, Exec::blocks})
      if (text_.peek().is(name(exec))) return exec;
    return std::nullopt;
  }

  Status definition(Block& out) {
    std::vector<TextParser::Label> labels;
    do labels.push_back(HONE_TRY(text_.label(TokenKind::value, "a scalar")));
    while (text_.eat(","));
    HONE_TRY(text_.expect("="));
    if (std::optional<Exec> exec = loop_word()) return loop(out, *exec, labels);
    if (labels.size() > 1) return text_.expected("a loop that carries values");
    const Token word = text_.peek();
    if (word.kind != TokenKind::word) return text_.expected("what the scalar is");
    text_.take();
    if (word.is("number")) return number(out, labels[0]);
    if (word.is("position")) return position(out, labels[0]);
    if (word.is("load")) return load(out, labels[0]);
    if (word.is("fma")) return sum<Fma>(out, labels[0]);
    if (word.is("quad")) return sum<Quad>(out, labels[0]);
    if (word.is("pair")) return sum<Pair>(out, labels[0]);
    return compute(out, labels[0], word);
  }

  Status number(Block& out, const TextParser::Label& label) {
    const Token token = text_.take();
    Number number;
    HONE_TRY(text_.expect(":"));
    const DType dtype = HONE_TRY(element_type());
    if (is_real(dtype)) {
      Result<double> value = parse_double(token.text);
      if (!value.ok()) return text_.at(token, std::move(value).error());
      number.value = *value;
    } else {
      Result<int64_t> value = parse_int(token.text);
      if (!value.ok()) return text_.at(token, std::move(value).error());
      number.value = *value;
    }
    number.result = HONE_TRY(define(label, dtype));
    out.push_back({number});
    return {};
  }

  Status position(Block& out, const TextParser::Label& label) {
    IndexExpr value = HONE_TRY(indices_.expr());
    HONE_TRY(text_.expect(":"));
    const DType dtype = HONE_TRY(element_type());
    out.push_back({Position{HONE_TRY(define(label, dtype)), std::move(value)}});
    return {};
  }

  Status load(Block& out, const TextParser::Label& label) {
    Load load;
    load.is_word = text_.eat("word");
    HONE_TRY(access(load.buffer, load.index));
    load.guards = HONE_TRY(guards());
    if (text_.eat("else")) load.otherwise = HONE_TRY(use());
    const DType element = program_.buffers[load.buffer].type.dtype();
    load.result = HONE_TRY(define(label, load.is_word ? DType::u32 : element));
    out.push_back({std::move(load)});
    return {};
  }

  template <class Sum>
  Status sum(Block& out, const TextParser::Label& label) {
    Sum sum;
    sum.a = HONE_TRY(use());
    HONE_TRY(text_.expect(","));
    sum.b = HONE_TRY(use());
    HONE_TRY(text_.expect(","));
    sum.c = HONE_TRY(use());
    sum.result = HONE_TRY(define(label, program_.scalars[sum.c]));
    out.push_back({sum});
    return {};
  }

  Status compute(Block& out, const TextParser::Label& label, const Token& word) {
    const std::optional<Opcode> opcode = opcode_from_name(word.text);
    if (!opcode) return text_.at(word, bad_input("there is no op '{}'", excerpt(word.text)));
    Compute compute;
    if (text_.peek().kind == TokenKind::value) {
      do compute.operands.push_back(HONE_TRY(use()));
      while (text_.eat(","));
    }
    compute.op = HONE_TRY(text_.op(word, *opcode));
    std::vector<Type> types;
    for (Scalar operand : compute.operands)
      types.push_back(Type::scalar(program_.scalars[operand]));
    Result<std::vector<Type>> results = infer({compute.op, types});
    if (!results.ok()) return text_.at(word, std::move(results).error());
    if (results->size() != 1 || (*results)[0].rank() != 0)
      return text_.at(word, bad_input("{} does not give one number", word.text));
    compute.result = HONE_TRY(define(label, (*results)[0].dtype()));
    out.push_back({std::move(compute)});
    return {};
  }

  Status store(Block& out) {
    HONE_TRY(text_.expect("store"));
    Store store;
    HONE_TRY(access(store.buffer, store.index));
    HONE_TRY(text_.expect("="));
    store.value = HONE_TRY(use());
    store.guards = HONE_TRY(guards());
    out.push_back({std::move(store)});
    return {};
  }

  Status product(Block& out) {
    HONE_TRY(text_.expect("product"));
    Product product;
    HONE_TRY(block(product.sums, product.sums_block));
    HONE_TRY(text_.expect(","));
    HONE_TRY(block(product.lhs, product.lhs_block));
    HONE_TRY(text_.expect(","));
    HONE_TRY(block(product.rhs, product.rhs_block));
    product.is_first = text_.eat(",");
    if (product.is_first) HONE_TRY(text_.expect("first"));
    out.push_back({std::move(product)});
    return {};
  }

  Status combine(Block& out) {
    HONE_TRY(text_.expect("combine"));
    WarpCombine combine;
    HONE_TRY(access(combine.buffer, combine.index));
    HONE_TRY(text_.expect("by"));
    combine.combine = HONE_TRY(combining());
    out.push_back({std::move(combine)});
    return {};
  }

  Status copy(Block& out) {
    HONE_TRY(text_.expect("copy"));
    AsyncCopy copy;
    copy.count = HONE_TRY(text_.integer("a number", 1, 16));
    HONE_TRY(access(copy.to, copy.to_index));
    HONE_TRY(text_.expect("="));
    HONE_TRY(access(copy.from, copy.from_index));
    copy.guards = HONE_TRY(guards());
    out.push_back({std::move(copy)});
    return {};
  }

  Status matrices(Block& out) {
    HONE_TRY(text_.expect("matrices"));
    MatrixLoad load;
    load.count = HONE_TRY(text_.integer("a number", 1, 4));
    HONE_TRY(access(load.to, load.to_index));
    HONE_TRY(text_.expect("="));
    HONE_TRY(access(load.from, load.from_index));
    out.push_back({std::move(load)});
    return {};
  }

  Status multiply(Block& out) {
    HONE_TRY(text_.expect("multiply"));
    if (text_.peek().kind != TokenKind::number) return factors(out, WarpProduct());
    GroupProduct product;
    product.columns = HONE_TRY(text_.integer("a number of columns", 1, kMostGroupColumns));
    return factors(out, std::move(product));
  }

  template <class Multiplied>
  Status factors(Block& out, Multiplied product) {
    constexpr bool kMayLieAcross = std::is_same_v<Multiplied, GroupProduct>;
    HONE_TRY(access(product.sums, product.sums_index));
    HONE_TRY(text_.expect(","));
    if constexpr (kMayLieAcross) product.lhs_across = text_.eat("across");
    HONE_TRY(access(product.lhs, product.lhs_index));
    HONE_TRY(text_.expect(","));
    if constexpr (kMayLieAcross) product.rhs_across = text_.eat("across");
    HONE_TRY(access(product.rhs, product.rhs_index));
    HONE_TRY(text_.expect("as"));
    product.numbers = HONE_TRY(element_type());
    out.push_back({std::move(product)});
    return {};
  }

  // ---- Copies on Hopper ------------------------------------------------------------------------

  Status init(Block& out) {
    MbarrierInit init;
    init.arrivals = HONE_TRY(text_.integer("a number of arrivals", 1, kMostArrivals));
    HONE_TRY(access(init.buffer, init.index));
    out.push_back({std::move(init)});
    return {};
  }

  Status expect(Block& out) {
    MbarrierExpect expect;
    expect.bytes = HONE_TRY(text_.integer("a number of bytes", 0, kMostExpectedBytes));
    HONE_TRY(access(expect.buffer, expect.index));
    out.push_back({std::move(expect)});
    return {};
  }

  Status await(Block& out) {
    if (text_.eat("kernels")) {
      out.push_back({KernelWait()});
      return {};
    }
    MbarrierWait wait;
    HONE_TRY(access(wait.buffer, wait.index));
    HONE_TRY(text_.expect("phase"));
    wait.parity = HONE_TRY(indices_.expr());
    out.push_back({std::move(wait)});
    return {};
  }

  Status fetch(Block& out) {
    TensorCopy copy;
    copy.rows = HONE_TRY(text_.integer("a number of rows", 1, kMostBoxRows));
    HONE_TRY(access(copy.to, copy.to_index));
    HONE_TRY(text_.expect("="));
    HONE_TRY(access(copy.from, copy.from_index));
    HONE_TRY(text_.expect("along"));
    copy.axis = static_cast<int>(HONE_TRY(text_.integer("a dim", 0, kMaxRank)));
    HONE_TRY(text_.expect("for"));
    HONE_TRY(access(copy.barrier, copy.barrier_index));
    out.push_back({std::move(copy)});
    return {};
  }

  Result<Opcode> combining() {
    const Token word = text_.take();
    if (const std::optional<Opcode> opcode = opcode_from_name(word.text)) return *opcode;
    return text_.at(word, bad_input("there is no op '{}'", excerpt(word.text)));
  }

  Status choose(Block& out) {
    HONE_TRY(text_.expect("index"));
    const Token label = text_.peek();
    HONE_TRY(index_name());
    HONE_TRY(text_.expect("in"));
    const Dim low = HONE_TRY(indices_.dim());
    HONE_TRY(text_.expect(".."));
    const Dim high = HONE_TRY(indices_.dim());
    HONE_TRY(text_.expect("="));
    const Scalar value = HONE_TRY(use());
    out.push_back({Choose{HONE_TRY(define_index(label, low, high + 1)), value}});
    chosen_.push_back(label.text);
    return {};
  }

  Status vote(Block& out) {
    HONE_TRY(text_.expect("vote"));
    const Token label = text_.peek();
    HONE_TRY(index_name());
    HONE_TRY(text_.expect("="));
    BlockVote vote;
    HONE_TRY(access(vote.buffer, vote.at));
    vote.index = HONE_TRY(define_index(label, 0, 2));
    out.push_back({std::move(vote)});
    chosen_.push_back(label.text);
    return {};
  }

  Status loop(Block& out, Exec exec, std::span<const TextParser::Label> labels) {
    out.push_back({HONE_TRY(loop(exec, labels))});
    return {};
  }

  Result<Loop> loop(Exec exec, std::span<const TextParser::Label> labels) {
    text_.take();
    const Token label = text_.peek();
    HONE_TRY(index_name());
    HONE_TRY(text_.expect("in"));
    const Dim extent = HONE_TRY(indices_.dim());
    Loop loop;
    loop.exec = exec;
    std::optional<Span> span;
    if (text_.eat("from")) {
      IndexExpr first = HONE_TRY(indices_.expr());
      HONE_TRY(text_.expect("to"));
      span = Span{std::move(first), HONE_TRY(indices_.expr())};
    }
    if (text_.eat("carry")) HONE_TRY(carried(loop));
    if (loop.carried.size() != labels.size())
      return text_.at(label, bad_input("the loop carries {} values and gives {}",
                                       loop.carried.size(), labels.size()));
    HONE_TRY(text_.expect("{"));
    loop.index = HONE_TRY(define_index(label, 0, extent));
    program_.indices.back().span = std::move(span);
    loop.body = HONE_TRY(body());
    if (!loop.carried.empty()) HONE_TRY(yield(loop));
    HONE_TRY(text_.expect("}"));
    indices_.leave(label.text);
    for (size_t i = 0; i < labels.size(); ++i)
      loop.carried[i].result =
          HONE_TRY(define(labels[i], program_.scalars[loop.carried[i].initial]));
    return loop;
  }

  Status carried(Loop& loop) {
    HONE_TRY(text_.expect("("));
    do {
      const TextParser::Label inside = HONE_TRY(text_.label(TokenKind::value, "a scalar"));
      HONE_TRY(text_.expect("="));
      Carry carry;
      carry.initial = HONE_TRY(use());
      carry.inside = HONE_TRY(define(inside, program_.scalars[carry.initial]));
      if (text_.eat("by")) carry.combine = HONE_TRY(combining());
      loop.carried.push_back(carry);
    } while (text_.eat(","));
    return text_.expect(")");
  }

  Status yield(Loop& loop) {
    HONE_TRY(text_.expect("yield"));
    for (size_t i = 0; i < loop.carried.size(); ++i) {
      if (i > 0) HONE_TRY(text_.expect(","));
      loop.carried[i].next = HONE_TRY(use());
    }
    return {};
  }

  // ---- Pieces of statements --------------------------------------------------------------------

  Result<DType> element_type() {
    const Token token = text_.take();
    if (std::optional<DType> dtype = dtype_from_name(token.text)) return *dtype;
    return text_.at(token, bad_input("there is no element type '{}'", excerpt(token.text)));
  }

  Result<BufferId> known_buffer() {
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::global, "a buffer, like @x"));
    const std::optional<uint32_t> found = buffers_.find(label.name, false);
    if (found) return *found;
    return text_.at(
        label.token,
        bad_input("there is no buffer {}", label.token.text).with_hint(buffers_.hint(label.name)));
  }

  Status access(BufferId& buffer, std::vector<IndexExpr>& index) {
    buffer = HONE_TRY(known_buffer());
    HONE_TRY(text_.expect("["));
    if (text_.eat("]")) return {};
    do index.push_back(HONE_TRY(indices_.expr()));
    while (text_.eat(","));
    return text_.expect("]");
  }

  Status block(BufferId& buffer, IndexExpr& index) {
    buffer = HONE_TRY(known_buffer());
    HONE_TRY(text_.expect("["));
    index = HONE_TRY(indices_.expr());
    return text_.expect("]");
  }

  Result<std::vector<Guard>> guards() {
    std::vector<Guard> list;
    if (!text_.eat("if")) return list;
    do {
      const Dim lower = HONE_TRY(indices_.dim());
      HONE_TRY(text_.expect("<"));
      HONE_TRY(text_.expect("="));
      IndexExpr value = HONE_TRY(indices_.expr());
      HONE_TRY(text_.expect("<"));
      list.push_back({std::move(value), lower, HONE_TRY(indices_.dim())});
    } while (text_.eat("and"));
    return list;
  }

  Result<Scalar> define(const TextParser::Label& label, DType dtype) {
    const auto id = static_cast<Scalar>(program_.scalars.size());
    if (!scalars_.define(label.name, label.is_number, id))
      return text_.at(label.token, bad_input("{} is defined twice", label.token.text));
    program_.scalars.push_back(dtype);
    return id;
  }

  Result<Scalar> use() {
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::value, "a scalar, like %3"));
    if (std::optional<uint32_t> found = scalars_.find(label.name, label.is_number)) return *found;
    return text_.at(
        label.token,
        bad_input("{} is not defined here", label.token.text).with_hint(scalars_.hint(label.name)));
  }

  Status index_name() {
    if (text_.peek().kind != TokenKind::word) return text_.expected("the name of an index");
    text_.take();
    return {};
  }

  Result<Index> define_index(const Token& label, Dim low, Dim high) {
    const auto id = static_cast<Index>(program_.indices.size());
    if (!indices_.define(label.text, id))
      return text_.at(label, bad_input("index '{}' is defined twice", label.text));
    program_.indices.push_back({std::string(label.text), low, high});
    return id;
  }

  TextParser& text_;
  TileProgram program_;
  std::vector<TextParser::TypeText> types_;  // of the buffers
  LabelTable buffers_, scalars_;
  IndexParser indices_;                   // those in scope
  std::vector<std::string_view> chosen_;  // those that leave it with their body
};

}  // namespace

Result<TileProgram> parse_tiles(TextParser& text) { return TileParser(text).program(); }

Result<TileProgram> parse_tiles(std::string_view text, std::string_view file) {
  ParseOptions options;
  options.file = file;
  TextParser parser(text, options);
  TileProgram program = HONE_TRY(parse_tiles(parser));
  if (parser.peek().kind != TokenKind::end) return parser.expected("the end of the text");
  return program;
}

}  // namespace hone
