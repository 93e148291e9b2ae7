#include <functional>
#include <map>

#include "base/text.h"
#include "ir/text_parser.h"
#include "kernel/schedule_text.h"
#include "plan/collectives.h"
#include "program/device_programs.h"
#include "program/frame.h"
#include "program/program.h"
#include "program/tiles/parser.h"
#include "transport/transport.h"

// Recursive descent. verify() checks the form; here only names and types are found.

namespace hone {

namespace program {
namespace {

class ProgramParser {
 public:
  ProgramParser(std::string_view text, const ParseOptions& options) : text_(text, options) {}

  Result<Program> run() {
    Program program = HONE_TRY(one_program());
    if (text_.peek().kind != TokenKind::end) return text_.expected("the end of the text");
    return program;
  }

  // "program @a on 0, 2 { ... } program @b on 1 { ... }"
  Result<DevicePrograms> run_all() {
    DevicePrograms all;
    std::map<int64_t, uint32_t> by_device;
    do {
      const Token token = text_.peek();
      devices_.clear();
      says_devices_ = true;
      all.programs.push_back(HONE_TRY(one_program()));
      const auto number = static_cast<uint32_t>(all.programs.size() - 1);
      if (devices_.empty() && (number > 0 || text_.peek().kind != TokenKind::end))
        return text_.at(token, bad_input("several programs, but '{}' does not say which devices "
                                         "run it",
                                         excerpt(all.programs[number].name))
                                   .with_hint("program @NAME on 0, 1 {"));
      for (const int32_t device : devices_)
        if (!by_device.emplace(device, number).second)
          return text_.at(token, bad_input("device {} has two programs", device));
    } while (text_.peek().kind != TokenKind::end);
    for (const auto& [device, number] : by_device) {
      if (device != std::ssize(all.of_device))
        return text_.at(text_.peek(), bad_input("there is a program for device {}, but none for "
                                                "device {}",
                                                device, all.of_device.size()));
      all.of_device.push_back(number);
    }
    return all;
  }

 private:
  Result<Program> one_program() {
    program_ = {};
    kernels_.clear();
    frames_.clear();
    HONE_TRY(text_.expect("program"));
    program_.name = HONE_TRY(text_.label(TokenKind::global, "the program's name")).name;
    if (says_devices_ && text_.eat("on")) {
      do devices_.push_back(HONE_TRY(device("a device")));
      while (text_.eat(","));
    }
    HONE_TRY(text_.expect("{"));
    HONE_TRY(text_.expect("threads"));
    program_.threads = HONE_TRY(text_.integer("the number of threads"));
    while (text_.peek().is("schedule") || text_.peek().is("tiles")) HONE_TRY(kernel());
    while (text_.peek().is("frame")) HONE_TRY(frame());
    if (program_.main == nullptr) return text_.expected("a frame");
    if (all_frames(program_.main).size() != frames_.size())
      return text_.at(text_.peek(),
                      bad_input("there are frames that @{} does not run", program_.main->name));
    if (!text_.peek().is("}")) return text_.expected("a frame or '}'");
    HONE_TRY(text_.expect("}"));
    return std::move(program_);
  }

  struct Known {
    FrameRef frame;
    int depth = 0;
  };
  // The frame at hand.
  struct Scope {
    Frame frame;
    LabelTable labels;
    int depth = 1;
  };

  Status kernel() {
    std::optional<Schedule> schedule;
    if (text_.eat("schedule")) schedule = HONE_TRY(parse_schedule(text_));
    const Token token = text_.peek();
    TileProgram tiles = HONE_TRY(parse_tiles(text_));
    const auto id = static_cast<KernelId>(program_.kernels.size());
    if (!kernels_.emplace(tiles.name, id).second)
      return text_.at(token, bad_input("two kernels are called '{}'", excerpt(tiles.name)));
    const uint64_t hash = tiles_hash(tiles);
    program_.kernels.push_back(
        {.hash = hash, .tiles = std::move(tiles), .schedule = std::move(schedule)});
    return {};
  }

  // ---- Frames and buffers ----------------------------------------------------------------------

  Status frame() {
    HONE_TRY(text_.expect("frame"));
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::global, "the frame's name"));
    Scope scope;
    scope.frame.name = label.name;
    std::vector<TextParser::TypeText> types;
    HONE_TRY(parameters(scope, Role::input, types));
    HONE_TRY(text_.expect("->"));
    HONE_TRY(parameters(scope, Role::output, types));
    HONE_TRY(text_.where());
    for (size_t i = 0; i < types.size(); ++i) {
      const Type type = HONE_TRY(text_.type(types[i]));
      scope.frame.buffers[i].type = type;
    }
    HONE_TRY(text_.expect("{"));
    while (std::optional<Role> role = role_word()) HONE_TRY(buffer(scope, *role));
    while (text_.peek().kind == TokenKind::number) HONE_TRY(command(scope));
    if (!text_.peek().is("}")) return text_.expected("a buffer, a command or '}'");
    HONE_TRY(text_.expect("}"));
    program_.main = std::make_shared<const Frame>(std::move(scope.frame));
    if (!frames_.try_emplace(program_.main->name, program_.main, scope.depth).second)
      return text_.at(label.token, bad_input("two frames are called {}", label.token.text));
    return {};
  }

  Status parameters(Scope& scope, Role role, std::vector<TextParser::TypeText>& types) {
    HONE_TRY(text_.expect("("));
    if (text_.eat(")")) return {};
    do {
      Buffer& buffer = HONE_TRY(define(scope, role)).get();
      buffer.role = role;
      HONE_TRY(text_.expect(":"));
      types.push_back(HONE_TRY(text_.type_text()));
      if (role == Role::output && text_.eat("in")) buffer.donor = HONE_TRY(use(scope));
    } while (text_.eat(","));
    return text_.expect(")");
  }

  std::optional<Role> role_word() {
    for (Role role : {Role::constant, Role::temporary, Role::view})
      if (text_.eat(name(role))) return role;
    return std::nullopt;
  }

  Result<std::reference_wrapper<Buffer>> define(Scope& scope, Role role) {
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::value, "a buffer, like %x"));
    const auto id = static_cast<BufferId>(scope.frame.buffers.size());
    if (label.is_number || !scope.labels.define(label.name, false, id))
      return text_.at(label.token, bad_input("{} cannot name a buffer here", label.token.text));
    scope.frame.buffers.push_back({.name = std::string(label.name), .type = {}, .role = role});
    return std::ref(scope.frame.buffers.back());
  }

  Status buffer(Scope& scope, Role role) {
    Buffer& buffer = HONE_TRY(define(scope, role)).get();
    if (role == Role::constant) {
      HONE_TRY(text_.expect("="));
      buffer.value = HONE_TRY(text_.tensor());
      buffer.type = buffer.value.type();
      return {};
    }
    HONE_TRY(text_.expect(":"));
    const TextParser::TypeText type = HONE_TRY(text_.type_text());
    buffer.type = HONE_TRY(text_.type(type));
    if (role == Role::view) {
      HONE_TRY(text_.expect("="));
      buffer.view.of = HONE_TRY(use(scope));
      buffer.view.offset = HONE_TRY(text_.dim("the number of bytes"));
    } else if (text_.eat("at")) {
      buffer.offset = HONE_TRY(text_.integer("an offset in bytes"));
    }
    return {};
  }

  Result<BufferId> use(Scope& scope) {
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::value, "a buffer, like %x"));
    if (std::optional<uint32_t> found = scope.labels.find(label.name, label.is_number))
      return *found;
    return text_.at(label.token, bad_input("there is no buffer {} here", label.token.text)
                                     .with_hint(scope.labels.hint(label.name)));
  }

  // ---- Commands --------------------------------------------------------------------------------

  Status command(Scope& scope) {
    const Token number = text_.peek();
    if (HONE_TRY(text_.integer(
            "the command's number")) != static_cast<int64_t>(scope.frame.commands.size()))
      return text_.at(number, bad_input("command {} is number {}", scope.frame.commands.size(),
                                        excerpt(number.text)));
    Command command;
    command.name = HONE_TRY(text_.label(TokenKind::global, "the command's name")).name;
    HONE_TRY(text_.expect("="));
    if (text_.eat("launch"))
      command.kind = HONE_TRY(launch(scope));
    else if (text_.eat("copy"))
      command.kind = HONE_TRY(copy(scope));
    else if (text_.eat("call"))
      command.kind = HONE_TRY(call(scope));
    else if (text_.eat("branch"))
      command.kind = HONE_TRY(branch(scope));
    else if (text_.eat("while"))
      command.kind = HONE_TRY(loop(scope));
    else if (text_.eat("scan"))
      command.kind = HONE_TRY(scan(scope));
    else if (text_.eat("start"))
      command.kind = HONE_TRY(start(scope));
    else if (text_.eat("wait"))
      command.kind = HONE_TRY(wait(scope));
    else if (text_.eat("device_index"))
      command.kind = HONE_TRY(device_index(scope));
    else if (text_.eat("send"))
      command.kind = HONE_TRY(send(scope));
    else if (text_.eat("receive"))
      command.kind = HONE_TRY(receive(scope));
    else
      return text_.expected(
          "launch, copy, call, branch, while, scan, start, wait, device_index, send or receive");
    HONE_TRY(after(scope, command.after));
    scope.frame.commands.push_back(std::move(command));
    return {};
  }

  Status after(const Scope& scope, std::vector<CommandId>& commands) {
    if (!text_.eat("after")) return {};
    do {
      const Token token = text_.peek();
      const int64_t number = HONE_TRY(text_.integer("the number of a command"));
      if (number < 0 || number >= static_cast<int64_t>(scope.frame.commands.size()))
        return text_.at(token, bad_input("there is no earlier command {}", number));
      commands.push_back(static_cast<CommandId>(number));
    } while (text_.eat(","));
    return {};
  }

  Result<Launch> launch(Scope& scope) {
    Launch launch;
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::global, "a kernel, like @k"));
    auto found = kernels_.find(label.name);
    if (found == kernels_.end())
      return text_.at(label.token, bad_input("there is no kernel {}", label.token.text));
    launch.kernel = found->second;
    HONE_TRY(lists(scope, {&launch.inputs}, {&launch.outputs}));
    return launch;
  }

  Result<Copy> copy(Scope& scope) {
    const Token token = text_.peek();
    std::vector<BufferId> from, to;
    HONE_TRY(lists(scope, {&from}, {&to}));
    if (from.size() != 1 || to.size() != 1)
      return text_.at(token, bad_input("one buffer is copied to another one"));
    return Copy{from[0], to[0]};
  }

  Result<Call> call(Scope& scope) {
    Call call;
    call.frame = HONE_TRY(frame_label(scope));
    HONE_TRY(lists(scope, {&call.inputs}, {&call.outputs}));
    return call;
  }

  Result<Branch> branch(Scope& scope) {
    Branch branch;
    branch.condition = HONE_TRY(use(scope));
    HONE_TRY(text_.expect("then"));
    branch.on_true = HONE_TRY(frame_label(scope));
    HONE_TRY(text_.expect("else"));
    branch.on_false = HONE_TRY(frame_label(scope));
    HONE_TRY(lists(scope, {&branch.inputs}, {&branch.outputs}));
    return branch;
  }

  Result<Loop> loop(Scope& scope) {
    Loop loop;
    loop.test = HONE_TRY(frame_label(scope));
    loop.condition = HONE_TRY(use(scope));
    HONE_TRY(text_.expect("do"));
    loop.body = HONE_TRY(frame_label(scope));
    HONE_TRY(lists(scope, {&loop.state}, {&loop.next}));
    return loop;
  }

  Result<Scan> scan(Scope& scope) {
    Scan scan;
    scan.trips = HONE_TRY(text_.dim("the number of steps"));
    scan.reverse = text_.eat("reverse");
    HONE_TRY(text_.expect("do"));
    scan.body = HONE_TRY(frame_label(scope));
    HONE_TRY(lists(scope, {&scan.state, &scan.xs}, {&scan.next, &scan.ys}));
    return scan;
  }

  // "all_reduce sum in 2 [0, 2, 1, 3] by ring, 4 pieces (%x) -> (%y)"
  Result<Start> start(Scope& scope) {
    Start start;
    const Token word = text_.peek();
    const std::optional<CollectiveKind> kind = collective_kind_from_name(word.text);
    if (!kind) return text_.expected("a collective, like all_reduce");
    text_.take();
    start.collective.kind = *kind;
    if (combines(*kind)) {
      const std::optional<Combine> combine = combine_from_name(text_.peek().text);
      if (!combine) return text_.expected("sum, product, max, min, and or or");
      text_.take();
      start.collective.combine = *combine;
    }
    if (*kind == CollectiveKind::permute) {
      const std::vector<int32_t> ids = HONE_TRY(devices());
      if (ids.size() % 2 != 0)
        return text_.at(word,
                        bad_input("a permute has {} devices, which make no pairs", ids.size()));
      for (size_t i = 0; i < ids.size(); i += 2)
        start.collective.pairs.emplace_back(ids[i], ids[i + 1]);
    }
    if (*kind != CollectiveKind::permute || text_.peek().is("in")) {
      HONE_TRY(text_.expect("in"));
      start.collective.group_size = HONE_TRY(device("the number of devices of a group"));
      if (text_.peek().is("[")) start.collective.groups = HONE_TRY(devices());
    }
    HONE_TRY(text_.expect("by"));
    start.collective.schedule = HONE_TRY(parse_collective_schedule(text_));
    const Copy ends = HONE_TRY(copy(scope));
    start.from = ends.from;
    start.to = ends.to;
    return start;
  }

  Result<int32_t> device(std::string_view what) {
    return static_cast<int32_t>(HONE_TRY(text_.integer(what, 0, Transport::kMaxDevices)));
  }
  Result<std::vector<int32_t>> devices() {
    std::vector<int32_t> list;
    HONE_TRY(text_.expect("["));
    if (text_.eat("]")) return list;
    do list.push_back(HONE_TRY(device("a device")));
    while (text_.eat(","));
    HONE_TRY(text_.expect("]"));
    return list;
  }

  Result<Wait> wait(Scope& scope) {
    const Token token = text_.peek();
    const int64_t number = HONE_TRY(text_.integer("the number of a command"));
    if (number < 0 || number >= static_cast<int64_t>(scope.frame.commands.size()))
      return text_.at(token, bad_input("there is no earlier command {}", number));
    std::vector<BufferId> from, to;
    HONE_TRY(lists(scope, {&from}, {&to}));
    if (from.size() > 1 || to.size() > 1)
      return text_.at(token, bad_input("a wait has one buffer on each side, or none"));
    Wait wait = {static_cast<CommandId>(number), {}, {}};
    if (!from.empty()) wait.from = from[0];
    if (!to.empty()) wait.to = to[0];
    return wait;
  }

  Result<BufferId> one(Scope& scope) {
    HONE_TRY(text_.expect("("));
    const BufferId buffer = HONE_TRY(use(scope));
    HONE_TRY(text_.expect(")"));
    return buffer;
  }
  Result<DeviceIndex> device_index(Scope& scope) { return DeviceIndex{HONE_TRY(one(scope))}; }

  // "to 1 tag 3 (%x)"
  Result<Send> send(Scope& scope) {
    const Message message = HONE_TRY(this->message("to"));
    return Send{message, HONE_TRY(one(scope))};
  }
  Result<Receive> receive(Scope& scope) {
    const Message message = HONE_TRY(this->message("from"));
    return Receive{message, HONE_TRY(one(scope))};
  }
  Result<Message> message(std::string_view direction) {
    HONE_TRY(text_.expect(direction));
    Message message;
    message.peer = HONE_TRY(device("a device"));
    HONE_TRY(text_.expect("tag"));
    message.tag = static_cast<uint32_t>(HONE_TRY(text_.integer("a tag", 0, Message::kMaxTag)));
    return message;
  }

  // "(%a, %b over %c) -> (%d over %e)"
  using Lists = std::initializer_list<std::vector<BufferId>*>;
  Status lists(Scope& scope, Lists from, Lists to) {
    HONE_TRY(side(scope, from));
    HONE_TRY(text_.expect("->"));
    return side(scope, to);
  }
  Status side(Scope& scope, Lists lists) {
    HONE_TRY(text_.expect("("));
    for (auto list = lists.begin(); list != lists.end(); ++list) {
      if (list != lists.begin()) HONE_TRY(text_.expect("over"));
      if (text_.peek().kind != TokenKind::value) continue;
      do (*list)->push_back(HONE_TRY(use(scope)));
      while (text_.eat(","));
    }
    return text_.expect(")");
  }

  Result<FrameRef> frame_label(Scope& scope) {
    const TextParser::Label label = HONE_TRY(text_.label(TokenKind::global, "a frame, like @f"));
    auto found = frames_.find(label.name);
    if (found == frames_.end())
      return text_.at(label.token, bad_input("there is no earlier frame {}", label.token.text));
    scope.depth = std::max(scope.depth, found->second.depth + 1);
    if (scope.depth > kMaxFrameDepth)
      return text_.at(label.token,
                      over_limit("frames are nested more than {} deep", kMaxFrameDepth));
    return found->second.frame;
  }

  TextParser text_;
  bool says_devices_ = false;     // programs may say which devices run them
  std::vector<int32_t> devices_;  // of the program at hand
  Program program_;
  std::map<std::string, KernelId, std::less<>> kernels_;
  std::map<std::string, Known, std::less<>> frames_;
};

}  // namespace
}  // namespace program

Result<Program> parse_program(std::string_view text, const ParseOptions& options) {
  return program::ProgramParser(text, options).run();
}

Result<DevicePrograms> parse_device_programs(std::string_view text, const ParseOptions& options) {
  return program::ProgramParser(text, options).run_all();
}

}  // namespace hone
