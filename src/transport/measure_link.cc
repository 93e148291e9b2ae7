#include "transport/measure_link.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kRequestTag = 0, kThereTag = 1, kBackTag = 2;
constexpr int32_t kLeastRounds = 3, kMostRounds = 1000;
constexpr std::string_view kCommand = "measures a link";

// The next rounds. In each of them all messages go there, and an answer comes back: the
// same bytes for one message, or one byte for a window.
struct Rounds {
  int64_t bytes = 0;  // of a message
  int32_t messages = 0;
  int32_t rounds = 0;  // 0: there are no more

  int64_t answer() const { return messages == 1 ? bytes : 1; }
};
static_assert(sizeof(Rounds) == 16);

// The sender may be another process, so its numbers are checked.
Status check(const Rounds& rounds) {
  const bool is_good = rounds.bytes >= 1 && rounds.bytes <= kMostMeasuredBytes &&
                       rounds.messages >= 1 && rounds.messages <= kWindow && rounds.rounds >= 0 &&
                       rounds.rounds <= kMostRounds &&
                       (rounds.messages == 1 || rounds.bytes <= kMostWindowBytes);
  if (is_good) return {};
  return bad_input("{} rounds of {} messages of {} bytes", rounds.rounds, rounds.messages,
                   rounds.bytes);
}

double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// One end of the link, and the memory of its messages.
class End {
 public:
  End(Transport& transport, int32_t own, int32_t other)
      : transport_(transport),
        own_(own),
        other_(other),
        memory_(static_cast<size_t>(std::max(kMostMeasuredBytes, kMostWindowBytes * kWindow))) {}

  Status send(uint32_t tag, std::span<const std::byte> bytes) {
    return transport_.wait(HONE_TRY(transport_.send({own_, other_, tag}, bytes, kCommand)));
  }
  Status receive(uint32_t tag, std::span<std::byte> bytes) {
    return transport_.wait(HONE_TRY(transport_.receive({other_, own_, tag}, bytes, kCommand)));
  }
  // Tells the other end what comes next.
  Status say(const Rounds& rounds) {
    return send(kRequestTag, std::as_bytes(std::span(&rounds, 1)));
  }
  Status send_all(const Rounds& rounds) {
    return all(rounds, [&](std::span<std::byte> bytes) {
      return transport_.send({own_, other_, kThereTag}, bytes, kCommand);
    });
  }
  Status receive_all(const Rounds& rounds) {
    return all(rounds, [&](std::span<std::byte> bytes) {
      return transport_.receive({other_, own_, kThereTag}, bytes, kCommand);
    });
  }
  std::span<std::byte> memory(int64_t bytes, int64_t at = 0) {
    return std::span(memory_).subspan(static_cast<size_t>(at), static_cast<size_t>(bytes));
  }

 private:
  template <class Start>
  Status all(const Rounds& rounds, const Start& start) {
    std::vector<Ticket> tickets;
    Status status;
    for (int32_t i = 0; i < rounds.messages && status.ok(); ++i) {
      const Result<Ticket> ticket = start(memory(rounds.bytes, i * rounds.bytes));
      if (ticket.ok())
        tickets.push_back(*ticket);
      else
        status = ticket.error();
    }
    for (const Ticket ticket : tickets)
      if (const Status ended = transport_.wait(ticket); !ended.ok()) status = ended;
    return status;
  }

  Transport& transport_;
  const int32_t own_, other_;
  std::vector<std::byte> memory_;
};

// The time of each round.
Result<std::vector<double>> time_rounds(End& end, const Rounds& rounds, const CancelToken* cancel) {
  std::vector<double> seconds;
  HONE_TRY(end.say(rounds));
  for (int32_t i = 0; i < rounds.rounds; ++i) {
    if (cancel != nullptr) HONE_TRY(cancel->check());
    const Clock::time_point begin = Clock::now();
    HONE_TRY(end.send_all(rounds));
    HONE_TRY(end.receive(kBackTag, end.memory(rounds.answer())));
    seconds.push_back(seconds_of(Clock::now() - begin));
  }
  return seconds;
}

// The first round warms up, and says how many fit into the time.
Result<double> median_round(End& end, Rounds rounds, double seconds, const CancelToken* cancel) {
  rounds.rounds = 1;
  const std::vector<double> first = HONE_TRY(time_rounds(end, rounds, cancel));
  const double fit = seconds / std::max(first[0], 1e-7);
  rounds.rounds = static_cast<int32_t>(std::clamp<double>(fit, kLeastRounds, kMostRounds));
  std::vector<double> times = HONE_TRY(time_rounds(end, rounds, cancel));
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

Result<LinkTimes> measure_all(End& end, const MeasureLinkOptions& options) {
  LinkTimes times;
  const double each = options.seconds / static_cast<double>(kMeasuredSizes);
  for (int64_t bytes = 1; bytes <= kMostMeasuredBytes; bytes *= 4) {
    const double round = HONE_TRY(median_round(end, {bytes, 1, 0}, each, options.cancel));
    times.alone.push_back({bytes, round / 2});
    options.progress->advance();
  }
  for (int64_t bytes = 1; bytes <= kMostWindowBytes; bytes *= 4) {
    const double round = HONE_TRY(median_round(end, {bytes, kWindow, 0}, each, options.cancel));
    times.in_windows.push_back({bytes, round / kWindow});
    options.progress->advance();
  }
  HONE_TRY(end.say(Rounds()));
  return times;
}

Result<double> rate_of(End& end, const MeasureLinkOptions& options) {
  const Rounds rounds = {kMostWindowBytes, kWindow, 0};
  const double seconds = HONE_TRY(median_round(end, rounds, options.seconds, options.cancel));
  HONE_TRY(end.say(Rounds()));
  return static_cast<double>(kMostWindowBytes) * kWindow / seconds;
}

Status answer_all(End& end) {
  while (true) {
    Rounds rounds;
    HONE_TRY(end.receive(kRequestTag, std::as_writable_bytes(std::span(&rounds, 1))));
    if (rounds.rounds == 0) return {};
    HONE_TRY(check(rounds));
    for (int32_t i = 0; i < rounds.rounds; ++i) {
      HONE_TRY(end.receive_all(rounds));
      HONE_TRY(end.send(kBackTag, end.memory(rounds.answer())));
    }
  }
}

}  // namespace

Result<LinkTimes> measure_link(Transport& transport, int32_t from, int32_t to,
                               const MeasureLinkOptions& options) {
  End end(transport, from, to);
  Result<LinkTimes> times = measure_all(end, options);
  if (!times.ok()) transport.cancel(times.error());
  return times;
}

Result<double> measure_rate(Transport& transport, int32_t from, int32_t to,
                            const MeasureLinkOptions& options) {
  End end(transport, from, to);
  Result<double> rate = rate_of(end, options);
  if (!rate.ok()) transport.cancel(rate.error());
  return rate;
}

Status answer_link(Transport& transport, int32_t from, int32_t to) {
  End end(transport, to, from);
  Status status = answer_all(end);
  if (!status.ok()) transport.cancel(status.error());
  return status;
}

double copy_rate(int32_t threads, double seconds) {
  constexpr size_t kBytes = 32 << 20;
  std::barrier begin(threads);
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (double& rate : rates)
    running.emplace_back([&] {
      const std::vector<std::byte> from(kBytes, std::byte{1});
      std::vector<std::byte> to(kBytes, std::byte{2});
      begin.arrive_and_wait();
      const Clock::time_point start = Clock::now();
      double passed = 0;
      int64_t copies = 0;
      do {
        std::memcpy(to.data(), from.data(), kBytes);
        asm volatile("" : : "r"(to.data()) : "memory");  // the copy is wanted
        ++copies;
        passed = seconds_of(Clock::now() - start);
      } while (passed < seconds);
      rate = static_cast<double>(copies) * static_cast<double>(kBytes) / passed;
    });
  for (std::thread& thread : running) thread.join();
  double total = 0;
  for (const double rate : rates) total += rate;
  return total;
}

}  // namespace hone
