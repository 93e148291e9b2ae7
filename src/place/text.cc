#include "place/text.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "base/text_lexer.h"
#include "target/text_fields.h"

namespace hone {
namespace {

// Bytes on a link may be a fraction: files of others say times.
constexpr Unit kMoved[] = {{"B", 0}, {"kB", 3}, {"MB", 6}, {"GB", 9}, {"TB", 12}};
constexpr Unit kPorts[] = {{"ns/B", -9}, {"s/B", 0}, {"us/B", -6}, {"ms/B", -3}};

class PlaceParser {
 public:
  PlaceParser(std::string_view text, std::string_view file)
      : text_(text), file_(file), in_(text, file) {}

  Result<PlaceProblem> parse() {
    in_.skip_empty_lines();
    begin_ = in_.offset();
    HONE_TRY(in_.expect("placement"));
    problem_.name = HONE_TRY(in_.string("the problem's name in quotes"));
    HONE_TRY(in_.expect("{"));
    HONE_TRY(in_.end_of_line());
    HONE_TRY(read_system());
    while (in_.peek() != "}") HONE_TRY(row());
    in_.take();
    in_.skip_empty_lines();
    if (!in_.peek().empty()) return in_.expected("the end of the text");
    for (PlaceTensor& tensor : problem_.tensors) std::ranges::sort(tensor.users);
    const Status status = check(problem_);
    if (!status.ok()) return Error(status.error()).within(std::string(file_));
    return std::move(problem_);
  }

 private:
  // The block is read as a text of its own, in which blanks keep its place.
  Status read_system() {
    if (in_.peek() != "system") return in_.expected("the system, 'system \"NAME\" {'");
    const size_t from = in_.offset();
    int64_t depth = 0;
    size_t end = from;
    for (bool is_open = false; !is_open || depth > 0;) {
      const std::string_view word = in_.peek();
      if (word.empty()) return in_.expected("'}' behind the system");
      if (word == "\n" && !is_open) return in_.expected("'{'");
      is_open |= word == "{";
      depth += word == "{" ? 1 : word == "}" ? -1 : 0;
      end = in_.offset() + word.size();
      in_.take();
    }
    std::string block(text_.substr(0, end));
    for (size_t i = 0; i < from; ++i)
      if (block[i] != '\n') block[i] = ' ';
    problem_.system = HONE_TRY(parse_system(block, file_));
    return in_.end_of_line();
  }

  Status row() {
    if (in_.peek() == "node") return read_node();
    if (in_.peek() == "tensor") return read_tensor();
    if (in_.peek() == "fusion") return read_fusion();
    if (in_.peek() == "ports") return read_ports();
    return in_.expected("a row, which begins with node, tensor, fusion or ports, or '}'");
  }

  // ports = 0.5 ns/B, 0 ns/B
  Status read_ports() {
    const size_t place = in_.offset();
    in_.take();
    if (!problem_.ports.empty()) return in_.at(place, bad_input("ports are there twice"));
    HONE_TRY(in_.expect("="));
    do problem_.ports.push_back(HONE_TRY(in_.quantity(kPorts, 0, 1)));
    while (take(","));
    return in_.end_of_line();
  }

  bool take(std::string_view word) {
    if (in_.peek() != word) return false;
    in_.take();
    return true;
  }

  // node 3 "conv" = 3 ms, none, holds 4 MiB, scratch 1 MiB, together 2, on 1, backward
  Status read_node() {
    in_.take();
    const size_t place = in_.offset();
    PlaceNode node;
    node.id = HONE_TRY(in_.integer(0, INT64_MAX));
    if (problem_.nodes.size() == kMaxPlaceNodes)
      return in_.at(place, over_limit("more than {} nodes", kMaxPlaceNodes));
    if (!numbers_.emplace(node.id, problem_.nodes.size()).second)
      return in_.at(place, bad_input("there is a node {} already", node.id));
    if (in_.peek() != "=") node.name = HONE_TRY(in_.string("a name in quotes, or '='"));
    HONE_TRY(in_.expect("="));
    for (size_t i = 0; i < problem_.system.targets.size(); ++i) {
      if (i > 0) HONE_TRY(in_.expect(","));
      node.seconds.push_back(take("none") ? kCannotRun
                                          : HONE_TRY(in_.quantity(kSeconds, 0, kMaxPlaceSeconds)));
    }
    while (take(",")) {
      if (take("backward"))
        node.backward = true;
      else if (take("holds"))
        node.held = HONE_TRY(in_.bytes(kMaxPlaceHeld));
      else if (take("scratch"))
        node.scratch = HONE_TRY(in_.bytes(kMaxPlaceHeld));
      else if (take("together"))
        node.together = HONE_TRY(in_.integer(0, INT64_MAX));
      else if (take("on"))
        node.pinned = HONE_TRY(in_.integer(0, problem_.system.device_count() - 1));
      else
        return in_.expected("holds, scratch, together, on or backward");
    }
    problem_.nodes.push_back(std::move(node));
    return in_.end_of_line();
  }

  Result<uint32_t> node_number() {
    const size_t place = in_.offset();
    const int64_t id = HONE_TRY(in_.integer(0, INT64_MAX));
    const auto found = numbers_.find(id);
    if (found != numbers_.end()) return static_cast<uint32_t>(found->second);
    return in_.at(place, bad_input("there is no node {} before", id));
  }

  // tensor 3 to 4 7 = 12 kB, holds 12 KiB
  Status read_tensor() {
    in_.take();
    PlaceTensor tensor;
    tensor.maker = HONE_TRY(node_number());
    HONE_TRY(in_.expect("to"));
    do {
      const size_t place = in_.offset();
      tensor.users.push_back(HONE_TRY(node_number()));
      if (++uses_ > kMaxPlaceUses)
        return in_.at(place, over_limit("more than {} users of tensors", kMaxPlaceUses));
    } while (in_.peek() != "=");
    in_.take();
    tensor.bytes = HONE_TRY(in_.quantity(kMoved, 0, kMaxPlaceBytes));
    if (take(",")) {
      HONE_TRY(in_.expect("holds"));
      tensor.held = HONE_TRY(in_.bytes(kMaxPlaceHeld));
    }
    problem_.tensors.push_back(std::move(tensor));
    return in_.end_of_line();
  }

  // fusion 3 into 4 = saves 0.5 ms, 0 ms
  Status read_fusion() {
    in_.take();
    const size_t place = in_.offset();
    if (problem_.fusions.size() == kMaxPlaceNodes)
      return in_.at(place, over_limit("more than {} fusions", kMaxPlaceNodes));
    PlaceFusion fusion;
    fusion.maker = HONE_TRY(node_number());
    HONE_TRY(in_.expect("into"));
    fusion.user = HONE_TRY(node_number());
    HONE_TRY(in_.expect("="));
    HONE_TRY(in_.expect("saves"));
    do fusion.saves.push_back(HONE_TRY(in_.quantity(kSeconds, 0, kMaxPlaceSeconds)));
    while (take(","));
    problem_.fusions.push_back(std::move(fusion));
    return in_.end_of_line();
  }

  std::string_view text_;
  std::string_view file_;
  FieldReader in_;
  size_t begin_ = 0;
  PlaceProblem problem_;
  std::unordered_map<int64_t, size_t> numbers_;  // nodes by their ids
  size_t uses_ = 0;
};

std::string node_text(const PlaceNode& node) {
  std::string out = fmt::format("  node {}", node.id);
  if (!node.name.empty()) out += " " + hone::quoted(node.name);
  out += " =";
  for (size_t i = 0; i < node.seconds.size(); ++i)
    out += fmt::format(
        "{} {}", i > 0 ? "," : "",
        node.seconds[i] == kCannotRun ? "none" : with_unit(node.seconds[i], kSeconds[2]));
  if (node.held > 0) out += fmt::format(", holds {}", bytes_text(node.held));
  if (node.scratch > 0) out += fmt::format(", scratch {}", bytes_text(node.scratch));
  if (node.together != kAnywhere) out += fmt::format(", together {}", node.together);
  if (node.pinned != kAnywhere) out += fmt::format(", on {}", node.pinned);
  if (node.backward) out += ", backward";
  return out + "\n";
}

}  // namespace

bool is_place_text(std::string_view text) {
  return Lexer(text.substr(0, std::min(text.size(), size_t{4096}))).peek().is("placement");
}

std::string print(const PlaceProblem& problem) {
  std::string out = fmt::format("placement {} {{\n", hone::quoted(problem.name));
  const std::string system = print(problem.system);
  for (const std::string_view line : split_lines(system)) out += fmt::format("  {}\n", line);
  for (size_t i = 0; i < problem.ports.size(); ++i)
    out += fmt::format("{} {}", i > 0 ? "," : "  ports =", with_unit(problem.ports[i], kPorts[0]));
  if (!problem.ports.empty()) out += "\n";
  for (const PlaceNode& node : problem.nodes) out += node_text(node);
  for (const PlaceTensor& tensor : problem.tensors) {
    out += fmt::format("  tensor {} to", problem.nodes[tensor.maker].id);
    for (const uint32_t user : tensor.users) out += fmt::format(" {}", problem.nodes[user].id);
    out += fmt::format(" = {}", with_unit(tensor.bytes, kMoved[0]));
    if (tensor.held > 0) out += fmt::format(", holds {}", bytes_text(tensor.held));
    out += "\n";
  }
  for (const PlaceFusion& fusion : problem.fusions) {
    out += fmt::format("  fusion {} into {} = saves", problem.nodes[fusion.maker].id,
                       problem.nodes[fusion.user].id);
    for (size_t i = 0; i < fusion.saves.size(); ++i)
      out += fmt::format("{} {}", i > 0 ? "," : "", with_unit(fusion.saves[i], kSeconds[2]));
    out += "\n";
  }
  return out + "}\n";
}

Result<PlaceProblem> parse_place_text(std::string_view text, std::string_view file) {
  if (text.size() > kMaxPlaceText)
    return over_limit("the text of a problem has {} bytes, more than {}", text.size(),
                      kMaxPlaceText)
        .within(std::string(file));
  return PlaceParser(text, file).parse();
}

}  // namespace hone
