#include <algorithm>

#include "ir/model_text.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"

namespace hone {
namespace {

class ModelParser {
 public:
  ModelParser(std::string_view text, const ParseOptions& options) : parser_(text, options) {}

  Result<Model> parse() {
    HONE_TRY(parser_.header());
    Model model;
    if (parser_.peek().is("graph")) {
      model = model_of(HONE_TRY(parser_.graph()));
    } else if (parser_.eat("model")) {
      HONE_TRY(definition(model));
    } else {
      return parser_.expected("'model' or 'graph'");
    }
    if (parser_.peek().kind != TokenKind::end) return parser_.expected("the end of the text");
    return model;
  }

 private:
  using Names = std::vector<std::string>;

  Status definition(Model& model) {
    std::string_view what = "the name of the model, like @main";
    model.name = HONE_TRY(parser_.label(TokenKind::global, what)).name;
    std::vector<TextParser::TypeText> input_types, output_types;
    HONE_TRY(signature(model.inputs, input_types));
    HONE_TRY(parser_.expect("->"));
    HONE_TRY(signature(model.outputs, output_types));
    HONE_TRY(parser_.where());
    for (size_t i = 0; i < model.inputs.size(); ++i)
      model.inputs[i].type = HONE_TRY(parser_.type(input_types[i]));
    for (size_t i = 0; i < model.outputs.size(); ++i)
      model.outputs[i].type = HONE_TRY(parser_.type(output_types[i]));
    HONE_TRY(parser_.expect("{"));
    while (!parser_.eat("}")) model.segments.push_back(HONE_TRY(segment()));
    return {};
  }

  Status signature(std::vector<ModelValue>& values, std::vector<TextParser::TypeText>& types) {
    HONE_TRY(parser_.expect("("));
    if (parser_.eat(")")) return {};
    do {
      values.push_back({HONE_TRY(name()), Type()});
      HONE_TRY(parser_.expect(":"));
      types.push_back(HONE_TRY(parser_.type_text()));
    } while (parser_.eat(","));
    return parser_.expect(")");
  }

  Result<std::string> name() {
    TextParser::Label label = HONE_TRY(parser_.label(TokenKind::value, "a value, like %x"));
    if (label.is_number)
      return parser_.at(label.token, bad_input("values of a model have names, not numbers"));
    return std::string(label.name);
  }

  // "%a, %b", perhaps none.
  Result<Names> names() {
    Names list;
    if (parser_.peek().kind != TokenKind::value) return list;
    do list.push_back(HONE_TRY(name()));
    while (parser_.eat(","));
    return list;
  }

  Status optional_name(std::string_view word, std::string& into) {
    if (parser_.eat(word)) into = HONE_TRY(name());
    return {};
  }

  Result<Segment> segment() {
    TextParser::Nesting nesting(parser_);
    HONE_TRY(parser_.check_depth("segments"));
    Names results;
    if (parser_.peek().kind == TokenKind::value || parser_.peek().is("_")) {
      do results.push_back(parser_.eat("_") ? "" : HONE_TRY(name()));
      while (parser_.eat(","));
      HONE_TRY(parser_.expect("="));
    }
    if (parser_.eat("run")) return Segment{HONE_TRY(run(std::move(results)))};
    if (parser_.eat("if")) return Segment{HONE_TRY(choice(std::move(results)))};
    if (parser_.eat("loop")) return Segment{HONE_TRY(loop(std::move(results)))};
    return parser_.expected("'run', 'if' or 'loop'");
  }

  Result<GraphSegment> run(Names outputs) {
    GraphSegment segment;
    segment.inputs = HONE_TRY(names());
    segment.outputs = std::move(outputs);
    if (parser_.eat("crop")) {
      do segment.crops.push_back(HONE_TRY(crop(segment.outputs)));
      while (parser_.eat(","));
    }
    segment.graph = std::make_shared<const Graph>(HONE_TRY(parser_.graph()));
    return segment;
  }

  // "%boxes[0] to %count"
  Result<Crop> crop(const Names& outputs) {
    Crop crop = {};
    crop.output = HONE_TRY(output(outputs));
    HONE_TRY(parser_.expect("["));
    Token token = parser_.peek();
    int64_t axis = HONE_TRY(parser_.integer("an axis"));
    if (axis < 0 || axis >= kMaxRank)
      return parser_.at(token, bad_input("there is no axis {}", axis));
    crop.axis = static_cast<uint32_t>(axis);
    HONE_TRY(parser_.expect("]"));
    HONE_TRY(parser_.expect("to"));
    crop.count = HONE_TRY(output(outputs));
    return crop;
  }

  Result<uint32_t> output(const Names& outputs) {
    Token token = parser_.peek();
    std::string wanted = HONE_TRY(name());
    auto found = std::find(outputs.begin(), outputs.end(), wanted);
    if (found == outputs.end())
      return parser_.at(token, bad_input("{} is not a result of this segment", token.text));
    return static_cast<uint32_t>(found - outputs.begin());
  }

  Result<IfSegment> choice(Names results) {
    IfSegment segment;
    segment.condition = HONE_TRY(name());
    segment.results = std::move(results);
    HONE_TRY(body(segment.on_true));
    HONE_TRY(parser_.expect("}"));
    HONE_TRY(parser_.expect("else"));
    HONE_TRY(body(segment.on_false));
    HONE_TRY(parser_.expect("}"));
    return segment;
  }

  Result<LoopSegment> loop(Names results) {
    LoopSegment segment;
    segment.results = std::move(results);
    HONE_TRY(optional_name("trip", segment.trip_count));
    HONE_TRY(optional_name("while", segment.condition));
    HONE_TRY(optional_name("counter", segment.counter));
    if (parser_.eat("with")) {
      do {
        LoopSegment::Carried& carried = segment.carried.emplace_back();
        carried.name = HONE_TRY(name());
        HONE_TRY(parser_.expect("="));
        carried.initial = HONE_TRY(name());
      } while (parser_.eat(","));
    }
    if (parser_.eat("grow")) segment.grown = HONE_TRY(names());
    HONE_TRY(body(segment.body));
    Token token = parser_.peek();
    if (segment.body.results.size() != segment.carried.size())
      return parser_.at(token, bad_input("the loop carries {} values, but its body yields {}",
                                         segment.carried.size(), segment.body.results.size()));
    if (parser_.eat("grow"))
      for (std::string& piece : HONE_TRY(names())) segment.body.results.push_back(std::move(piece));
    HONE_TRY(optional_name("while", segment.next_condition));
    HONE_TRY(parser_.expect("}"));
    return segment;
  }

  // "{ segments yield %a, %b", without what may follow.
  Status body(Body& body) {
    HONE_TRY(parser_.expect("{"));
    while (!parser_.eat("yield")) body.segments.push_back(HONE_TRY(segment()));
    body.results = HONE_TRY(names());
    return {};
  }

  TextParser parser_;
};

}  // namespace

Result<Model> parse_model(std::string_view text, const ParseOptions& options) {
  return ModelParser(text, options).parse();
}

}  // namespace hone
