#include "transport/waits.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text.h"

namespace hone {
namespace {

using AddTransfers = std::function<void(uint64_t number, std::vector<OpenTransfer>& all)>;

struct List {
  std::mutex mutex;
  uint64_t next = 0;
  std::map<uint64_t, AddTransfers> exchanges;
};

// It outlives all transports, those of other static objects, too.
List& list() {
  static List* const all = new List();
  return *all;
}

uint64_t listed(AddTransfers add) {
  const std::scoped_lock lock(list().mutex);
  list().exchanges.emplace(list().next, std::move(add));
  return list().next++;
}

// One of several transfers of a device that wait for the same is enough.
using Cause = std::tuple<int32_t, int32_t, std::string_view, std::string_view>;

}  // namespace

ListedExchange::ListedExchange(AddTransfers add) : number_(listed(std::move(add))) {}

ListedExchange::~ListedExchange() {
  const std::scoped_lock lock(list().mutex);
  list().exchanges.erase(number_);
}

std::vector<OpenTransfer> open_transfers() {
  const std::scoped_lock lock(list().mutex);
  std::vector<OpenTransfer> all;
  for (const auto& [number, add] : list().exchanges) add(number, all);
  return all;
}

std::vector<std::string> LongWaits::look(double now, const std::vector<OpenTransfer>& open) {
  std::map<std::pair<uint64_t, uint64_t>, Seen> still;
  std::vector<std::string> lines;
  std::set<Cause> told;
  for (const OpenTransfer& one : open) {
    const std::pair key(one.exchange, one.ticket);
    const auto before = seen_.find(key);
    Seen seen = before == seen_.end() ? Seen{now, now + seconds_} : before->second;
    if (now >= seen.due) {
      const double waited = now - seen.first;
      seen.due = seen.first + 2 * waited;
      if (told.emplace(one.device, one.peer, one.peer_process, one.command).second)
        lines.push_back(fmt::format("device {} has waited for device {}{} for {}: {}", one.device,
                                    one.peer,
                                    one.peer_process.empty() ? "" : " of " + one.peer_process,
                                    format_seconds(waited), one.command));
    }
    still.emplace(key, seen);
  }
  seen_ = std::move(still);
  return lines;
}

}  // namespace hone
