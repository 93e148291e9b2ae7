#include <algorithm>

#include "base/text.h"
#include "ir/text.h"
#include "ir/text_constant.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"

namespace hone {

// ---- Graphs ----------------------------------------------------------------------------------

Result<Graph> TextParser::graph() {
  HONE_TRY(expect("graph"));
  Nesting nesting(*this);
  Label name = HONE_TRY(label(TokenKind::global, "the name of the graph, like @main"));
  const Head parsed = HONE_TRY(head());
  return graph_of(name.name, parsed);
}

Result<std::vector<Graph>> TextParser::alternatives(std::string_view name) {
  Nesting nesting(*this);
  const Head parsed = HONE_TRY(head());
  std::vector<Graph> graphs;
  do {
    if (!graphs.empty()) HONE_TRY(expect(">"));
    graphs.push_back(HONE_TRY(graph_of(name, parsed)));
  } while (eat("="));
  return graphs;
}

Result<TextParser::Head> TextParser::head() {
  Head head;
  head.parameters = HONE_TRY(signature());
  head.arrow = peek().offset;
  head.has_results = eat("->");
  if (head.has_results) head.results = HONE_TRY(result_types());
  HONE_TRY(where());
  HONE_TRY(meshes());
  return head;
}

Result<Graph> TextParser::graph_of(std::string_view name, const Head& head) {
  Scope scope(name);
  for (const Parameter& parameter : head.parameters) HONE_TRY(add_parameter(scope, parameter));
  HONE_TRY(body(scope));
  if (head.has_results) HONE_TRY(check_outputs(scope, head.results, head.arrow));
  return std::move(scope.graph);
}

Result<std::vector<TextParser::Parameter>> TextParser::signature() {
  std::vector<Parameter> parameters;
  HONE_TRY(expect("("));
  if (eat(")")) return parameters;
  do {
    Parameter& parameter = parameters.emplace_back();
    parameter.label = HONE_TRY(label(TokenKind::value, "a parameter, like %x"));
    HONE_TRY(expect(":"));
    parameter.type = HONE_TRY(type_text());
    parameter.shardings = HONE_TRY(shardings());
    HONE_TRY(donations(parameter));
  } while (eat(","));
  HONE_TRY(expect(")"));
  return parameters;
}

Status TextParser::donations(Parameter& parameter) {
  while (eat("donate")) {
    size_t offset = peek().offset;
    int64_t output = HONE_TRY(integer("the number of an output"));
    if (output < 0 || output >= UINT32_MAX)
      return at(offset, bad_input("there is no output {}", output));
    parameter.donations.emplace_back(offset, static_cast<uint32_t>(output));
  }
  return {};
}

Status TextParser::add_parameter(Scope& scope, const Parameter& parameter) {
  Type parameter_type = HONE_TRY(type(parameter.type));
  for (auto [offset, output] : parameter.donations) {
    uint32_t input = static_cast<uint32_t>(scope.graph.inputs().size());
    scope.donations.emplace_back(offset, Donation{input, output});
  }
  const ValueId value = scope.graph.add_parameter(parameter_type);
  HONE_TRY(add_shardings(scope, parameter.shardings, value));
  return define(scope, parameter.label, value);
}

Result<std::vector<TextParser::TypeText>> TextParser::result_types() {
  std::vector<TypeText> types;
  if (!eat("(")) {
    types.push_back(HONE_TRY(type_text()));
    return types;
  }
  if (eat(")")) return types;
  do types.push_back(HONE_TRY(type_text()));
  while (eat(","));
  HONE_TRY(expect(")"));
  return types;
}

Status TextParser::body(Scope& scope) {
  HONE_TRY(check_depth("regions"));
  HONE_TRY(expect("{"));
  while (!eat("return")) HONE_TRY(statement(scope));
  std::vector<ValueId> outputs;
  if (peek().kind == TokenKind::value) {
    do {
      outputs.push_back(HONE_TRY(value(scope)));
      HONE_TRY(output_sharding(scope, outputs.back(), static_cast<uint32_t>(outputs.size() - 1)));
    } while (eat(","));
  }
  HONE_TRY(expect("}"));
  for (auto [offset, donation] : scope.donations) {
    if (donation.output >= outputs.size())
      return at(offset,
                bad_input("there is no output {}, only {}", donation.output, outputs.size()));
    scope.graph.add_donation(donation.input, donation.output);
  }
  scope.graph.set_outputs(std::move(outputs));
  if (!scope.shardings.empty())
    scope.graph.set_shardings(std::make_shared<const Shardings>(std::move(scope.shardings)));
  return {};
}

Status TextParser::check_outputs(const Scope& scope, const std::vector<TypeText>& stated,
                                 size_t offset) {
  std::vector<Type> outputs = scope.graph.output_types();
  if (outputs.size() != stated.size())
    return at(offset, bad_input("the graph returns {} values, but its head declares {}",
                                outputs.size(), stated.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Type wanted = HONE_TRY(type(stated[i]));
    if (wanted != outputs[i])
      return at(stated[i].offset, bad_input("output {} is {}, but the head declares {}", i,
                                            outputs[i].to_string(), wanted.to_string()));
  }
  return {};
}

// ---- Statements ------------------------------------------------------------------------------

Status TextParser::define(Scope& scope, const Label& label, ValueId value) {
  if (!scope.labels.define(label.name, label.is_number, value.index))
    return at(label.token, bad_input("{} is defined twice", label.token.text));
  if (!label.is_number) scope.graph.set_name(value, label.name);
  return {};
}

Result<ValueId> TextParser::value(Scope& scope) {
  Label wanted = HONE_TRY(label(TokenKind::value, "a value, like %x"));
  std::optional<uint32_t> index = scope.labels.find(wanted.name, wanted.is_number);
  if (!index) {
    return at(wanted.token, bad_input("{} is not defined here", wanted.token.text)
                                .with_hint(wanted.is_number ? "" : scope.labels.hint(wanted.name)));
  }
  return ValueId{*index};
}

Status TextParser::statement(Scope& scope) {
  scope.results.clear();
  if (peek().kind == TokenKind::value) {
    do scope.results.push_back(HONE_TRY(label(TokenKind::value, "a name for a result")));
    while (eat(","));
    HONE_TRY(expect("="));
  }
  if (peek().kind != TokenKind::word)
    return expected(scope.results.empty() ? "a statement or 'return'" : "an op");
  const Token word = take();
  const Opcode opcode = HONE_TRY(this->opcode(word));
  if (opcode == Opcode::constant) return constant(scope, word);
  if (opcode == Opcode::parameter) return late_parameter(scope, word);
  return application(scope, word, opcode);
}

Result<Opcode> TextParser::opcode(const Token& word) {
  const bool may_stand_for_another = !named_op_.word.empty();
  if (may_stand_for_another && word.text == named_op_.word) {
    ++named_op_.uses;
    return named_op_.opcode;
  }
  const std::optional<Opcode> opcode = opcode_from_name(word.text);
  if (!opcode) {
    std::vector<std::string_view> names;
    for (int i = 0; i < kOpcodeCount; ++i) names.push_back(name(static_cast<Opcode>(i)));
    std::string_view shown = word.text.substr(0, 40);
    return at(word, bad_input("there is no op '{}'", shown).with_hint(did_you_mean(shown, names)));
  }
  if (may_stand_for_another && *opcode == named_op_.opcode)
    return at(word, bad_input("'{}' is one of the ops that '{}' stands for", word.text,
                              excerpt(named_op_.word)));
  return *opcode;
}

Status TextParser::application(Scope& scope, const Token& word, Opcode opcode) {
  const OpDef& def = op_def(opcode);
  HONE_TRY(operands(scope, def));
  Op applied = HONE_TRY(op(word, opcode));
  std::vector<GraphRef> nested;
  if (!def.regions.empty()) nested = HONE_TRY(regions(def));
  HONE_TRY(resolve_literals(scope, def));
  Result<NodeId> node = scope.graph.append(applied, scope.values, std::move(nested));
  if (!node.ok()) return at(word, std::move(node).error());
  ValueRange results = scope.graph.results(*node);
  HONE_TRY(name_results(scope, word, results));
  return stated_types(scope, results);
}

Status TextParser::name_results(Scope& scope, const Token& word, ValueRange results) {
  if (scope.results.size() != results.size())
    return at(word, bad_input("{} has {} results, {} are named", word.text, results.size(),
                              scope.results.size()));
  for (size_t i = 0; i < results.size(); ++i) HONE_TRY(define(scope, scope.results[i], results[i]));
  return {};
}

Status TextParser::stated_types(Scope& scope, ValueRange results) {
  if (results.size() == 0 || !eat(":")) return {};
  for (size_t i = 0; i < results.size(); ++i) {
    if (i > 0) HONE_TRY(expect(","));
    TypeText text = HONE_TRY(type_text());
    Type stated = HONE_TRY(type(text));
    Type actual = scope.graph.type(results[i]);
    if (stated != actual)
      return at(text.offset,
                bad_input("{} is {}, but the text declares {}", scope.results[i].token.text,
                          actual.to_string(), stated.to_string()));
    HONE_TRY(add_shardings(scope, HONE_TRY(shardings()), results[i]));
  }
  return {};
}

Status TextParser::late_parameter(Scope& scope, const Token& word) {
  if (scope.results.size() != 1)
    return at(word, bad_input("parameter has 1 result, {} are named", scope.results.size()));
  Parameter parameter;
  parameter.label = scope.results[0];
  HONE_TRY(donations(parameter));
  HONE_TRY(expect(":"));
  parameter.type = HONE_TRY(type_text());
  parameter.shardings = HONE_TRY(shardings());
  return add_parameter(scope, parameter);
}

Result<std::vector<GraphRef>> TextParser::regions(const OpDef& def) {
  std::vector<GraphRef> graphs;
  for (std::string_view name : region_names(def)) {
    HONE_TRY(expect(name));
    if (peek().kind == TokenKind::global) name = HONE_TRY(label(TokenKind::global, "")).name;
    Nesting nesting(*this);
    Scope scope(name);
    for (const Parameter& parameter : HONE_TRY(signature()))
      HONE_TRY(add_parameter(scope, parameter));
    HONE_TRY(body(scope));
    graphs.push_back(std::make_shared<const Graph>(std::move(scope.graph)));
  }
  return graphs;
}

// ---- Operands and attributes -----------------------------------------------------------------

Status TextParser::operands(Scope& scope, const OpDef& def) {
  scope.values.clear();
  scope.literals.clear();
  if (def.operands.empty()) return {};  // what follows may be the next statement
  do {
    const Token& token = peek();
    bool is_first = scope.values.empty();
    if (token.kind == TokenKind::value) {
      scope.values.push_back(HONE_TRY(value(scope)));
    } else if (eat("_")) {
      scope.values.push_back(ValueId::none());
    } else if (is_literal(token)) {
      scope.literals.emplace_back(scope.values.size(), take());
      scope.values.push_back(ValueId::none());
    } else if (!is_first) {
      return expected("an operand");
    }
  } while (eat(","));
  return {};
}

bool TextParser::is_literal(const Token& token) {
  return token.kind == TokenKind::number || token.is("true") || token.is("false") ||
         token.is("inf") || token.is("nan");
}

// Numbers in the place of operands become constants. An elementwise op gives them the type of its
// last other operand; where an op wants a scalar, they are scalars.
Status TextParser::resolve_literals(Scope& scope, const OpDef& def) {
  if (scope.literals.empty()) return {};
  const Token& first = scope.literals[0].second;
  Type like;
  if (is_elementwise(def.opcode)) {
    for (ValueId v : scope.values)
      if (!v.is_none()) like = scope.graph.type(v);
    if (!like) return at(first, bad_input("no operand tells the type of {}", first.text));
  } else if (def.opcode == Opcode::pad && !scope.values[0].is_none()) {
    like = Type::scalar(scope.graph.type(scope.values[0]).dtype());
  } else if (def.opcode == Opcode::dynamic_slice || def.opcode == Opcode::dynamic_update) {
    like = Type::scalar(DType::i64);
  } else {
    return at(first, bad_input("{} does not take a number as an operand", name(def.opcode))
                         .with_hint("write a constant and use its name"));
  }
  for (const auto& [index, token] : scope.literals) {
    Result<Tensor> scalar = parse_splat(Type::scalar(like.dtype()), token.text);
    if (!scalar.ok()) return at(token, std::move(scalar).error());
    ValueId v = scope.graph.add_constant(std::move(*scalar));
    if (like.rank() > 0) {
      Dims dims(like.dims().begin(), like.dims().end());
      Op stretch = HONE_TRY(Op::make(Opcode::broadcast, {{"dims", dims}, {"map", Ints()}}));
      v = scope.graph.result(HONE_TRY(scope.graph.append(stretch, {&v, 1})));
    }
    scope.values[index] = v;
  }
  return {};
}

Result<Op> TextParser::op(const Token& word, Opcode opcode) {
  size_t offset = peek().offset;
  std::string_view text;
  if (peek().is("{")) {
    text = lexer_.take_brackets();
    if (text.empty()) return at(offset, bad_input("the attributes lack their closing '}}'"));
  }
  Op& known = ops_[static_cast<size_t>(opcode)][text];
  if (known) return known;
  Attrs attrs;
  if (!text.empty()) attrs = HONE_TRY(attributes(opcode, text.substr(1, text.size() - 2)));
  Result<Op> made = Op::make(opcode, std::move(attrs));
  if (!made.ok()) return at(text.empty() ? word.offset : offset, std::move(made).error());
  return known = *made;
}

Result<Attrs> TextParser::attributes(Opcode opcode, std::string_view text) {
  const OpDef& def = op_def(opcode);
  Attrs attrs;
  if (trim(text).empty()) return attrs;
  for (std::string_view piece : split_outside_brackets(text)) {
    size_t offset = static_cast<size_t>(piece.data() - lexer_.source().data());
    size_t equals = piece.find('=');
    std::string_view word = trim(piece.substr(0, equals)).substr(0, 40);
    if (equals == std::string_view::npos || word.empty())
      return at(offset, bad_input("expected 'name = value', found '{}'", escape(word)));
    auto has_name = [word](const AttrSpec& spec) { return spec.name == word; };
    auto spec = std::find_if(def.attrs.begin(), def.attrs.end(), has_name);
    if (spec == def.attrs.end()) {
      std::vector<std::string_view> names;
      for (const AttrSpec& known : def.attrs) names.push_back(known.name);
      return at(offset, bad_input("{} has no attribute '{}'", name(opcode), escape(word))
                            .with_hint(did_you_mean(word, names)));
    }
    for (const auto& [known, value] : attrs)
      if (known == word) return at(offset, bad_input("attribute '{}' is given twice", word));
    Result<AttrValue> value = parse_attr(spec->kind, piece.substr(equals + 1), symbols_);
    if (!value.ok())
      return at(offset, std::move(value).error().about(fmt::format("attribute '{}'", word)));
    attrs.emplace_back(spec->name, std::move(*value));
  }
  return attrs;
}

// ---- Constants -------------------------------------------------------------------------------

Status TextParser::constant(Scope& scope, const Token& word) {
  if (scope.results.size() != 1)
    return at(word, bad_input("constant has 1 result, {} are named", scope.results.size()));
  const ValueId value = scope.graph.add_constant(HONE_TRY(tensor()));
  HONE_TRY(add_shardings(scope, HONE_TRY(shardings()), value));
  return define(scope, scope.results[0], value);
}

Result<Tensor> TextParser::tensor() {
  size_t offset = peek().offset;
  ConstantText text = HONE_TRY(constant_text());
  HONE_TRY(expect(":"));
  TypeText stated = HONE_TRY(type_text());
  Type constant_type = HONE_TRY(type(stated));
  if (!constant_type.is_static())
    return at(stated.offset,
              bad_input("a constant of type {}, which is not static", constant_type.to_string()));
  Result<Tensor> value = constant_tensor(text, constant_type);
  if (!value.ok()) return at(offset, std::move(value).error());
  return value;
}

Result<TextParser::ConstantText> TextParser::constant_text() {
  ConstantText text;
  if (is_literal(peek())) {
    text.kind = ConstantText::splat;
    text.words.push_back(take().text);
  } else if (eat("hex")) {
    text.kind = ConstantText::hex;
    if (peek().kind != TokenKind::string) return expected("hex digits in quotes");
    std::string_view digits = take().text;
    text.words.push_back(digits.substr(1, digits.size() - 2));
  } else if (peek().kind == TokenKind::global) {
    text.kind = ConstantText::weight;
    text.words.push_back(HONE_TRY(label(TokenKind::global, "")).name);
  } else if (eat("[")) {
    if (eat("]")) return text;
    do {
      if (!is_literal(peek())) return expected("a number");
      text.words.push_back(take().text);
    } while (eat(","));
    HONE_TRY(expect("]"));
  } else if (peek().is("..")) {
    return at(peek(), bad_input("the text was printed without the numbers of this constant"));
  } else {
    return expected("a number, [numbers], @weight or hex \"...\"");
  }
  return text;
}

Result<Tensor> TextParser::constant_tensor(const ConstantText& text, Type type) {
  switch (text.kind) {
    case ConstantText::list: return parse_elements(type, text.words);
    case ConstantText::hex: return parse_hex(type, text.words[0]);
    case ConstantText::weight: return weight(text.words[0], type);
    case ConstantText::splat: break;
  }
  if (type.static_bytes() > kSplatBytesPerText - splat_bytes_) {
    return over_limit("constants written as one number take more than {}",
                      format_bytes(kSplatBytesPerText))
        .with_hint("broadcast a scalar constant");
  }
  splat_bytes_ += type.static_bytes();
  return parse_splat(type, text.words[0]);
}

Result<Tensor> TextParser::weight(std::string_view name, Type type) {
  if (options_.weights == nullptr)
    return bad_input("weight '{}' is missing: the text comes without weights", escape(name));
  const Tensor* found = options_.weights->find(name);
  if (found == nullptr) return bad_input("there is no weight '{}'", escape(name));
  if (found->type() == type) return *found;
  // Element types that numpy lacks are stored as raw bytes.
  bool is_raw = found->dtype() == DType::u8 && found->type().rank() == 1 &&
                found->byte_size() == type.static_bytes();
  if (is_raw && (is_storage_only(type.dtype()) || type.dtype() == DType::bf16))
    return found->viewed_as(type);
  return bad_input("weight '{}' is {}, but the text declares {}", escape(name),
                   found->type().to_string(), type.to_string());
}

// ---- Whole texts -----------------------------------------------------------------------------

Result<std::vector<Graph>> parse_graphs(std::string_view text, const ParseOptions& options) {
  TextParser parser(text, options);
  HONE_TRY(parser.header());
  std::vector<Graph> graphs;
  while (parser.peek().kind != TokenKind::end) graphs.push_back(HONE_TRY(parser.graph()));
  return graphs;
}

Result<Graph> parse_graph(std::string_view text, const ParseOptions& options) {
  TextParser parser(text, options);
  HONE_TRY(parser.header());
  Graph graph = HONE_TRY(parser.graph());
  if (parser.peek().kind != TokenKind::end) return parser.expected("the end of the text");
  return graph;
}

Result<std::string> weights_file_of(std::string_view text, const ParseOptions& options) {
  return TextParser(text, options).header();
}

}  // namespace hone
