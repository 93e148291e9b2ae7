#include "timeline/alike.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/hash.h"

namespace hone {
namespace {

uint32_t job_in(const ClassJobs& made, uint32_t one, uint32_t number) {
  const auto begin = made.numbers.begin() + made.first[one];
  const auto end = made.numbers.begin() + made.first[one + 1];
  const auto found = std::lower_bound(begin, end, number);
  HONE_CHECK(found != end && *found == number, "a device of class {} has no job {}", one, number);
  return static_cast<uint32_t>(found - made.numbers.begin());
}

// The program on the devices and links of a system.
class Spread {
 public:
  Spread(const SharedProgram& program, const System& system)
      : program_(program), system_(system), topology_(system), devices_(system.device_count()) {}

  Result<ClassJobs> spread(bool merge, size_t most) {
    HONE_TRY(check());
    find_routes();
    if (merge)
      find_classes();
    else
      number_all();
    first_device_ = first_of(classes_.of_device, classes_.devices);
    HONE_TRY(number_jobs(most));
    made_.jobs = class_jobs();
    made_.classes = std::move(classes_);
    HONE_TRY(hone::check(made_.jobs));
    return std::move(made_);
  }

 private:
  // ---- Checks

  Status check() const {
    if (program_.patterns.size() * devices_ > kMostSends)
      return over_limit("{} devices send by {} patterns, and {} messages are the most", devices_,
                        program_.patterns.size(), kMostSends);
    for (const std::vector<bool>& set : program_.sets)
      if (set.size() != devices_)
        return bad_input("a set is of {} devices, not {}", set.size(), devices_);
    for (size_t i = 0; i < program_.patterns.size(); ++i) HONE_TRY(check_pattern(i));
    for (size_t i = 0; i < program_.jobs.size(); ++i) HONE_TRY(check_job(i));
    return {};
  }

  Status check_pattern(size_t number) const {
    const Pattern& pattern = program_.patterns[number];
    if (pattern.size() != devices_)
      return bad_input("pattern {} is of {} devices, not {}", number, pattern.size(), devices_);
    std::vector<bool> gets(devices_);
    for (size_t device = 0; device < devices_; ++device) {
      const uint32_t to = pattern[device];
      if (to == kNobody) continue;
      if (to >= devices_)
        return bad_input("in pattern {} device {} sends to device {} of {}", number, device, to,
                         devices_);
      if (gets[to]) return bad_input("in pattern {} several devices send to {}", number, to);
      gets[to] = true;
    }
    return {};
  }

  Status check_job(size_t number) const {
    const DeviceJob& job = program_.jobs[number];
    const size_t jobs = program_.jobs.size();
    if (job.doers != DeviceJob::kAll && job.doers >= program_.sets.size())
      return bad_input("job {} is of set {} of {}", number, job.doers, program_.sets.size());
    if (job.pattern != DeviceJob::kNoPattern) {
      if (job.pattern >= program_.patterns.size())
        return bad_input("job {} has pattern {} of {}", number, job.pattern,
                         program_.patterns.size());
    } else if (job.queue != Job::kNoQueue) {
      if (job.queue >= program_.queues)
        return bad_input("job {} is on queue {} of {}", number, job.queue, program_.queues);
      if (job.seconds.size() != 1 && job.seconds.size() != system_.targets.size())
        return bad_input("job {} has seconds for {} targets of {}", number, job.seconds.size(),
                         system_.targets.size());
    }
    for (uint32_t before : job.after)
      if (before >= jobs) return bad_input("job {} waits for job {} of {}", number, before, jobs);
    for (uint32_t got : job.got)
      if (got >= jobs || program_.jobs[got].pattern == DeviceJob::kNoPattern)
        return bad_input("job {} waits for message {}, which is none", number, got);
    for (uint32_t there : job.there)
      if (there >= jobs || job.pattern == DeviceJob::kNoPattern)
        return bad_input("job {} waits for job {} of {} elsewhere", number, there, jobs);
    return {};
  }

  bool does(size_t device, const DeviceJob& job) const {
    return job.doers == DeviceJob::kAll || program_.sets[job.doers][device];
  }

  // ---- Routes

  void find_routes() {
    for (const Pattern& pattern : program_.patterns) {
      std::vector<std::vector<uint32_t>>& routes = routes_.emplace_back(devices_);
      std::vector<uint32_t>& senders = senders_.emplace_back(devices_, kNobody);
      for (uint32_t device = 0; device < devices_; ++device) {
        if (pattern[device] == kNobody) continue;
        routes[device] = topology_.route(device, pattern[device]);
        senders[pattern[device]] = device;
      }
    }
  }

  // ---- Classes

  void number_all() {
    classes_.of_device.resize(devices_);
    classes_.of_link.resize(topology_.links().size());
    std::iota(classes_.of_device.begin(), classes_.of_device.end(), 0);
    std::iota(classes_.of_link.begin(), classes_.of_link.end(), 0);
    classes_.devices = static_cast<uint32_t>(devices_);
    classes_.links = static_cast<uint32_t>(topology_.links().size());
  }

  // Begins with classes by what devices and links are, and divides those whose members differ in
  // what they have to do with others, until none does.
  void find_classes() {
    std::vector<uint64_t> devices, links;
    for (const DeviceRun& run : system_.devices)
      for (int64_t i = 0; i < run.count; ++i) {
        Hasher hash;
        hash.add(run.target);
        for (const std::vector<bool>& set : program_.sets) hash.add(bool{set[devices.size()]});
        devices.push_back(hash.value());
      }
    for (const Link& link : topology_.links()) {
      Hasher hash;
      hash.add(link.bytes_per_second);
      hash.add(link.latency);
      hash.add(link.shared);
      links.push_back(hash.value());
    }
    classes_.devices = number(devices, classes_.of_device);
    classes_.links = number(links, classes_.of_link);
    for (;;) {
      const uint32_t before = classes_.devices + classes_.links;
      const std::vector<uint64_t> device_signs = signs_of_devices();
      classes_.links = number(signs_of_links(), classes_.of_link);
      classes_.devices = number(device_signs, classes_.of_device);
      if (classes_.devices + classes_.links == before) return;
    }
  }

  // The classes of equal signs, numbered by their first members.
  static uint32_t number(const std::vector<uint64_t>& signs, std::vector<uint32_t>& classes) {
    std::map<uint64_t, uint32_t> numbers;
    classes.resize(signs.size());
    for (size_t i = 0; i < signs.size(); ++i)
      classes[i] =
          numbers.try_emplace(signs[i], static_cast<uint32_t>(numbers.size())).first->second;
    return static_cast<uint32_t>(numbers.size());
  }

  std::vector<uint64_t> signs_of_devices() const {
    std::vector<uint64_t> signs(devices_);
    const auto class_of = [&](uint32_t device) {
      return device == kNobody ? kNobody : classes_.of_device[device];
    };
    for (uint32_t device = 0; device < devices_; ++device) {
      Hasher hash;
      hash.add(classes_.of_device[device]);
      for (size_t pattern = 0; pattern < routes_.size(); ++pattern) {
        hash.add(class_of(program_.patterns[pattern][device]));
        hash.add(class_of(senders_[pattern][device]));
        for (uint32_t link : routes_[pattern][device]) hash.add(classes_.of_link[link]);
      }
      signs[device] = hash.value();
    }
    return signs;
  }

  // Messages are added up, so their order does not count.
  std::vector<uint64_t> signs_of_links() const {
    std::vector<uint64_t> signs(topology_.links().size());
    // A class of links is never taken for a message.
    for (size_t link = 0; link < signs.size(); ++link)
      signs[link] = mix(uint64_t{1} << 63 | classes_.of_link[link]);
    for (size_t pattern = 0; pattern < routes_.size(); ++pattern)
      for (size_t device = 0; device < devices_; ++device)
        for (uint32_t link : routes_[pattern][device])
          signs[link] += mix(uint64_t{classes_.of_device[device]} << 32 | (pattern + 1));
    return signs;
  }

  static uint64_t mix(uint64_t number) {
    Hasher hash;
    hash.add(number);
    return hash.value();
  }

  // ---- Jobs of the classes

  Status number_jobs(size_t most) {
    for (uint32_t one = 0; one < classes_.devices; ++one) {
      made_.first.push_back(static_cast<uint32_t>(made_.numbers.size()));
      for (uint32_t job = 0; job < program_.jobs.size(); ++job)
        if (does(first_device_[one], program_.jobs[job])) made_.numbers.push_back(job);
      if (made_.numbers.size() > std::min(most, kMaxJobs))
        return over_limit("{} devices of {} kinds have more than {} jobs", devices_,
                          classes_.devices, std::min(most, kMaxJobs));
    }
    made_.first.push_back(static_cast<uint32_t>(made_.numbers.size()));
    return {};
  }

  Jobs class_jobs() {
    Jobs made;
    made.queues = program_.queues * classes_.devices;
    made.links.resize(classes_.links);
    for (size_t link = 0; link < classes_.of_link.size(); ++link)
      made.links[classes_.of_link[link]] = topology_.links()[link];
    count_flows();
    made.jobs.reserve(made_.numbers.size());
    for (uint32_t one = 0; one < classes_.devices; ++one)
      for (uint32_t at = made_.first[one]; at < made_.first[one + 1]; ++at)
        made.jobs.push_back(job_of(one, first_device_[one], program_.jobs[made_.numbers[at]]));
    return made;
  }

  static std::vector<uint32_t> first_of(const std::vector<uint32_t>& classes, uint32_t count) {
    std::vector<uint32_t> first(count);
    for (size_t i = classes.size(); i-- > 0;) first[classes[i]] = static_cast<uint32_t>(i);
    return first;
  }

  // Counts the messages of each pattern and class of senders on a link of each class. All links of
  // a class agree: the classes promise this.
  void count_flows() {
    const std::vector<uint32_t> first = first_of(classes_.of_link, classes_.links);
    std::vector<uint32_t> members(classes_.links);
    for (uint32_t one : classes_.of_link) ++members[one];
    flows_.resize(routes_.size());
    for (size_t pattern = 0; pattern < routes_.size(); ++pattern) {
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> all;  // class of sender, link
      for (size_t device = 0; device < devices_; ++device)
        for (uint32_t link : routes_[pattern][device]) ++all[{classes_.of_device[device], link}];
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> agreeing;
      for (const auto& [key, count] : all) {
        const uint32_t one = classes_.of_link[key.second];
        const auto found = all.find({key.first, first[one]});
        const uint32_t expected = found == all.end() ? 0 : found->second;
        HONE_CHECK(count == expected, "links {} and {} of a class carry {} and {} messages",
                   key.second, first[one], count, expected);
        ++agreeing[{key.first, one}];
        flows_[pattern][{key.first, one}] = count;
      }
      for (const auto& [key, count] : agreeing)
        HONE_CHECK(count == members[key.second], "{} of {} links of a class carry messages", count,
                   members[key.second]);
    }
  }

  Job job_of(uint32_t one, uint32_t device, const DeviceJob& from) {
    Job job;
    for (uint32_t before : from.after) wait(job, device, before);
    for (uint32_t got : from.got) {
      const uint32_t sender = senders_[program_.jobs[got].pattern][device];
      if (sender != kNobody) wait(job, sender, got);
    }
    if (from.pattern != DeviceJob::kNoPattern)
      if (const uint32_t to = program_.patterns[from.pattern][device]; to != kNobody)
        for (uint32_t there : from.there) wait(job, to, there);
    if (from.pattern == DeviceJob::kNoPattern && from.queue == Job::kNoQueue) return job;
    if (from.pattern == DeviceJob::kNoPattern) {
      job.queue = one * program_.queues + from.queue;
      job.priority = from.priority;
      const size_t target = system_.device(device).target;
      job.seconds = from.seconds[from.seconds.size() == 1 ? 0 : target];
      return job;
    }
    if (program_.patterns[from.pattern][device] == kNobody) return job;  // nothing moves
    const std::vector<uint32_t>& route = routes_[from.pattern][device];
    job.bytes = from.bytes;
    job.seconds = topology_.latency(route);
    for (uint32_t link : route) {
      const uint32_t of = classes_.of_link[link];
      const auto is_it = [&](const Crossing& crossing) { return crossing.link == of; };
      if (std::none_of(job.route.begin(), job.route.end(), is_it))
        job.route.push_back({of, flows_[from.pattern].at({one, of})});
    }
    return job;
  }

  void wait(Job& job, uint32_t device, uint32_t before) const {
    if (does(device, program_.jobs[before]))
      job.after.push_back(job_in(made_, classes_.of_device[device], before));
  }

  const SharedProgram& program_;
  const System& system_;
  const Topology topology_;
  const size_t devices_;
  std::vector<std::vector<std::vector<uint32_t>>> routes_;  // by pattern and sender
  std::vector<std::vector<uint32_t>> senders_;              // by pattern and receiver
  Classes classes_;
  std::vector<uint32_t> first_device_;  // of each class
  std::vector<std::map<std::pair<uint32_t, uint32_t>, uint32_t>> flows_;
  ClassJobs made_;
};

}  // namespace

uint32_t ClassJobs::job(int64_t device, uint32_t number) const {
  return job_in(*this, classes.of_device[static_cast<size_t>(device)], number);
}

Result<ClassJobs> class_jobs(const SharedProgram& program, const System& system, bool merge,
                             size_t most) {
  return Spread(program, system).spread(merge, most);
}

}  // namespace hone
