#include "timeline/timeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/hash.h"
#include "base/planted.h"

namespace hone {
namespace {

// A number that stands for the job in the hash of a set: they are added up.
uint64_t hash_of(uint32_t job) {
  uint64_t x = job + 0x9e3779b97f4a7c15;  // splitmix64
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// The least key of a queue is the job that it takes: the highest priority, then the least number.
uint64_t key_of(int32_t priority, uint32_t job) {
  const uint32_t rank = ~(static_cast<uint32_t>(priority) ^ 0x80000000U);
  return uint64_t{rank} << 32 | job;
}

}  // namespace

// ---- Jobs as flat arrays -----------------------------------------------------------------------

Result<Timeline> Timeline::open(const Jobs& jobs) {
  HONE_TRY(check(jobs));
  Timeline timeline(jobs);
  timeline.first_change_ = 0;
  timeline.update();
  return timeline;
}

Timeline::Timeline(const Jobs& jobs)
    : size_(jobs.jobs.size()), links_(jobs.links), shares_(links_) {
  for (const Job& job : jobs.jobs) {
    queue_.push_back(job.queue);
    priority_.push_back(job.priority);
    seconds_.push_back(job.seconds);
    bytes_.push_back(job.bytes);
    first_crossing_.push_back(static_cast<uint32_t>(crossings_.size()));
    crossings_.insert(crossings_.end(), job.route.begin(), job.route.end());
    first_before_.push_back(static_cast<uint32_t>(before_.size()));
    before_.insert(before_.end(), job.after.begin(), job.after.end());
    most_seconds_ += most_seconds(job, links_);
  }
  first_crossing_.push_back(static_cast<uint32_t>(crossings_.size()));
  first_before_.push_back(static_cast<uint32_t>(before_.size()));
  first_next_.resize(size_ + 1);
  for (uint32_t before : before_) ++first_next_[before + 1];
  for (size_t job = 0; job < size_; ++job) first_next_[job + 1] += first_next_[job];
  next_.resize(before_.size());
  std::vector<uint32_t> fill(first_next_.begin(), first_next_.end() - 1);
  for (uint32_t job = 0; job < size_; ++job)
    for (uint32_t i = first_before_[job]; i < first_before_[job + 1]; ++i)
      next_[fill[before_[i]]++] = job;
  start_.assign(size_, INT64_MAX);
  end_.assign(size_, INT64_MAX);
  epoch_of_.resize(size_);
  state_.resize(size_);
  waits_.resize(size_);
  version_.resize(size_);
  left_.resize(size_);
  rate_.resize(size_);
  since_.resize(size_);
  place_.resize(size_);
  mark_of_job_.resize(size_);
  mark_of_link_.resize(links_.size());
  ready_.resize(jobs.queues);
  busy_.resize(jobs.queues);
  flows_.resize(links_.size());
  snapshots_.emplace_back();
}

Job Timeline::job_of(uint32_t job) const {
  return {
      queue_[job],
      priority_[job],
      seconds_[job],
      bytes_[job],
      {crossings_.begin() + first_crossing_[job], crossings_.begin() + first_crossing_[job + 1]}};
}

// ---- Changes -----------------------------------------------------------------------------------

// The job as it is changed to, if the whole stays short enough.
Status Timeline::check_change(uint32_t job, const Job& changed) {
  const auto in_range = [&](double value, double most, std::string_view what) -> Status {
    if (value >= 0 && value <= most) return {};
    return bad_input("the {} of job {} are {}; they must be 0 to {}", what, job, value, most);
  };
  if (changed.seconds > kMaxTimeline)
    return too_long(fmt::format("job {} takes", job), changed.seconds);
  HONE_TRY(in_range(changed.seconds, kMaxTimeline, "seconds"));
  HONE_TRY(in_range(changed.bytes, kMaxMessage, "bytes"));
  const double total =
      most_seconds_ - most_seconds(job_of(job), links_) + most_seconds(changed, links_);
  if (!(total < kMaxTimeline)) return too_long("one after another the jobs take", total);
  most_seconds_ = total;
  return {};
}

Status Timeline::set_seconds(uint32_t job, double seconds) {
  HONE_TRY(check_number(job));
  Job changed = job_of(job);
  changed.seconds = seconds;
  HONE_TRY(check_change(job, changed));
  if (seconds_[job] != seconds) note_change(job, start_[job]);
  seconds_[job] = seconds;
  return {};
}

Status Timeline::set_bytes(uint32_t job, double bytes) {
  HONE_TRY(check_number(job));
  if (queue_[job] != Job::kNoQueue) return bad_input("job {} is on a queue; it moves nothing", job);
  Job changed = job_of(job);
  changed.bytes = bytes;
  HONE_TRY(check_change(job, changed));
  if (bytes_[job] != bytes) note_change(job, start_[job]);
  bytes_[job] = bytes;
  return {};
}

Status Timeline::set_priority(uint32_t job, int32_t priority) {
  HONE_TRY(check_number(job));
  if (priority_[job] != priority) note_change(job, ready_at(job));
  priority_[job] = priority;
  return {};
}

Status Timeline::set_queue(uint32_t job, uint32_t queue) {
  HONE_TRY(check_number(job));
  if (queue_[job] == Job::kNoQueue || queue >= ready_.size())
    return bad_input("job {} cannot be on queue {} of {}", job, queue, ready_.size())
        .with_hint("only jobs on queues change them");
  if (queue_[job] != queue) note_change(job, ready_at(job));
  queue_[job] = queue;
  return {};
}

Status Timeline::check_number(uint32_t job) const {
  if (job < size_) return {};
  return bad_input("there is no job {}; there are {}", job, size_);
}

// Nothing before this tick depends on the change.
void Timeline::note_change(uint32_t job, Ticks first) {
  first_change_ = std::min(first_change_, first);
  changed_.push_back(job);
}

Ticks Timeline::ready_at(uint32_t job) const {
  Ticks at = 0;
  for (uint32_t i = first_before_[job]; i < first_before_[job + 1]; ++i)
    at = std::max(at, end_[before_[i]]);
  return at;
}

void Timeline::update() {
  if (first_change_ == INT64_MAX) return;
  const auto behind =
      std::partition_point(snapshots_.begin() + 1, snapshots_.end(),
                           [&](const Snapshot& snapshot) { return snapshot.at < first_change_; });
  next_old_ = static_cast<size_t>(behind - snapshots_.begin());
  restore(snapshots_[next_old_ - 1]);
  keep_new(simulate());
  first_change_ = INT64_MAX;
  changed_.clear();
}

// ---- Snapshots ---------------------------------------------------------------------------------

void Timeline::restore(const Snapshot& from) {
  ++epoch_;
  began_ = now_ = from.at;
  done_ = from.done;
  hash_ = from.hash;
  heap_.clear();
  active_.clear();
  new_log_.clear();
  new_snapshots_.clear();
  std::fill(busy_.begin(), busy_.end(), false);
  for (std::vector<uint64_t>& ready : ready_) ready.clear();
  for (std::vector<uint32_t>& flows : flows_) flows.clear();
  std::sort(changed_.begin(), changed_.end());
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  changes_left_ = changed_.size();
  for (const Active& active : from.active) {
    const uint32_t job = active.job;
    visit(job);
    state_[job] = active.state;
    add_active(job);
    if (active.state == State::moving) {
      left_[job] = active.left;
      rate_[job] = active.rate;
      since_[job] = active.at;
      add_to_links(job);
      push(since_[job] + ticks_of(left_[job] / rate_[job]), job);
    } else {
      end_[job] = active.at;
      if (active.state == State::running) busy_[queue_[job]] = true;
      push(active.at, job);
    }
  }
  for (uint32_t job : from.ready) {
    visit(job);
    state_[job] = State::ready;
    enqueue(job);
  }
  dirty_links_.clear();  // the rates are known
}

// Notes how the job stood in the snapshot that this simulation began with.
void Timeline::visit(uint32_t job) {
  if (epoch_of_[job] == epoch_) return;
  epoch_of_[job] = epoch_;
  // Jobs that have ended since then end later than it, as they did before.
  uint32_t waits = 0;
  for (uint32_t i = first_before_[job]; i < first_before_[job + 1]; ++i)
    waits += end_[before_[i]] > began_ ? 1 : 0;
  waits_[job] = waits;
  state_[job] = State::waiting;
}

Timeline::Snapshot Timeline::snapshot() const {
  Snapshot now;
  now.at = now_;
  now.done = done_;
  now.hash = hash_;
  for (uint32_t job : active_) {
    const bool moves = state_[job] == State::moving;
    now.active.push_back({job, state_[job], moves ? since_[job] : end_[job], moves ? left_[job] : 0,
                          moves ? rate_[job] : 0});
  }
  std::sort(now.active.begin(), now.active.end(),
            [](const Active& a, const Active& b) { return a.job < b.job; });
  for (const std::vector<uint64_t>& ready : ready_)
    for (uint64_t key : ready) now.ready.push_back(static_cast<uint32_t>(key));
  return now;
}

// True if the old snapshot of as many ended jobs, at another time perhaps, is that of now. Then all
// that follows is as it was, since nothing that was changed is left. The ready jobs follow from
// those that have ended and those that are active.
bool Timeline::meets_old() {
  while (next_old_ < snapshots_.size() && snapshots_[next_old_].done < done_) ++next_old_;
  if (HONE_PLANT(change_forgotten, changes_left_ != 0, false)) return false;
  if (next_old_ == snapshots_.size()) return false;
  const Snapshot& old = snapshots_[next_old_];
  if (old.done != done_ || old.hash != hash_ || old.active.size() != active_.size()) return false;
  const Snapshot now = snapshot();
  const Ticks by = now.at - old.at;
  for (size_t i = 0; i < now.active.size(); ++i)
    if (!now.active[i].is_moved(old.active[i], by)) return false;
  // Equal hashes may lie: the same jobs have ended since the beginning.
  ++mark_;
  for (uint32_t job : new_log_) mark_of_job_[job] = mark_;
  for (size_t i = done_ - new_log_.size(); i < done_; ++i)
    if (mark_of_job_[log_[i]] != mark_) return false;
  return true;
}

// Puts what was simulated in the place of what was there; behind it all is only moved.
void Timeline::keep_new(bool has_met) {
  const auto begin =
      std::partition_point(snapshots_.begin() + 1, snapshots_.end(),
                           [&](const Snapshot& snapshot) { return snapshot.at <= began_; });
  auto end = snapshots_.end();
  const size_t from = done_ - new_log_.size();
  if (has_met) {
    end = snapshots_.begin() + static_cast<std::ptrdiff_t>(next_old_);
    move_rest(now_ - end->at);
  } else {
    log_.resize(done_);
  }
  std::copy(new_log_.begin(), new_log_.end(), log_.begin() + static_cast<std::ptrdiff_t>(from));
  const size_t kept = std::min<size_t>(static_cast<size_t>(end - begin), new_snapshots_.size());
  std::move(new_snapshots_.begin(), new_snapshots_.begin() + static_cast<std::ptrdiff_t>(kept),
            begin);
  const auto next = begin + static_cast<std::ptrdiff_t>(kept);
  if (next != end)
    snapshots_.erase(next, end);
  else
    snapshots_.insert(
        next, std::make_move_iterator(new_snapshots_.begin() + static_cast<std::ptrdiff_t>(kept)),
        std::make_move_iterator(new_snapshots_.end()));
}

// All behind the old snapshot that was met happens later by this.
void Timeline::move_rest(Ticks by) {
  if (HONE_PLANT(rest_unmoved, by == 0, true)) return;
  for (size_t i = done_; i < log_.size(); ++i) {
    const uint32_t job = log_[i];
    // An active job has started in this simulation, or before it.
    if (epoch_of_[job] != epoch_ || state_[job] < State::running) start_[job] += by;
    // The end of what does not move is known, and was set.
    if (epoch_of_[job] != epoch_ || state_[job] < State::running || state_[job] == State::moving)
      end_[job] += by;
  }
  for (size_t i = next_old_; i < snapshots_.size(); ++i) {
    snapshots_[i].at += by;
    for (Active& active : snapshots_[i].active) active.at += by;
  }
}

// ---- Simulation --------------------------------------------------------------------------------

// True if it has met what was simulated before.
bool Timeline::simulate() {
  uint32_t last_kept = done_;
  if (began_ < 0) {
    now_ = 0;
    for (uint32_t job = 0; job < size_; ++job) {
      visit(job);
      if (waits_[job] == 0) make_ready(job);
    }
    start_queues();
    reshare();
  }
  while (!heap_.empty()) {
    now_ = heap_.front().at;
    while (!heap_.empty() && heap_.front().at == now_) {
      finish_events();
      start_queues();
      reshare();
    }
    if (meets_old()) return true;
    if (done_ - last_kept >= kJobsPerSnapshot) {
      last_kept = done_;
      new_snapshots_.push_back(snapshot());
    }
  }
  return false;
}

void Timeline::push(Ticks at, uint32_t job) {
  heap_.push_back({at, job, ++version_[job]});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// Ends all whose time is over.
void Timeline::finish_events() {
  ended_.clear();
  while (!heap_.empty() && heap_.front().at == now_) {
    const Event event = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    if (version_[event.job] != event.version) continue;
    ++events_;
    if (state_[event.job] == State::moving) {
      remove_from_links(event.job);
      arrive(event.job);
      if (end_[event.job] > now_) continue;
      ++version_[event.job];  // no seconds are left: it ends in this round
    }
    ended_.push_back(event.job);
  }
  // Their order in the log does not depend on that of events.
  std::sort(ended_.begin(), ended_.end());
  for (uint32_t job : ended_) {
    remove_active(job);
    if (state_[job] == State::running) {
      busy_[queue_[job]] = false;
      free_queues_.push_back(queue_[job]);
    }
    state_[job] = State::done;
    end_[job] = now_;
    ++done_;
    hash_ += hash_of(job);
    new_log_.push_back(job);
    if (std::binary_search(changed_.begin(), changed_.end(), job)) --changes_left_;
  }
  for (uint32_t job : ended_)
    for (uint32_t i = first_next_[job]; i < first_next_[job + 1]; ++i) {
      const uint32_t next = next_[i];
      visit(next);  // jobs that have ended in this simulation still count as left to wait for
      if (--waits_[next] == 0) make_ready(next);
    }
}

void Timeline::make_ready(uint32_t job) {
  if (queue_[job] != Job::kNoQueue) {
    state_[job] = State::ready;
    enqueue(job);
    free_queues_.push_back(queue_[job]);
    return;
  }
  start_[job] = now_;
  add_active(job);
  if (bytes_[job] == 0 || first_crossing_[job] == first_crossing_[job + 1]) return arrive(job);
  state_[job] = State::moving;
  left_[job] = bytes_[job];
  rate_[job] = 0;
  since_[job] = now_;
  ++version_[job];
  add_to_links(job);
}

// The bytes are there; the seconds begin.
void Timeline::arrive(uint32_t job) {
  state_[job] = State::arriving;
  end_[job] = now_ + ticks_of(seconds_[job]);
  push(end_[job], job);
}

void Timeline::enqueue(uint32_t job) {
  std::vector<uint64_t>& ready = ready_[queue_[job]];
  ready.push_back(key_of(priority_[job], job));
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
}

// Free queues take a job: those that have become so, and those that jobs have become ready for.
void Timeline::start_queues() {
  for (uint32_t queue : free_queues_) {
    std::vector<uint64_t>& ready = ready_[queue];
    if (busy_[queue] || ready.empty()) continue;
    const uint32_t job = static_cast<uint32_t>(ready.front());
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    ready.pop_back();
    busy_[queue] = true;
    state_[job] = State::running;
    start_[job] = now_;
    end_[job] = now_ + ticks_of(seconds_[job]);
    add_active(job);
    push(end_[job], job);
  }
  free_queues_.clear();
}

void Timeline::add_active(uint32_t job) {
  place_[job] = static_cast<uint32_t>(active_.size());
  active_.push_back(job);
}

void Timeline::remove_active(uint32_t job) {
  place_[active_.back()] = place_[job];
  active_[place_[job]] = active_.back();
  active_.pop_back();
}

// ---- Messages ----------------------------------------------------------------------------------

std::span<const Crossing> Timeline::route(uint32_t job) const {
  return std::span(crossings_)
      .subspan(first_crossing_[job], first_crossing_[job + 1] - first_crossing_[job]);
}

void Timeline::add_to_links(uint32_t job) {
  for (const Crossing& crossing : route(job)) {
    flows_[crossing.link].push_back(job);
    dirty_links_.push_back(crossing.link);
  }
}

void Timeline::remove_from_links(uint32_t job) {
  for (const Crossing& crossing : route(job)) {
    std::vector<uint32_t>& flows = flows_[crossing.link];
    *std::find(flows.begin(), flows.end(), job) = flows.back();
    flows.pop_back();
    dirty_links_.push_back(crossing.link);
  }
}

// The messages that share a link with those that have come or gone, directly or over others.
void Timeline::find_component() {
  ++mark_;
  component_.clear();
  for (size_t i = 0; i < dirty_links_.size(); ++i) {
    const uint32_t link = dirty_links_[i];
    if (mark_of_link_[link] == mark_) continue;
    mark_of_link_[link] = mark_;
    for (uint32_t job : flows_[link]) {
      if (mark_of_job_[job] == mark_) continue;
      // On a link that is not shared, only a message that comes is concerned.
      if (!links_[link].shared && rate_[job] != 0) continue;
      mark_of_job_[job] = mark_;
      component_.push_back(job);
      for (const Crossing& crossing : route(job))
        if (links_[crossing.link].shared) dirty_links_.push_back(crossing.link);
    }
  }
  dirty_links_.clear();
  std::sort(component_.begin(), component_.end());
}

void Timeline::reshare() {
  if (dirty_links_.empty()) return;
  find_component();
  component_routes_.clear();
  for (uint32_t job : component_) component_routes_.push_back(route(job));
  component_rates_.resize(component_.size());
  shares_.share(component_routes_, component_rates_);
  for (size_t i = 0; i < component_.size(); ++i) {
    const uint32_t job = component_[i];
    if (component_rates_[i] == rate_[job]) continue;
    left_[job] = std::max(0.0, left_[job] - rate_[job] * seconds_of(now_ - since_[job]));
    rate_[job] = component_rates_[i];
    since_[job] = now_;
    push(now_ + ticks_of(left_[job] / rate_[job]), job);
  }
}

}  // namespace hone
