#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "ir/text_printer.h"
#include "kernel/schedule_text.h"
#include "program/device_programs.h"
#include "program/frame.h"
#include "program/program.h"

// docs/formats/program-text.md describes the language.

namespace hone {

namespace program {

std::string_view name(Role role) {
  switch (role) {
    case Role::input: return "input";
    case Role::output: return "output";
    case Role::constant: return "constant";
    case Role::temporary: return "temporary";
    case Role::view: return "view";
  }
  return "";
}

namespace {

class FramePrinter {
 public:
  FramePrinter(const Program& program, const Frame& frame, std::string& out,
               const PrintOptions& options)
      : program_(program), frame_(frame), out_(out), text_(out, options) {}

  void run() {
    out_ += "\n  frame ";
    append_label(out_, '@', frame_.name);
    parameters(Role::input);
    out_ += " -> ";
    parameters(Role::output);
    text_.symbols(symbols_of(frame_));
    out_ += " {";
    for (const Buffer& b : frame_.buffers)
      if (b.role != Role::input && b.role != Role::output) buffer(b);
    for (size_t c = 0; c < frame_.commands.size(); ++c) command(c);
    out_ += "\n  }";
  }

 private:
  void parameters(Role role) {
    std::string_view separator = "(";
    for (const Buffer& buffer : frame_.buffers) {
      if (buffer.role != role) continue;
      out_ += std::exchange(separator, ", ");
      declared(buffer);
      if (!buffer.donor) continue;
      out_ += " in ";
      label(*buffer.donor);
    }
    out_ += separator == "(" ? "()" : ")";
  }

  void declared(const Buffer& buffer) {
    append_label(out_, '%', buffer.name);
    out_ += ": " + buffer.type.to_string();
  }

  void buffer(const Buffer& b) {
    out_ += fmt::format("\n    {} ", name(b.role));
    if (b.role == Role::constant) {
      append_label(out_, '%', b.name);
      out_ += " =";
      text_.constant(b.value, b.name);
      out_ += " : " + b.type.to_string();
      return;
    }
    declared(b);
    if (b.role == Role::view) {
      out_ += " = ";
      label(b.view.of);
      out_ += fmt::format(" [{}]", b.view.offset.to_string());
    } else if (b.offset) {
      out_ += fmt::format(" at {}", *b.offset);
    }
  }

  void label(BufferId buffer) { append_label(out_, '%', frame_.buffers[buffer].name); }
  void list(const std::vector<BufferId>& buffers) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (i > 0) out_ += ", ";
      label(buffers[i]);
    }
  }
  // "(%a) -> (%b)", of a scan "(%a over %xs) -> (%b over %ys)"
  void lists(const std::vector<BufferId>& from, const std::vector<BufferId>& to,
             const std::vector<BufferId>* xs = nullptr, const std::vector<BufferId>* ys = nullptr) {
    side("(", from, xs);
    side(" -> (", to, ys);
  }
  void side(std::string_view open, const std::vector<BufferId>& buffers,
            const std::vector<BufferId>* stacks) {
    out_ += open;
    list(buffers);
    if (stacks != nullptr) {
      out_ += buffers.empty() ? "over" : " over";
      if (!stacks->empty()) out_ += ' ';
      list(*stacks);
    }
    out_ += ')';
  }
  void frame(std::string_view word, const FrameRef& frame) {
    out_ += word;
    append_label(out_, '@', frame->name);
  }

  void command(size_t c) {
    const Command& command = frame_.commands[c];
    out_ += fmt::format("\n    {} ", c);
    append_label(out_, '@', command.name);
    out_ += " = ";
    std::visit([&](const auto& kind) { print(kind); }, command.kind);
    if (!command.after.empty()) out_ += " after " + join(command.after, ", ");
  }

  void print(const Launch& c) {
    out_ += "launch ";
    append_label(out_, '@', program_.kernels[c.kernel].tiles.name);
    lists(c.inputs, c.outputs);
  }
  void print(const Start& c) {
    out_ += fmt::format("start {} ", to_string(c.collective));
    lists({c.from}, {c.to});
  }
  void print(const Wait& c) {
    out_ += fmt::format("wait {} ", c.start);
    lists(reads_of({{}, c, {}}), writes_of({{}, c, {}}));
  }
  void print(const DeviceIndex& c) {
    out_ += "device_index (";
    label(c.to);
    out_ += ')';
  }
  void print(const Send& c) {
    out_ += fmt::format("send to {} tag {} (", c.message.peer, c.message.tag);
    label(c.from);
    out_ += ')';
  }
  void print(const Receive& c) {
    out_ += fmt::format("receive from {} tag {} (", c.message.peer, c.message.tag);
    label(c.to);
    out_ += ')';
  }
  void print(const Copy& c) {
    out_ += "copy ";
    lists({c.from}, {c.to});
  }
  void print(const Call& c) {
    frame("call ", c.frame);
    lists(c.inputs, c.outputs);
  }
  void print(const Branch& c) {
    out_ += "branch ";
    label(c.condition);
    frame(" then ", c.on_true);
    frame(" else ", c.on_false);
    lists(c.inputs, c.outputs);
  }
  void print(const Loop& c) {
    frame("while ", c.test);
    out_ += ' ';
    label(c.condition);
    frame(" do ", c.body);
    lists(c.state, c.next);
  }
  void print(const Scan& c) {
    out_ += fmt::format("scan [{}]", c.trips.to_string());
    frame(c.reverse ? " reverse do " : " do ", c.body);
    lists(c.state, c.next, &c.xs, &c.ys);
  }

  const Program& program_;
  const Frame& frame_;
  std::string& out_;
  TextPrinter text_;
};

// The devices that run it; none: it is for all.
std::string printed(const Program& program, const std::vector<int32_t>& devices,
                    const PrintOptions& options) {
  std::string out = "program ";
  append_label(out, '@', program.name);
  if (!devices.empty()) out += " on " + join(devices, ", ");
  out += fmt::format(" {{\n  threads {}", program.threads);
  for (const Kernel& kernel : program.kernels) {
    if (kernel.schedule) out += "\n  schedule " + print(*kernel.schedule);
    const std::string text = print(kernel.tiles);
    for (std::string_view line : split_lines(text)) (out += "\n  ") += line;
  }
  for (const FrameRef& frame : all_frames(program.main))
    FramePrinter(program, *frame, out, options).run();
  out += "\n}\n";
  return out;
}

}  // namespace
}  // namespace program

std::string print(const Program& program, const PrintOptions& options) {
  return program::printed(program, {}, options);
}

std::string print(const DevicePrograms& programs, const PrintOptions& options) {
  std::string out;
  for (uint32_t number = 0; number < programs.programs.size(); ++number) {
    std::vector<int32_t> devices;
    for (size_t d = 0; d < programs.of_device.size(); ++d)
      if (programs.of_device[d] == number) devices.push_back(static_cast<int32_t>(d));
    out += program::printed(programs.programs[number], devices, options);
  }
  return out;
}

uint64_t tiles_hash(const TileProgram& tiles) {
  const std::string text = print(tiles);
  std::string head = "tiles ";
  append_label(head, '@', tiles.name);
  return hash_string(std::string_view(text).substr(head.size()));
}

}  // namespace hone
