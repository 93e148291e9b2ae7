#include "base/text.h"
#include "ir/text_printer.h"
#include "program/tiles/bind.h"
#include "program/tiles/tiles.h"

// docs/formats/tiles-text.md describes the language.

namespace hone {

std::string_view name(Exec exec) {
  switch (exec) {
    case Exec::threads: return "threads";
    case Exec::loop: return "for";
    case Exec::unroll: return "unroll";
    case Exec::lanes: return "lanes";
    case Exec::blocks: return "blocks";
  }
  return "";
}

namespace {

using namespace tile;

class TilePrinter {
 public:
  explicit TilePrinter(const TileProgram& program) : program_(program) {
    labels_.resize(program.scalars.size());
    for (const TileIndex& index : program.indices) names_.push_back({index.name, index.high});
  }

  std::string run() {
    out_ = "tiles ";
    append_label(out_, '@', program_.name);
    signature();
    out_ += " {";
    for (const TileBuffer& buffer : program_.buffers) {
      if (buffer.role == BufferRole::shared) local("shared ", buffer);
      if (buffer.role == BufferRole::scratch) local("scratch ", buffer);
      if (buffer.role == BufferRole::block)
        local(buffer.is_swizzled ? "block swizzled " : "block ", buffer);
      if (buffer.role == BufferRole::own) local("own ", buffer);
    }
    indent_ = 2;
    for (const Loop& phase : program_.phases) {
      line(indent_);
      print(phase);
    }
    out_ += "\n}\n";
    return std::move(out_);
  }

 private:
  void signature() {
    parameters([](BufferRole role) { return role == BufferRole::input; });
    out_ += " -> ";
    parameters(is_result);
    TextPrinter(out_, {}).symbols(symbols_of(program_));
  }

  void parameters(bool (*belongs)(BufferRole)) {
    std::string_view separator = "(";
    for (const TileBuffer& buffer : program_.buffers) {
      if (!belongs(buffer.role)) continue;
      out_ += std::exchange(separator, ", ");
      if (buffer.role == BufferRole::update) out_ += "update ";
      declared(buffer);
      if (buffer.is_constant) out_ += " constant";
      if (!buffer.donor) continue;
      out_ += " in ";
      append_label(out_, '@', program_.buffers[*buffer.donor].name);
    }
    out_ += separator == "(" ? "()" : ")";
  }

  void declared(const TileBuffer& buffer) {
    append_label(out_, '@', buffer.name);
    out_ += ": " + buffer.type.to_string();
  }

  void local(std::string_view role, const TileBuffer& buffer) {
    line(2);
    out_ += role;
    declared(buffer);
  }

  void line(int indent) { out_.append(1, '\n').append(static_cast<size_t>(indent), ' '); }

  void scalar(Scalar s) {
    if (!labels_[s]) labels_[s] = next_++;
    out_ += fmt::format("%{}", *labels_[s]);
  }
  void scalars(const std::vector<Scalar>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      out_ += i == 0 ? " " : ", ";
      scalar(list[i]);
    }
  }
  void result(Scalar s) {
    scalar(s);
    out_ += " = ";
  }
  void dtype_of(Scalar s) { out_ += fmt::format(": {}", name(program_.scalars[s])); }

  void access(BufferId buffer, const std::vector<IndexExpr>& index) {
    append_label(out_, '@', program_.buffers[buffer].name);
    out_ += '[';
    for (size_t i = 0; i < index.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += index[i].to_string(names_);
    }
    out_ += ']';
  }
  void guards(const std::vector<Guard>& list) {
    for (size_t i = 0; i < list.size(); ++i)
      out_ += fmt::format("{} {} <= {} < {}", i == 0 ? " if" : " and", list[i].lower.to_string(),
                          list[i].value.to_string(names_), list[i].upper.to_string());
  }

  void print(const Number& s) {
    result(s.result);
    out_ += "number ";
    const double* real = std::get_if<double>(&s.value);
    out_ += real != nullptr ? format_double(*real) : std::to_string(std::get<int64_t>(s.value));
    dtype_of(s.result);
  }
  void print(const Position& s) {
    result(s.result);
    out_ += "position " + s.value.to_string(names_);
    dtype_of(s.result);
  }
  void print(const Compute& s) {
    result(s.result);
    out_ += s.op.name();
    scalars(s.operands);
    const std::string attrs = s.op.attrs_to_string();
    if (!attrs.empty()) out_ += " " + attrs;
  }
  void print(const Fma& s) { sum("fma", s); }
  void print(const Quad& s) { sum("quad", s); }
  void print(const Pair& s) { sum("pair", s); }
  template <class Sum>
  void sum(std::string_view name, const Sum& s) {
    result(s.result);
    out_ += name;
    scalars({s.a, s.b, s.c});
  }
  void print(const Choose& s) {
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    out_ += fmt::format("index {} in {}..{} = ", index.name, index.low.to_string(),
                        (index.high - 1).to_string());
    scalar(s.value);
  }
  void print(const Load& s) {
    result(s.result);
    out_ += s.is_word ? "load word " : "load ";
    access(s.buffer, s.index);
    guards(s.guards);
    if (!s.otherwise) return;
    out_ += " else ";
    scalar(*s.otherwise);
  }
  void print(const Store& s) {
    out_ += "store ";
    access(s.buffer, s.index);
    out_ += " = ";
    scalar(s.value);
    guards(s.guards);
  }
  void print(const Product& s) {
    out_ += "product ";
    access(s.sums, {s.sums_block});
    out_ += ", ";
    access(s.lhs, {s.lhs_block});
    out_ += ", ";
    access(s.rhs, {s.rhs_block});
    if (s.is_first) out_ += ", first";
  }
  void print(const Barrier& /*s*/) { out_ += "barrier"; }
  void print(const WarpCombine& s) {
    out_ += "combine ";
    access(s.buffer, s.index);
    out_ += fmt::format(" by {}", name(s.combine));
  }
  void print(const KernelWait& /*s*/) { out_ += "await kernels"; }
  void print(const BlockVote& s) {
    out_ += fmt::format("vote {} = ", program_.indices[static_cast<size_t>(s.index)].name);
    access(s.buffer, s.at);
  }
  void print(const AsyncCopy& s) {
    out_ += fmt::format("copy {} ", s.count);
    access(s.to, s.to_index);
    out_ += " = ";
    access(s.from, s.from_index);
    guards(s.guards);
  }
  void print(const CopyGroup& /*s*/) { out_ += "group"; }
  void print(const CopyWait& s) { out_ += fmt::format("wait {}", s.open); }
  void print(const MatrixLoad& s) {
    out_ += fmt::format("matrices {} ", s.count);
    access(s.to, s.to_index);
    out_ += " = ";
    access(s.from, s.from_index);
  }
  void print(const WarpProduct& s) {
    out_ += "multiply ";
    access(s.sums, s.sums_index);
    out_ += ", ";
    access(s.lhs, s.lhs_index);
    out_ += ", ";
    access(s.rhs, s.rhs_index);
    out_ += fmt::format(" as {}", name(s.numbers));
  }
  void print(const MbarrierInit& s) {
    out_ += fmt::format("init {} ", s.arrivals);
    access(s.buffer, s.index);
  }
  void print(const MbarrierExpect& s) {
    out_ += fmt::format("expect {} ", s.bytes);
    access(s.buffer, s.index);
  }
  void print(const MbarrierWait& s) {
    out_ += "await ";
    access(s.buffer, s.index);
    out_ += " phase " + s.parity.to_string(names_);
  }
  void print(const TensorCopy& s) {
    out_ += fmt::format("fetch {} ", s.rows);
    access(s.to, s.to_index);
    out_ += " = ";
    access(s.from, s.from_index);
    out_ += fmt::format(" along {} for ", s.axis);
    access(s.barrier, s.barrier_index);
  }
  void print(const ProxyFence& /*s*/) { out_ += "fence"; }
  void print(const GroupProduct& s) {
    out_ += fmt::format("multiply {} ", s.columns);
    access(s.sums, s.sums_index);
    out_ += s.lhs_across ? ", across " : ", ";
    access(s.lhs, s.lhs_index);
    out_ += s.rhs_across ? ", across " : ", ";
    access(s.rhs, s.rhs_index);
    out_ += fmt::format(" as {}", name(s.numbers));
  }
  void print(const Loop& s) {
    for (size_t i = 0; i < s.carried.size(); ++i) {
      if (i > 0) out_ += ", ";
      scalar(s.carried[i].result);
    }
    if (!s.carried.empty()) out_ += " = ";
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    out_ += fmt::format("{} {} in {}", name(s.exec), index.name, index.high.to_string());
    if (index.span)
      out_ += fmt::format(" from {} to {}", index.span->first.to_string(names_),
                          index.span->end.to_string(names_));
    for (size_t i = 0; i < s.carried.size(); ++i) {
      out_ += i == 0 ? " carry (" : ", ";
      result(s.carried[i].inside);
      scalar(s.carried[i].initial);
      if (s.carried[i].combine) out_ += fmt::format(" by {}", name(*s.carried[i].combine));
    }
    out_ += s.carried.empty() ? " {" : ") {";
    body(s.body, indent_ + 2);
    if (!s.carried.empty()) {
      line(indent_ + 2);
      out_ += "yield";
      std::vector<Scalar> next;
      for (const Carry& carry : s.carried) next.push_back(carry.next);
      scalars(next);
    }
    line(indent_);
    out_ += '}';
  }

  void body(const Block& statements, int indent) {
    const int outer = std::exchange(indent_, indent);
    for (const Statement& statement : statements) {
      line(indent);
      std::visit([&](const auto& s) { print(s); }, statement.kind);
    }
    indent_ = outer;
  }

  const TileProgram& program_;
  std::string out_;
  std::vector<std::optional<uint32_t>> labels_;  // of scalars, numbered as they appear
  uint32_t next_ = 0;
  std::vector<IterDim> names_;
  int indent_ = 0;
};

}  // namespace

std::string print(const TileProgram& program) { return TilePrinter(program).run(); }

}  // namespace hone
