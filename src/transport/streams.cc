#include "transport/streams.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/crc32c.h"
#include "base/planted.h"
#include "transport/frame.h"

namespace hone {

int32_t ProcessGroup::first_device(int32_t of_process) const {
  int32_t first = 0;
  for (int32_t i = 0; i < of_process; ++i) first += devices[static_cast<size_t>(i)];
  return first;
}

uint64_t ProcessGroup::hash() const { return Hasher().add_range(devices).value(); }

Status check(const ProcessGroup& group) {
  int64_t total = 0;
  for (const int32_t devices : group.devices) {
    if (devices < 1) return bad_input("a process with {} devices", devices);
    total += devices;
  }
  if (group.process < 0 || group.process >= group.processes())
    return bad_input("process {} of {}", group.process, group.processes());
  if (total > Transport::kMaxDevices)
    return bad_input("{} devices; there are at most {}", total, Transport::kMaxDevices);
  return {};
}

namespace {

constexpr int64_t kCredits = 64;      // small messages to a peer that it has not received yet
constexpr int64_t kCreditBatch = 16;  // of them are told at once
constexpr size_t kMaxOffers = 65536;  // from a peer
constexpr size_t kReadAtOnce = 1 << 20;
constexpr double kFarewell = 1;  // seconds for the last frames of a run

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

std::vector<bool> own_devices(const ProcessGroup& group) {
  std::vector<bool> is_here;
  for (int32_t i = 0; i < group.processes(); ++i)
    is_here.insert(is_here.end(), static_cast<size_t>(group.devices[static_cast<size_t>(i)]),
                   i == group.process);
  return is_here;
}

// A frame on its way out. Its payload is its own, or that of a transfer, which is then moving.
struct Leaving {
  std::array<std::byte, Frame::kHeaderBytes> header = {};
  std::vector<std::byte> own;
  std::span<const std::byte> payload;
  size_t done = 0;  // bytes of header and payload that have left
};
// An offer whose bytes were asked for.
struct Sending {
  uint32_t slot = 0;
  uint64_t number = 0;
  size_t offset = 0;
};
struct Receiving {
  uint32_t slot = 0;
  size_t got = 0;
};

class StreamTransport : public Exchange {
 public:
  StreamTransport(std::unique_ptr<Wires> wires, const ProcessGroup& group,
                  const StreamOptions& options)
      : Exchange(own_devices(group), options.exchange),
        wires_(std::move(wires)),
        group_(group),
        options_(options) {
    for (int32_t i = 0; i < group_.processes(); ++i) {
      process_of_.insert(process_of_.end(),
                         static_cast<size_t>(group_.devices[static_cast<size_t>(i)]), i);
      lines_.push_back(i == group_.process
                           ? nullptr
                           : std::make_unique<Line>(*this, i, wires_->can_be_damaged()));
    }
    std::vector<std::string> names;
    for (const int32_t process : process_of_)
      names.push_back(process == group_.process ? "" : wires_->name(process));
    name_processes(std::move(names));
    mover_ = std::thread([this] { move(); });
  }

  ~StreamTransport() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
      end_by_ = Clock::now() + std::chrono::milliseconds(static_cast<int>(kFarewell * 1000));
    }
    wires_->ring();
    mover_.join();
  }

  std::vector<Peer> peers() const override {
    std::vector<Peer> peers;
    for (int32_t i = 0; i < group_.processes(); ++i) {
      const bool is_here = i == group_.process;
      Peer& peer =
          peers.emplace_back(Peer{is_here ? "this process" : wires_->name(i), {}, is_here});
      const int32_t first = group_.first_device(i);
      for (int32_t k = 0; k < group_.devices[static_cast<size_t>(i)]; ++k)
        peer.devices.push_back(first + k);
    }
    return peers;
  }

 private:
  struct Line : FrameReader::Sink {
    Line(StreamTransport& owner, int32_t process, bool checks)
        : owner_(owner), process_(process), reader_(checks) {}
    Result<std::span<std::byte>> room(const Frame& frame) override {
      return owner_.room(*this, frame);
    }
    Status take(const Frame& frame, std::span<const std::byte> payload) override {
      return owner_.take(*this, frame, payload);
    }

    StreamTransport& owner_;
    const int32_t process_;
    FrameReader reader_;
    std::vector<std::byte> inbox_;  // the payload of a frame that comes
    std::deque<Leaving> leaving_;
    std::deque<Sending> sending_;
    std::optional<Leaving> current_;           // has left in part
    uint64_t offers_ = 0;                      // made
    std::map<uint64_t, uint32_t> offered_;     // slots of sends, by offer
    std::map<uint64_t, Receiving> receiving_;  // by the peer's offer
    uint64_t last_offer_ = 0;                  // of the peer; their numbers ascend
    size_t waiting_offers_ = 0;                // of the peer, that nobody asked for yet
    int64_t credits_ = kCredits;
    int64_t untaken_ = 0;  // small messages of the peer that no receive has met
    int64_t taken_ = 0;    // and those that were met, which it has not been told
    bool is_gone_ = false;
    std::optional<Error> write_fault_;  // the peer takes nothing more; it may have said why
    Clock::time_point heard_ = Clock::now();
    Clock::time_point spoke_ = Clock::now();
  };

  Line& line_of(int32_t device) {
    return *lines_[static_cast<size_t>(process_of_[static_cast<size_t>(device)])];
  }
  std::string describe(const Line& line) const {
    const int32_t first = group_.first_device(line.process_);
    const int32_t count = group_.devices[static_cast<size_t>(line.process_)];
    return count == 1 ? fmt::format("{} (device {})", wires_->name(line.process_), first)
                      : fmt::format("{} (devices {} to {})", wires_->name(line.process_), first,
                                    first + count - 1);
  }

  // ---- What the exchange asks for

  void begin_remote(uint32_t slot) override {
    const Transfer& transfer = at(slot);
    Line& line = line_of(transfer.channel.to);
    if (line.is_gone_) return fail(over_limit("{} has ended", describe(line)));
    Frame frame = {.from = transfer.channel.from,
                   .to = transfer.channel.to,
                   .tag = transfer.channel.tag,
                   .size = transfer.size};
    if (transfer.size <= Frame::kSmallBytes && line.credits_ > 0) {
      --line.credits_;
      frame.kind = FrameKind::small;
      post(line, frame, {transfer.bytes, transfer.size});
      finish(slot, State::done);
    } else {
      if (line.offered_.size() >= kMaxOffers)
        return fail(over_limit("more than {} sends to {} wait", kMaxOffers, describe(line)));
      frame.kind = FrameKind::offer;
      frame.number = ++line.offers_;
      line.offered_.emplace(frame.number, slot);
      post(line, frame, {});
    }
    flush(line);
  }

  void await_remote(uint32_t slot) override {
    const Line& line = line_of(at(slot).channel.from);
    if (line.is_gone_) fail(over_limit("{} has ended", describe(line)));
  }

  void ask_for(uint32_t slot, const Arrival& arrival) override {
    Line& line = *lines_[static_cast<size_t>(arrival.process)];
    --line.waiting_offers_;
    post(line, {.kind = FrameKind::ask, .number = arrival.offer}, {});
    if (arrival.size == 0)
      finish(slot, State::done);
    else
      line.receiving_.emplace(arrival.offer, Receiving{slot, 0});
    flush(line);
  }

  void has_taken(const Arrival& arrival) override {
    Line& line = *lines_[static_cast<size_t>(arrival.process)];
    --line.untaken_;
    if (HONE_PLANT(credits_kept, ++line.taken_ < kCreditBatch, true)) return;
    post(line, {.kind = FrameKind::credit, .number = static_cast<uint64_t>(line.taken_)}, {});
    line.taken_ = 0;
    flush(line);
  }

  // Nobody touches the bytes of transfers any more, and the peers are told.
  void has_failed(const Error& reason) override {
    std::string text = reason.to_string();
    text.resize(std::min(text.size(), Frame::kReasonBytes));
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    for (const std::unique_ptr<Line>& line : lines_) {
      if (line == nullptr) continue;
      for (const auto& [number, slot] : line->offered_) finish(slot, State::failed);
      for (const Sending& sending : line->sending_) finish(sending.slot, State::failed);
      for (const auto& [number, receiving] : line->receiving_)
        finish(receiving.slot, State::failed);
      line->sending_.clear();
      if (line->current_ && line->current_->own.empty()) {
        Leaving& current = *line->current_;
        current.own.assign(current.payload.begin(), current.payload.end());
        current.payload = current.own;
      }
      if (line->is_gone_) continue;
      post(*line, {.kind = FrameKind::end, .number = static_cast<uint64_t>(reason.code())}, bytes);
    }
    end_by_ = Clock::now() + std::chrono::milliseconds(static_cast<int>(kFarewell * 1000));
    wires_->ring();
  }

  void progress() override {
    for (const std::unique_ptr<Line>& line : lines_)
      if (line != nullptr && !is_over()) {
        (void)pump(*line);
        flush(*line);
      }
  }

  // ---- Out

  void post(Line& line, Frame frame, std::span<const std::byte> payload) {
    Leaving leaving;
    leaving.own.assign(payload.begin(), payload.end());
    leaving.payload = leaving.own;
    seal(frame, leaving);
    line.leaving_.push_back(std::move(leaving));
  }

  void seal(Frame frame, Leaving& leaving) {
    frame.payload = static_cast<uint32_t>(leaving.payload.size());
    if (wires_->can_be_damaged()) frame.checksum = crc32c(leaving.payload);
    encode(frame, leaving.header);
  }

  // The next frame; those that carry no bytes of transfers go first.
  bool take_next(Line& line) {
    if (!line.leaving_.empty()) {
      line.current_ = std::move(line.leaving_.front());
      line.current_->payload = line.current_->own;
      line.leaving_.pop_front();
      return true;
    }
    if (line.sending_.empty()) return false;
    Sending& sending = line.sending_.front();
    const Transfer& transfer = at(sending.slot);
    Leaving& leaving = line.current_.emplace();
    leaving.payload = {transfer.bytes + sending.offset,
                       std::min(Frame::kDataBytes, transfer.size - sending.offset)};
    seal({.kind = FrameKind::data, .number = sending.number, .offset = sending.offset}, leaving);
    sending.offset += leaving.payload.size();
    return true;
  }

  // The bytes of a data frame have left: the transfer is complete, or others take turns.
  void end_data(Line& line) {
    const Sending sending = line.sending_.front();
    line.sending_.pop_front();
    if (sending.offset < at(sending.slot).size)
      line.sending_.push_back(sending);
    else
      finish(sending.slot, State::done);
  }

  void flush(Line& line) {
    if (line.is_gone_ || line.write_fault_) return;
    while (line.current_ || take_next(line)) {
      Leaving& current = *line.current_;
      const bool in_header = current.done < current.header.size();
      const auto rest = in_header ? std::span<const std::byte>(current.header).subspan(current.done)
                                  : current.payload.subspan(current.done - current.header.size());
      if (!rest.empty()) {
        const Result<size_t> written = wires_->write(line.process_, rest);
        if (!written.ok()) {
          line.write_fault_ = written.error();
          return wires_->ring();
        }
        current.done += *written;
        line.spoke_ = Clock::now();
        if (*written < rest.size()) {
          if (mover_sleeps_) wires_->ring();  // so that it waits for room
          return;
        }
      }
      if (current.done < current.header.size() + current.payload.size()) continue;
      const bool is_data = current.own.empty() && !current.payload.empty();
      line.current_.reset();
      if (is_data) end_data(line);
    }
  }

  // ---- In

  Result<std::span<std::byte>> room(Line& line, const Frame& frame) {
    if (frame.kind != FrameKind::data) {
      line.inbox_.resize(frame.payload);
      return std::span<std::byte>(line.inbox_);
    }
    const auto found = line.receiving_.find(frame.number);
    if (found == line.receiving_.end())
      return bad_input("it sends bytes of offer {}, for which nobody asked", frame.number);
    const Transfer& transfer = at(found->second.slot);
    const size_t got = found->second.got;
    if (frame.offset != got || frame.payload == 0 || frame.payload > transfer.size - got)
      return bad_input("it sends {} bytes at {} of a message of {} that stands at {}",
                       frame.payload, frame.offset, transfer.size, got);
    return std::span<std::byte>(transfer.bytes + got, frame.payload);
  }

  Status take(Line& line, const Frame& frame, std::span<const std::byte> payload) {
    switch (frame.kind) {
      case FrameKind::small:
      case FrameKind::offer: return take_message(line, frame, payload);
      case FrameKind::ask: return take_ask(line, frame);
      case FrameKind::data: {
        const auto found = line.receiving_.find(frame.number);
        found->second.got += payload.size();
        if (found->second.got < at(found->second.slot).size) return {};
        const uint32_t slot = found->second.slot;
        line.receiving_.erase(found);
        finish(slot, State::done);
        return {};
      }
      case FrameKind::credit:
        if (frame.number > static_cast<uint64_t>(kCredits - line.credits_))
          return bad_input("it received {} messages, and {} were sent", frame.number,
                           kCredits - line.credits_);
        line.credits_ += static_cast<int64_t>(frame.number);
        return {};
      case FrameKind::beat: return {};
      case FrameKind::end: return take_end(line, frame, payload);
      case FrameKind::bye: return take_bye(line);
    }
    return {};
  }

  Status take_message(Line& line, const Frame& frame, std::span<const std::byte> payload) {
    const bool fits = frame.from >= 0 && frame.from < devices() && owns(frame.to) &&
                      process_of_[static_cast<size_t>(frame.from)] == line.process_;
    if (!fits)
      return bad_input("it sends a message from device {} to device {}", frame.from, frame.to);
    const bool is_offer = frame.kind == FrameKind::offer;
    if (is_offer ? ++line.waiting_offers_ > kMaxOffers : ++line.untaken_ > kCredits)
      return bad_input("it sends more messages than it may");
    if (is_offer && frame.number <= std::exchange(line.last_offer_, frame.number))
      return bad_input("it makes offer {} again", frame.number);
    arrive({frame.from, frame.to, frame.tag}, {.size = frame.size,
                                               .bytes = {payload.begin(), payload.end()},
                                               .is_offer = is_offer,
                                               .offer = frame.number,
                                               .process = line.process_});
    return {};
  }

  Status take_ask(Line& line, const Frame& frame) {
    const auto found = line.offered_.find(frame.number);
    if (found == line.offered_.end())
      return bad_input("it asks for offer {}, which it was not made", frame.number);
    const uint32_t slot = found->second;
    line.offered_.erase(found);
    if (at(slot).size == 0) {
      finish(slot, State::done);
      return {};
    }
    at(slot).state.store(State::moving, std::memory_order_relaxed);
    line.sending_.push_back({slot, frame.number, 0});
    return {};
  }

  Status take_end(Line& line, const Frame& frame, std::span<const std::byte> payload) {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    const bool is_code = frame.number >= 1 && frame.number <= 6;
    const auto code = is_code ? static_cast<ErrorCode>(frame.number) : ErrorCode::limit;
    fail(Error(code, fmt::format("{} has given up: {}", describe(line), printable(text))));
    return {};
  }

  // A peer's text: no control characters reach a terminal.
  static std::string printable(std::string text) {
    for (char& c : text)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
    return text;
  }

  Status take_bye(Line& line) {
    line.is_gone_ = true;
    wires_->drop(line.process_);
    if (!line.offered_.empty() || !line.sending_.empty() || !line.receiving_.empty() ||
        waits_for(line))
      fail(over_limit("{} has ended", describe(line)));
    return {};
  }

  bool waits_for(const Line& line) {
    return awaits([&](const Channel& channel) {
      return process_of_[static_cast<size_t>(channel.from)] == line.process_;
    });
  }

  // True: there may be more.
  bool pump(Line& line) {
    if (line.is_gone_ || is_over()) return false;
    const Result<bool> more = line.reader_.read(
        [&](std::span<std::byte> bytes) -> Result<size_t> {
          if (line.is_gone_ || is_over()) return size_t{0};
          const size_t count = HONE_TRY(wires_->read(line.process_, bytes));
          if (count > 0) line.heard_ = Clock::now();
          return count;
        },
        line, kReadAtOnce);
    if (more.ok()) return *more;
    if (!line.is_gone_) lose(line, more.error());
    return false;
  }

  void lose(Line& line, const Error& error) {
    if (line.is_gone_) return;
    line.is_gone_ = true;
    wires_->drop(line.process_);
    fail(over_limit("{} was lost: {}", describe(line), error.what()));
  }

  // ---- The thread that moves

  // True: the line has more to read.
  bool attend(Line& line) {
    const bool more = pump(line);
    flush(line);
    if (line.is_gone_ || is_over()) return more;
    Status alive = wires_->check_alive(line.process_);
    if (alive.ok() && line.write_fault_) alive = *line.write_fault_;
    if (!alive.ok()) {
      while (pump(line)) {  // its last words
      }
      lose(line, alive.error());
    } else if (seconds_since(line.heard_) > options_.silence_seconds) {
      // This process may have slept itself: it looks once more.
      if (!more && !pump(line) && seconds_since(line.heard_) > options_.silence_seconds)
        lose(line, over_limit("it was silent for {:.1f} s", seconds_since(line.heard_)));
    } else if (seconds_since(line.spoke_) > options_.beat_seconds) {
      line.spoke_ = Clock::now();
      if (line.leaving_.empty() && !line.current_) post(line, {.kind = FrameKind::beat}, {});
      flush(line);
    }
    return more;
  }

  bool is_flushed() const {
    return std::ranges::all_of(lines_, [](const std::unique_ptr<Line>& line) {
      return line == nullptr || line->is_gone_ || line->write_fault_ ||
             (!line->current_ && line->leaving_.empty() && line->sending_.empty());
    });
  }

  void say_bye() {
    has_said_bye_ = true;
    for (const std::unique_ptr<Line>& line : lines_)
      if (line != nullptr && !line->is_gone_) {
        post(*line, {.kind = FrameKind::bye}, {});
        flush(*line);
      }
  }

  void move() {
    std::vector<bool> wants_to_write(lines_.size());
    while (true) {
      bool more = false;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        mover_sleeps_ = false;
        for (size_t i = 0; i < lines_.size(); ++i) {
          if (lines_[i] == nullptr) continue;
          more = attend(*lines_[i]) || more;
          wants_to_write[i] =
              lines_[i]->current_ && !lines_[i]->is_gone_ && !lines_[i]->write_fault_;
        }
        const bool must_end = is_ending_ || is_over();
        if (is_ending_ && !is_over() && !has_said_bye_ && is_flushed()) say_bye();
        if (must_end && (Clock::now() > end_by_ || (is_flushed() && (is_over() || has_said_bye_))))
          return;
        mover_sleeps_ = !more;
      }
      if (more)
        std::this_thread::yield();
      else
        wires_->sleep(wants_to_write, 0.1);
    }
  }

  const std::unique_ptr<Wires> wires_;
  const ProcessGroup group_;
  const StreamOptions options_;
  std::vector<int32_t> process_of_;           // by device
  std::vector<std::unique_ptr<Line>> lines_;  // by process; none to this one
  bool mover_sleeps_ = false;
  bool is_ending_ = false;
  bool has_said_bye_ = false;
  Clock::time_point end_by_;
  std::thread mover_;
};

}  // namespace

std::unique_ptr<Transport> make_stream_transport(std::unique_ptr<Wires> wires,
                                                 const ProcessGroup& group,
                                                 const StreamOptions& options) {
  return std::make_unique<StreamTransport>(std::move(wires), group, options);
}

}  // namespace hone
