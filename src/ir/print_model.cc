#include <algorithm>

#include "ir/model_text.h"
#include "ir/text_printer.h"

namespace hone {
namespace {

class ModelPrinter {
 public:
  explicit ModelPrinter(const PrintOptions& options) : text_(out_, options) {}

  std::string print(const Model& model) {
    out_ += "model ";
    append_label(out_, '@', model.name);
    signature(model.inputs);
    out_ += " -> ";
    signature(model.outputs);
    symbols(model);
    out_ += " {";
    segments(model.segments, 2);
    out_ += "\n}\n";
    return std::move(out_);
  }

 private:
  void line(int indent) { out_.append(1, '\n').append(static_cast<size_t>(indent), ' '); }
  void value(std::string_view name) { append_label(out_, '%', name); }

  // "%a, _, %b" behind the given word; nothing for no names.
  template <class Names>
  void names(std::string_view before, const Names& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      out_ += i == 0 ? before : ", ";
      if (list[i].empty()) {
        out_ += '_';
      } else {
        value(list[i]);
      }
    }
  }
  void optional_name(std::string_view before, const std::string& name) {
    names(before, std::span(&name, name.empty() ? 0 : 1));
  }

  void signature(const std::vector<ModelValue>& values) {
    out_ += '(';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      value(values[i].name);
      out_ += ": ";
      text_.type(values[i].type);
    }
    out_ += ')';
  }

  void symbols(const Model& model) {
    std::vector<Symbol> found;
    auto collect = [&found](Dim dim) {
      for (Symbol s : dim.symbols())
        if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
    };
    for (const ModelValue& v : model.inputs) std::ranges::for_each(v.type.dims(), collect);
    for (const ModelValue& v : model.outputs) std::ranges::for_each(v.type.dims(), collect);
    text_.symbols(found);
  }

  void segments(const std::vector<Segment>& list, int indent) {
    for (const Segment& s : list) {
      line(indent);
      std::visit([&](const auto& kind) { segment(kind, indent); }, s.kind);
    }
  }

  void results(const std::vector<std::string>& list) {
    names("", list);
    if (!list.empty()) out_ += " = ";
  }

  void segment(const GraphSegment& run, int indent) {
    results(run.outputs);
    out_ += "run";
    names(" ", run.inputs);
    for (size_t i = 0; i < run.crops.size(); ++i) {
      out_ += i == 0 ? " crop " : ", ";
      value(run.outputs[run.crops[i].output]);
      out_ += fmt::format("[{}] to ", run.crops[i].axis);
      value(run.outputs[run.crops[i].count]);
    }
    line(indent + 2);
    text_.graph(*run.graph, indent + 2);
  }

  void segment(const IfSegment& choice, int indent) {
    results(choice.results);
    out_ += "if ";
    value(choice.condition);
    open(choice.on_true, indent);
    names(" ", choice.on_true.results);
    close(indent);
    out_ += " else";
    open(choice.on_false, indent);
    names(" ", choice.on_false.results);
    close(indent);
  }

  void segment(const LoopSegment& loop, int indent) {
    results(loop.results);
    out_ += "loop";
    optional_name(" trip ", loop.trip_count);
    optional_name(" while ", loop.condition);
    optional_name(" counter ", loop.counter);
    for (size_t i = 0; i < loop.carried.size(); ++i) {
      out_ += i == 0 ? " with " : ", ";
      value(loop.carried[i].name);
      out_ += " = ";
      value(loop.carried[i].initial);
    }
    names(" grow ", loop.grown);
    open(loop.body, indent);
    std::span<const std::string> yielded = loop.body.results;
    names(" ", yielded.first(loop.carried.size()));
    names(" grow ", yielded.subspan(loop.carried.size()));
    optional_name(" while ", loop.next_condition);
    close(indent);
  }

  void segment(const DeferredSegment&, int) { HONE_CHECK(false, "a deferred segment has no text"); }

  void open(const Body& body, int indent) {
    out_ += " {";
    segments(body.segments, indent + 2);
    line(indent + 2);
    out_ += "yield";
  }
  void close(int indent) {
    line(indent);
    out_ += '}';
  }

  std::string out_;
  TextPrinter text_;
};

}  // namespace

const Graph* plain_graph(const Model& model) {
  const Graph* graph = single_graph(model);
  if (graph == nullptr) return nullptr;
  const Model plain = model_of(*graph);
  const bool is_same =
      plain.name == model.name && plain.inputs == model.inputs && plain.outputs == model.outputs;
  return is_same ? graph : nullptr;
}

Result<std::string> print(const Model& model, const PrintOptions& options) {
  if (const DeferredSegment* deferred = first_deferred(model)) {
    return unsupported("segment '{}' has no type until its input sizes are known",
                       deferred->source == nullptr ? "" : deferred->source->describe())
        .within(fmt::format("model '{}'", model.name))
        .with_hint("bind them with --dim or --shape");
  }
  return ModelPrinter(options).print(model);
}

}  // namespace hone
