#include <algorithm>
#include <map>

#include "program/devices.h"
#include "tests/program/message_programs.h"
#include "transport/virtual_network.h"

namespace hone::tested {
namespace {

// An act of a device.
struct Act {
  enum class Kind : uint8_t { send, take, wait } kind = Kind::send;
  size_t message = 0;
};

std::vector<Act> draw_acts(const MessagePrograms& drawn, int32_t device, Rng& rng) {
  std::vector<Act> starts;
  for (size_t m = 0; m < drawn.messages.size(); ++m) {
    if (drawn.messages[m].from == device) starts.push_back({Act::Kind::send, m});
    if (drawn.messages[m].to == device) starts.push_back({Act::Kind::take, m});
  }
  rng.shuffle(starts);
  // Messages of one channel are begun in their order on both sides.
  std::map<std::pair<int32_t, uint32_t>, std::vector<size_t>> channels[2];
  const auto channel = [&](const Act& act) -> std::vector<size_t>& {
    const DrawnMessage& message = drawn.messages[act.message];
    const bool sends = act.kind == Act::Kind::send;
    return channels[sends ? 1 : 0][{sends ? message.to : message.from, message.tag}];
  };
  for (const Act& act : starts) channel(act).push_back(act.message);
  for (auto& side : channels)
    for (auto& [key, list] : side) std::ranges::sort(list, std::greater<>());
  for (Act& act : starts) {
    std::vector<size_t>& left = channel(act);
    act.message = left.back();
    left.pop_back();
  }
  std::vector<Act> acts, open;
  const auto wait = [&](size_t i) {
    acts.push_back({Act::Kind::wait, open[i].message});
    open.erase(open.begin() + static_cast<ptrdiff_t>(i));
  };
  for (const Act& act : starts) {
    acts.push_back(act);
    open.push_back(act);
    while (!drawn.is_right && !open.empty() && rng.chance(0.4)) wait(rng.below(open.size()));
  }
  while (!open.empty()) wait(rng.below(open.size()));
  return acts;
}

std::string program_text(MessagePrograms& drawn, int32_t device, Rng& rng) {
  const std::vector<Act> acts = draw_acts(drawn, device, rng);
  std::vector<std::string> inputs, outputs;
  std::string commands;
  std::map<size_t, size_t> began;
  for (size_t c = 0; c < acts.size(); ++c) {
    const auto& [kind, m] = acts[c];
    const DrawnMessage& message = drawn.messages[m];
    const bool sends = message.from == device;
    const std::string buffer = fmt::format("%m{}", m);
    const std::string port = fmt::format("{}: u8[{}]", buffer, message.bytes);
    std::string what =
        fmt::format("wait {} ({}) -> ({})", began[m], sends ? buffer : "", sends ? "" : buffer);
    if (kind != Act::Kind::wait) {
      what = fmt::format("{} {} tag {} ({})", sends ? "send to" : "receive from",
                         sends ? message.to : message.from, message.tag, buffer);
      began[m] = c;
      (sends ? inputs : outputs).push_back(port);
      (sends ? drawn.sent : drawn.taken)[static_cast<size_t>(device)].push_back(m);
    }
    commands += fmt::format("    {} @m{} = {}{}\n", c, m, what,
                            c == 0 ? "" : fmt::format(" after {}", c - 1));
  }
  return fmt::format(
      "program @p{} on {} {{\n  threads 1\n  frame @main({}) -> ({}) {{\n{}  }}\n}}\n", device,
      device, fmt::join(inputs, ", "), fmt::join(outputs, ", "), commands);
}

std::byte byte_of(size_t message, int64_t at) {
  return static_cast<std::byte>(17 * message + 3 * static_cast<size_t>(at) + 1);
}

using Bytes = std::vector<std::byte>;

Bytes room(const MessagePrograms& drawn, const std::vector<size_t>& messages) {
  Bytes bytes;
  for (const size_t m : messages)
    for (int64_t i = 0; i < drawn.messages[m].bytes; ++i) bytes.push_back(byte_of(m, i));
  return bytes;
}

Status run_once(const MessagePrograms& drawn, const std::vector<DeviceProgram>& steps, bool buffers,
                const ChooseEvent& choose) {
  std::vector<Bytes> inputs, outputs;
  std::vector<StepMemory> memory;
  for (size_t d = 0; d < steps.size(); ++d) {
    inputs.push_back(room(drawn, drawn.sent[d]));
    outputs.emplace_back(static_cast<size_t>(steps[d].output), std::byte{0});
  }
  for (size_t d = 0; d < steps.size(); ++d)
    memory.push_back({DType::u8, inputs[d], outputs[d], {}});
  VirtualNetwork network(drawn.devices, {.buffers = buffers});
  HONE_TRY(run_virtually(steps, network, memory, choose));
  for (size_t d = 0; d < steps.size(); ++d)
    if (outputs[d] != room(drawn, drawn.taken[d]))
      return bad_input("device {} has other bytes than were sent to it", d);
  return {};
}

}  // namespace

MessagePrograms draw_message_programs(Rng& rng, int64_t most) {
  MessagePrograms drawn;
  drawn.devices = static_cast<int32_t>(rng.between(2, 3));
  drawn.is_right = rng.chance(0.4);
  const int64_t count = rng.between(1, most);
  for (int64_t m = 0; m < count; ++m) {
    DrawnMessage message;
    message.from = static_cast<int32_t>(rng.between(0, drawn.devices - 1));
    message.to =
        static_cast<int32_t>((message.from + rng.between(1, drawn.devices - 1)) % drawn.devices);
    message.tag = static_cast<uint32_t>(rng.between(0, 2));
    message.bytes = rng.between(1, 4);
    drawn.messages.push_back(message);
  }
  drawn.sent.resize(static_cast<size_t>(drawn.devices));
  drawn.taken.resize(static_cast<size_t>(drawn.devices));
  for (int32_t d = 0; d < drawn.devices; ++d) drawn.text += program_text(drawn, d, rng);
  return drawn;
}

std::string message_fault(Rng& rng) {
  const MessagePrograms drawn = draw_message_programs(rng, 4);
  const auto fault = [&](std::string_view what) { return fmt::format("{}\n{}", what, drawn.text); };
  const Result<DevicePrograms> programs = parse_device_programs(drawn.text);
  if (!programs.ok()) return fault(programs.error().to_string());
  if (const Status good = verify(*programs); !good.ok()) return fault(good.error().to_string());
  const Status checked = check_no_deadlock(*programs, drawn.devices);
  if (drawn.is_right && !checked.ok()) return fault(checked.error().to_string());
  const std::vector<DeviceProgram> steps = steps_of(*programs, drawn.devices).value();
  const Status plain = run_once(drawn, steps, false, nullptr);
  if (plain.ok() != checked.ok())
    return fault(plain.ok() ? "refused, but it ends: " + checked.error().to_string()
                            : plain.error().to_string());
  if (!checked.ok()) return "";
  const bool buffers = rng.chance(0.5);
  const Result<Exploration> seen = explore(
      100, [&](const ChooseEvent& choose) { return run_once(drawn, steps, buffers, choose); });
  return seen.ok() ? "" : fault(seen.error().to_string());
}

}  // namespace hone::tested
