#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text_lexer.h"
#include "ir/sharding.h"
#include "ir/text.h"

// Shared by the parsers of graphs and of models: recursive descent over the tokens.

namespace hone {

// Values by their label, for one graph or model body. A quoted label is a name, like a plain one;
// digits are another namespace: they number values that have no name.
class LabelTable {
 public:
  // False: the label is taken.
  bool define(std::string_view name, bool is_number, uint32_t value);
  std::optional<uint32_t> find(std::string_view name, bool is_number) const;
  std::string hint(std::string_view name) const;  // a name that is meant instead, or ""

 private:
  std::unordered_map<std::string_view, uint32_t> names_;
  std::unordered_map<std::string_view, uint32_t> odd_numbers_;
  std::vector<uint32_t> numbers_;  // value + 1 of the label, 0: none
};

class TextParser {
 public:
  TextParser(std::string_view text, const ParseOptions& options)
      : lexer_(text), options_(options) {}

  // Tokens.
  const Token& peek() const { return lexer_.peek(); }
  Token take() { return lexer_.take(); }
  // From the bracket at hand to the one that closes it; empty: it is never closed.
  std::string_view take_brackets() { return lexer_.take_brackets(); }
  // To read on from here again.
  Lexer place() const { return lexer_; }
  void return_to(const Lexer& place) { lexer_ = place; }
  bool eat(std::string_view spelling);
  Status expect(std::string_view spelling);
  Error expected(std::string_view what) const;  // "expected ..., found ..." at the next token
  Error at(size_t offset, Error error) const;   // gives the error its place
  Error at(const Token& token, Error error) const { return at(token.offset, std::move(error)); }

  // The beginning of files: `weights "NAME"` or nothing.
  Result<std::string> header();

  // The name of a % or @ token, without sigil and quotes.
  struct Label {
    Token token;
    std::string_view name;
    bool is_number = false;
  };
  Result<Label> label(TokenKind kind, std::string_view what);

  // The text of a type; its dims are read by type() once all symbols are known.
  struct TypeText {
    std::string_view text;
    size_t offset = 0;
  };
  Result<TypeText> type_text();
  Result<Type> type(const TypeText& text);

  Result<int64_t> integer(std::string_view what);
  Result<int64_t> integer(std::string_view what, int64_t least, int64_t most);
  Result<Dim> dim(std::string_view what);  // "[2*N]"
  // "[1, 2] : f32[2]", "0 : f32[64]", ...
  Result<Tensor> tensor();
  // "where N in 1..64 step 4, ..." or nothing: replaces the symbols in scope.
  Status where();
  const std::vector<Symbol>& symbols() const { return symbols_; }
  // The op of this opcode with the attributes that follow, if any do; `word` is its name.
  Result<Op> op(const Token& word, Opcode opcode);
  Result<Graph> graph();  // from the word `graph` on
  // "[x, -] replicated [y]", to the end of the text, on this mesh.
  Result<Sharding> sharding_on(MeshRef mesh, Type type);
  // "(%x: f32[N]) -> f32[N] where N in 1..64 {...} => {...}": a graph of this name for each body,
  // all with the same head.
  Result<std::vector<Graph>> alternatives(std::string_view name);

  // From now on the word names this op; an empty word: none does. The op's own name is refused
  // meanwhile, so that a text that is read once for each of several ops says where each stands.
  void let(std::string_view word, Opcode opcode) { named_op_ = {word, opcode}; }
  // How often an op was named so.
  size_t named() const { return named_op_.uses; }

  // An error if too many Nestings are alive; `what` is nested.
  Status check_depth(std::string_view what) const;
  class Nesting {  // counts bodies inside of each other
   public:
    explicit Nesting(TextParser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;

   private:
    TextParser& parser_;
  };

 private:
  // Its mesh is declared in the head.
  struct ShardingText {
    Label mesh;
    Sharding sharding;
  };
  struct Parameter {
    Label label;
    TypeText type;
    std::vector<ShardingText> shardings;
    std::vector<std::pair<size_t, uint32_t>> donations;  // offset of the number, the number
  };
  // One graph or region while it is read.
  struct Scope {
    explicit Scope(std::string_view name) : graph(std::string(name)) {}
    Graph graph;
    LabelTable labels;
    std::vector<std::pair<size_t, Donation>> donations;
    Shardings shardings;
    // The results of the statement at hand; kept for their memory.
    std::vector<Label> results;
    std::vector<ValueId> values;                     // operands
    std::vector<std::pair<size_t, Token>> literals;  // numbers in the place of operands
  };
  struct ConstantText {
    enum { list, splat, hex, weight } kind = list;
    std::vector<std::string_view> words;
  };

  Result<Type> uncached_type(const TypeText& text);
  Status declare(const Token& name, int64_t min, int64_t max, int64_t step);
  void forget_symbols();

  // The text before a body.
  struct Head {
    std::vector<Parameter> parameters;
    bool has_results = false;
    size_t arrow = 0;
    std::vector<TypeText> results;
  };
  Result<Head> head();
  Result<Graph> graph_of(std::string_view name, const Head& head);  // the body at hand

  Result<std::vector<Parameter>> signature();
  Status donations(Parameter& parameter);
  Status add_parameter(Scope& scope, const Parameter& parameter);
  Result<std::vector<TypeText>> result_types();
  Status body(Scope& scope);

  // parse_sharding.cc
  Result<std::string> axis_name();
  Status meshes();
  Result<AxisPart> axis_part();
  Result<std::vector<AxisPart>> axis_list();
  Result<DimSharding> dim_sharding();
  Result<Sharding> sharding_dims();
  Result<std::vector<ShardingText>> shardings();
  Result<Sharding> resolved(const ShardingText& text, Type type);
  Status add_shardings(Scope& scope, const std::vector<ShardingText>& texts, ValueId value);
  Status output_sharding(Scope& scope, ValueId output, uint32_t index);

  Status check_outputs(const Scope& scope, const std::vector<TypeText>& stated, size_t offset);

  Status statement(Scope& scope);
  Status application(Scope& scope, const Token& word, Opcode opcode);
  Status late_parameter(Scope& scope, const Token& word);
  Status name_results(Scope& scope, const Token& word, ValueRange results);
  Status stated_types(Scope& scope, ValueRange results);
  Status define(Scope& scope, const Label& label, ValueId value);
  Result<ValueId> value(Scope& scope);
  Result<std::vector<GraphRef>> regions(const OpDef& def);

  static bool is_literal(const Token& token);
  Status operands(Scope& scope, const OpDef& def);
  Status resolve_literals(Scope& scope, const OpDef& def);
  Result<Attrs> attributes(Opcode opcode, std::string_view text);

  Status constant(Scope& scope, const Token& word);
  Result<ConstantText> constant_text();
  Result<Tensor> constant_tensor(const ConstantText& text, Type type);
  Result<Tensor> weight(std::string_view name, Type type);

  struct NamedOp {
    std::string_view word;
    Opcode opcode = {};
    size_t uses = 0;
  };
  Result<Opcode> opcode(const Token& word);

  Lexer lexer_;
  ParseOptions options_;
  NamedOp named_op_;
  int depth_ = 0;
  int64_t splat_bytes_ = 0;
  std::vector<Symbol> symbols_;
  std::vector<MeshRef> meshes_;                       // of the graph at hand
  std::deque<std::string> unquoted_;                  // names that are not plain in the source
  std::unordered_map<std::string_view, Type> types_;  // by their text
  std::unordered_map<std::string_view, Op> ops_[kOpcodeCount];  // by the text of the attributes
};

}  // namespace hone
