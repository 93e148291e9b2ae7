#include "cli/bench_baseline.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/bench_subject.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/source.h"
#include "measure/duel.h"
#include "measure/slowdown.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kWarmRuns = 3;            // of each session, which do not count
constexpr int64_t kMostBytes = 64'000'000;  // of a file
constexpr int kVersion = 1;                 // of its form
constexpr size_t kMostRecorded = 1000;      // sessions of a model
constexpr std::string_view kForm = "hone_baseline";

// Options that say what to do with figures, or that a session has no use for.
constexpr std::string_view kOfNoSession[] = {
    "seconds",  "runs",     "warmup",     "vs",      "python",   "json",
    "donate",   "profile",  "trace",      "devices", "batch",    "record",
    "sessions", "baseline", "fail-below", "color",   "progress", "inputs"};

// ---- Measured models
// ----------------------------------------------------------------------------

// A model in memory, for sessions.
class SessionSubject {
 public:
  static Result<std::unique_ptr<SessionSubject>> make(const Arguments& arguments,
                                                      Console& console) {
    std::unique_ptr<SessionSubject> made(new SessionSubject);
    HONE_TRY(names_compiled(arguments) ? made->load(arguments, console)
                                       : made->compile(arguments, console));
    HONE_TRY(made->subject_->run());
    return made;
  }

  // The machine and the inputs that its times belong to.
  const Json& conditions() const { return conditions_; }

  // Places the model anew, and runs it for so long. One run of ten is as fast.
  Result<double> session(double seconds, const CancelToken& cancel) {
    HONE_TRY(cancel.check());
    subject_->unload();
    HONE_TRY(subject_->load_elsewhere());
    for (int64_t i = 0; i < kWarmRuns; ++i) HONE_TRY(subject_->run());
    Timing timing;
    timing.add(HONE_TRY(block_of(seconds, [&] { return subject_->run(); })()));
    return timing.quantile(0.1);
  }

 private:
  SessionSubject() = default;

  Status compile(const Arguments& arguments, Console& console) {
    HONE_TRY(refuse_verify(arguments));
    options_ = HONE_TRY(native_options(arguments, console));
    source_ =
        HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
    inputs_ = HONE_TRY(given_inputs(signature_of(source_.model), source_.open, arguments,
                                    Engine::native, console));
    HONE_TRY(check_all_chosen(inputs_));
    const bool is_planned = options_.plans.size() == 1 && options_.plans[0].plan.threads;
    describe(options_.target, options_.threads ? *options_.threads
                              : is_planned     ? *options_.plans[0].plan.threads
                                               : options_.target.cores);
    const Graph signature = signature_of(source_.model);
    for (size_t i = 0; i < inputs_.tensors.size(); ++i)
      add_input(std::string(signature.name(signature.inputs()[i])), inputs_.tensors[i]);
    subject_ = HONE_TRY(plain_subject({source_, inputs_, options_, console.face(), false, true}));
    return {};
  }

  Status load(const Arguments& arguments, Console& console) {
    compiled_ = HONE_TRY(given_compiled(arguments.text("MODEL"), arguments, console));
    describe(HONE_TRY(host_target()), compiled_->runnable->threads());
    for (size_t i = 0; i < compiled_->inputs.tensors.size(); ++i)
      add_input(compiled_->file.inputs()[i].name, compiled_->inputs.tensors[i]);
    subject_ = HONE_TRY(compiled_subject(
        *compiled_,
        {.flushes_denormals = arguments.given("flush-denormals"), .cancel = &console.cancel()}));
    return {};
  }

  void describe(const Target& target, int64_t threads) {
    conditions_ = {{"target", target.name.empty() ? default_name(target) : target.name},
                   {"isa", name(target.isa)},
                   {"threads", threads},
                   {"inputs", Json::object()}};
  }
  void add_input(const std::string& name, const Tensor& tensor) {
    conditions_["inputs"][excerpt(name)] = tensor.type().to_string();
  }

  Source source_;
  RunInputs inputs_;
  NativeOptions options_;
  std::optional<CompiledModel> compiled_;
  std::unique_ptr<BenchSubject> subject_;
  Json conditions_;
};

// ---- The file
// ------------------------------------------------------------------------------------

struct Recorded {
  std::string model;
  std::vector<std::string> options;  // of the command line
  Json conditions;
  double seconds = 0;            // of a session
  std::vector<double> sessions;  // what a run took in each, in seconds
};

Json json_of(const Recorded& one) {
  return {{"model", one.model},
          {"options", one.options},
          {"conditions", one.conditions},
          {"seconds_of_a_session", one.seconds},
          {"sessions", one.sessions}};
}

// A number of the machine: positive and finite.
bool is_time(const Json& json) {
  return json.is_number() && json.get<double>() > 0 && json.get<double>() < 1e9;
}

Result<Recorded> recorded_of(const Json& json) {
  const auto has = [&](const char* name, bool (Json::*is)() const noexcept) {
    return json.is_object() && json.contains(name) && (json[name].*is)();
  };
  if (!has("model", &Json::is_string) || !has("options", &Json::is_array) ||
      !has("conditions", &Json::is_object) || !has("sessions", &Json::is_array) ||
      !json.contains("seconds_of_a_session") || !is_time(json["seconds_of_a_session"]))
    return bad_input("a model lacks a name, options, conditions or sessions");
  Recorded one = {.model = json["model"],
                  .options = {},
                  .conditions = json["conditions"],
                  .seconds = json["seconds_of_a_session"],
                  .sessions = {}};
  for (const Json& word : json["options"]) {
    if (!word.is_string()) return bad_input("an option of '{}' is not a text", excerpt(one.model));
    one.options.push_back(word);
  }
  for (const Json& session : json["sessions"]) {
    if (!is_time(session) || one.sessions.size() == kMostRecorded)
      return bad_input("sessions of '{}' are no times, or more than {}", excerpt(one.model),
                       kMostRecorded);
    one.sessions.push_back(session);
  }
  return one;
}

Result<std::vector<Recorded>> parse_baseline(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains(kForm) || json[std::string(kForm)] != kVersion ||
      !json.contains("models") || !json["models"].is_array())
    return bad_input("it is not a baseline of version {}", kVersion)
        .with_hint("hone bench MODEL --record FILE writes one");
  std::vector<Recorded> all;
  for (const Json& one : json["models"]) all.push_back(HONE_TRY(recorded_of(one)));
  return all;
}

Result<std::vector<Recorded>> read_baseline(const std::string& path) {
  Result<std::vector<Recorded>> all = parse_baseline(HONE_TRY(read_file(path, kMostBytes)));
  if (!all.ok()) return std::move(all).error().within(excerpt(path));
  return all;
}

Status write_baseline(const std::string& path, const std::vector<Recorded>& all) {
  Json json = {{std::string(kForm), kVersion}, {"models", Json::array()}};
  for (const Recorded& one : all) json["models"].push_back(json_of(one));
  return write_file_atomic(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

bool is_of_session(std::string_view option) {
  return std::ranges::find(kOfNoSession, option) == std::end(kOfNoSession);
}

// The options that say what is measured, as words.
std::vector<std::string> words_of(const Arguments& arguments) {
  std::vector<std::string> words;
  for (const Option& option : arguments.command().options) {
    if (!arguments.given(option.name) || !is_of_session(option.name)) continue;
    const std::string name = fmt::format("--{}", option.name);
    if (option.take == Take::nothing) {
      words.push_back(name);
      continue;
    }
    for (std::string& value :
         option.repeats ? arguments.list(option.name) : std::vector{arguments.text(option.name)})
      words.insert(words.end(), {name, std::move(value)});
  }
  return words;
}

// The command line that a row of the file stands for.
Result<Arguments> arguments_of(const Recorded& one) {
  std::vector<std::string> words = {"bench", one.model};
  words.insert(words.end(), one.options.begin(), one.options.end());
  Arguments arguments = HONE_TRY(parse_arguments(words));
  for (const Option& option : options_of(arguments.command()))
    if (arguments.given(option.name) && !is_of_session(option.name))
      return bad_input("'{}' has the option --{}, which measures nothing", excerpt(one.model),
                       option.name);
  if (arguments.command().name != "bench" || arguments.text("MODEL") != one.model)
    return bad_input("'{}' does not name a model", excerpt(one.model));
  return arguments;
}

std::string title_of(const Recorded& one) {
  return excerpt(one.options.empty() ? one.model : one.model + " " + join(one.options, " "));
}

Status check_conditions(const Recorded& one, const Json& now) {
  if (one.conditions == now) return {};
  return bad_input("'{}' was recorded on {}, but would run on {}", title_of(one),
                   excerpt(one.conditions.dump()), excerpt(now.dump()))
      .with_hint("times are compared on one machine: hone bench MODEL --record FILE");
}

// ---- Checking
// ------------------------------------------------------------------------------------

struct Checked {
  Recorded recorded;
  Slowdown result;
};

double median_of(std::span<const double> seconds) {
  Timing timing;
  timing.add(seconds);
  return timing.median();
}

Result<Checked> checked(const Recorded& one, const SlowdownRule& rule, Console& console) {
  const Arguments arguments = HONE_TRY(arguments_of(one));
  if (!sessions_for_alarm(static_cast<int64_t>(one.sessions.size()), rule.level))
    return bad_input("'{}' has {} sessions, too few to tell chance from a change", title_of(one),
                     one.sessions.size())
        .with_hint("--record adds some to the file; five are well");
  const std::unique_ptr<SessionSubject> subject =
      HONE_TRY(SessionSubject::make(arguments, console));
  HONE_TRY(check_conditions(one, subject->conditions()));
  return Checked{one, HONE_TRY(slowdown(
                          one.sessions, rule,
                          [&] { return subject->session(one.seconds, console.cancel()); }))};
}

std::string table_of(const std::vector<Checked>& all) {
  TextTable table("lrrrrl", {"model", "recorded", "now", "speed", "sessions", ""});
  for (const auto& [recorded, result] : all)
    table.add_row({title_of(recorded), format_seconds(median_of(recorded.sessions)),
                   format_seconds(median_of(result.now)), fmt::format("{:.3f}", result.speed),
                   fmt::format("{}", result.now.size()), result.is_alarm ? "slower" : ""});
  return table.to_string();
}

std::string json_of(const std::vector<Checked>& all, const SlowdownRule& rule) {
  Json json = {{"fail_below", rule.least}, {"level", rule.level}, {"models", Json::array()}};
  for (const auto& [recorded, result] : all) {
    Json row = json_of(recorded);
    row["now"] = result.now;
    row["speed"] = result.speed;
    row["is_slower"] = result.is_alarm;
    json["models"].push_back(std::move(row));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status refuse_others(const Arguments& arguments, std::string_view with,
                     std::initializer_list<std::string_view> others) {
  for (const std::string_view other : others)
    if (arguments.given(other)) return usage_error("--{} does not go with --{}", other, with);
  return {};
}

}  // namespace

Status record_sessions(const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_others(arguments, "record",
                         {"runs", "warmup", "vs", "python", "json", "donate", "profile", "trace",
                          "devices", "batch", "inputs", "fail-below", "pipeline"}));
  const std::string path = arguments.text("record");
  if (path == "-") return usage_error("--record adds to a file; '-' is none");
  std::vector<Recorded> all;
  if (fs::exists(path)) all = HONE_TRY(read_baseline(path));
  const int64_t sessions = arguments.integer("sessions");
  Recorded mine = {.model = arguments.text("MODEL"),
                   .options = words_of(arguments),
                   .conditions = {},
                   .seconds = arguments.real("seconds") / static_cast<double>(sessions),
                   .sessions = {}};
  if (mine.seconds <= 0) return usage_error("--seconds 0 measures nothing");
  HONE_TRY(arguments_of(mine));
  const auto found = std::ranges::find_if(all, [&](const Recorded& one) {
    return one.model == mine.model && one.options == mine.options;
  });
  Recorded& row = found == all.end() ? all.emplace_back(mine) : *found;
  const std::unique_ptr<SessionSubject> subject =
      HONE_TRY(SessionSubject::make(arguments, console));
  if (row.sessions.empty()) row.conditions = subject->conditions();
  HONE_TRY(check_conditions(row, subject->conditions()));
  if (row.sessions.size() + static_cast<size_t>(sessions) > kMostRecorded)
    return over_limit("'{}' would have more than {} sessions", title_of(row), kMostRecorded);
  for (int64_t i = 0; i < sessions; ++i)
    row.sessions.push_back(HONE_TRY(subject->session(row.seconds, console.cancel())));
  HONE_TRY(write_baseline(path, all));
  console.write(fmt::format("{}: {} in the median of {} sessions\n", title_of(row),
                            format_seconds(median_of(row.sessions)), row.sessions.size()));
  return {};
}

Status check_baseline(const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_others(arguments, "baseline",
                         {"record", "runs", "warmup", "vs", "python", "donate", "profile", "trace",
                          "devices", "batch", "seconds", "sessions"}));
  if (const std::vector<std::string> words = words_of(arguments); !words.empty())
    return usage_error("--baseline measures under the options that it recorded, not under {}",
                       excerpt(words.front()));
  const SlowdownRule rule = {.least = arguments.real("fail-below")};
  if (rule.least <= 0 || rule.least > 1)
    return usage_error("--fail-below is a share of the recorded speed, above 0 and at most 1");
  std::vector<Recorded> all = HONE_TRY(read_baseline(arguments.text("baseline")));
  if (const std::string model = arguments.text("MODEL"); !model.empty()) {
    std::erase_if(all, [&](const Recorded& one) { return one.model != model; });
    if (all.empty())
      return bad_input("{} has no '{}'", excerpt(arguments.text("baseline")), excerpt(model));
  }
  std::vector<Checked> rows;
  std::vector<std::string> slower;
  for (const Recorded& one : all) {
    rows.push_back(HONE_TRY(checked(one, rule, console)));
    if (rows.back().result.is_alarm) slower.push_back(title_of(one));
  }
  const std::string json = arguments.text("json");
  if (json != "-") console.write(table_of(rows));
  if (json == "-")
    console.write(json_of(rows, rule));
  else if (!json.empty())
    HONE_TRY(write_file_atomic(json, json_of(rows, rule)));
  if (slower.empty()) return {};
  return check_failed("{} of {} below {} of the recorded speed: {}", slower.size(), rows.size(),
                      rule.least, join(slower, ", "));
}

}  // namespace hone::cli
