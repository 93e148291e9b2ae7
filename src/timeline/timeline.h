#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "target/shares.h"
#include "timeline/jobs.h"

// When each job starts and ends, by event simulation. Deterministic: equal jobs give equal times.
//
// Time is counted in whole ticks, so that a part of a timeline that is only moved keeps its form.
// In each tick rounds follow each other, until none ends a job:
//   1. All jobs whose time is over end. A message whose bytes have moved goes on until its seconds
//      have passed.
//   2. Jobs for which nothing is left to wait are ready. Messages start; they share the links
//      fairly (target/shares.h) until the next round in which some start or have moved.
//   3. Each queue that is free takes the ready job of highest priority, the first one of equals.
// The bytes that a message still has to move are counted anew only when its rate changes.

namespace hone {

using Ticks = int64_t;  // of 100 femtoseconds, so that they count up to kMaxTimeline
inline constexpr double kTicksPerSecond = 1e13;
inline Ticks ticks_of(double seconds) {
  return static_cast<Ticks>(seconds * kTicksPerSecond + 0.5);
}
inline double seconds_of(Ticks ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

class Timeline {
 public:
  // Simulates all.
  static Result<Timeline> open(const Jobs& jobs);
  Timeline(Timeline&&) = default;
  Timeline& operator=(Timeline&&) = default;

  size_t size() const { return size_; }
  Ticks start(uint32_t job) const { return start_[job]; }
  Ticks end(uint32_t job) const { return end_[job]; }
  Ticks end() const { return log_.empty() ? 0 : end_[log_.back()]; }  // of all

  // Changes of jobs; they count from the next update() on. An error changes nothing.
  Status set_seconds(uint32_t job, double seconds);
  Status set_bytes(uint32_t job, double bytes);
  Status set_priority(uint32_t job, int32_t priority);
  Status set_queue(uint32_t job, uint32_t queue);  // of a job that is on one

  // Simulates what has changed. It starts from a snapshot before the first change, and ends where
  // all is as it was: at the same time, or all of it earlier or later. The times are, to the last
  // tick, those of a new timeline.
  void update();

  // The ends of jobs and of moves that were simulated, since open().
  int64_t events() const { return events_; }

 private:
  enum class State : uint8_t { waiting, ready, running, moving, arriving, done };
  struct Event {
    Ticks at;
    uint32_t job;
    uint32_t version;
    bool operator>(const Event& other) const { return at > other.at; }
  };
  struct Active {  // a job that is running, moving or arriving
    uint32_t job;
    State state;
    Ticks at;  // its end; of one that moves when its rate has last changed
    double left = 0;
    double rate = 0;
    bool is_moved(const Active& old, Ticks by) const {
      return job == old.job && state == old.state && at - old.at == by && left == old.left &&
             rate == old.rate;
    }
  };
  // All that decides about the time behind the tick.
  struct Snapshot {
    Ticks at = -1;
    uint32_t done = 0;  // jobs: the first ones of the log
    uint64_t hash = 0;  // of the set of these jobs
    std::vector<Active> active;
    std::vector<uint32_t> ready;  // jobs that wait for their queues
  };
  static constexpr uint32_t kJobsPerSnapshot = 32;

  explicit Timeline(const Jobs& jobs);
  Job job_of(uint32_t job) const;
  std::span<const Crossing> route(uint32_t job) const;

  Status check_number(uint32_t job) const;
  Status check_change(uint32_t job, const Job& changed);
  void note_change(uint32_t job, Ticks first);
  Ticks ready_at(uint32_t job) const;

  void restore(const Snapshot& from);
  void visit(uint32_t job);
  Snapshot snapshot() const;
  bool meets_old();
  void keep_new(bool has_met);
  void move_rest(Ticks by);

  bool simulate();
  void push(Ticks at, uint32_t job);
  void finish_events();
  void make_ready(uint32_t job);
  void arrive(uint32_t job);
  void enqueue(uint32_t job);
  void start_queues();
  void add_active(uint32_t job);
  void remove_active(uint32_t job);
  void add_to_links(uint32_t job);
  void remove_from_links(uint32_t job);
  void find_component();
  void reshare();

  size_t size_ = 0;
  // Jobs, in flat arrays.
  std::vector<uint32_t> queue_;
  std::vector<int32_t> priority_;
  std::vector<double> seconds_, bytes_;
  std::vector<uint32_t> first_crossing_, first_before_, first_next_;
  std::vector<Crossing> crossings_;
  std::vector<uint32_t> before_, next_;  // jobs that must end before, and those that wait
  std::vector<Link> links_;
  double most_seconds_ = 0;

  // Times and snapshots of the last update().
  std::vector<Ticks> start_, end_;
  std::vector<uint32_t> log_;  // jobs by their ends
  std::vector<Snapshot> snapshots_;
  int64_t events_ = 0;

  // Changes since the last update().
  Ticks first_change_ = INT64_MAX;
  std::vector<uint32_t> changed_;

  // The simulation at hand; what is not of this epoch is as it was in the snapshot that it began
  // with.
  Ticks began_ = 0;  // the tick of that snapshot
  Ticks now_ = 0;
  uint32_t epoch_ = 0;
  uint32_t done_ = 0;
  uint64_t hash_ = 0;
  std::vector<uint32_t> epoch_of_;
  std::vector<State> state_;
  std::vector<uint32_t> waits_;
  std::vector<uint32_t> version_;  // events with another one are void
  std::vector<double> left_, rate_;
  std::vector<Ticks> since_;
  std::vector<Event> heap_;
  std::vector<std::vector<uint64_t>> ready_;  // by queue: heaps of priority and number
  std::vector<bool> busy_;                    // queues
  std::vector<std::vector<uint32_t>> flows_;  // by link: messages on it
  std::vector<uint32_t> active_;              // jobs, in no order
  std::vector<uint32_t> place_;               // in active_
  std::vector<uint32_t> ended_, free_queues_, dirty_links_;
  std::vector<uint32_t> new_log_;
  std::vector<Snapshot> new_snapshots_;
  size_t next_old_ = 0;  // a snapshot that may be met
  size_t changes_left_ = 0;

  LinkShares shares_;
  std::vector<uint32_t> component_;
  std::vector<std::span<const Crossing>> component_routes_;
  std::vector<double> component_rates_;
  std::vector<uint32_t> mark_of_job_, mark_of_link_;
  uint32_t mark_ = 0;
};

}  // namespace hone
