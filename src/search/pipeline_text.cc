#include <algorithm>
#include <set>

#include "base/text.h"
#include "ir/text_printer.h"
#include "search/pipeline.h"
#include "search/stage_sharding.h"
#include "shard/plan_text.h"

namespace hone {

int32_t PipelinePlan::devices() const {
  int32_t count = 0;
  for (const Stage& stage : stages)
    for (const int32_t device : stage.devices) count = std::max(count, device + 1);
  return count;
}

MeshRef PipelinePlan::Stage::mesh() const {
  return shards.mesh != nullptr ? shards.mesh : stage_mesh(std::ssize(devices));
}

std::string stages_of(const PipelinePlan& plan) {
  return fmt::format("{} {}", plan.stages.size(), plan.stages.size() == 1 ? "stage" : "stages");
}

std::string turns_of(const PipelinePlan& plan) {
  return fmt::format("{} {}, {}", plan.micro_batches,
                     plan.micro_batches == 1 ? "micro-batch" : "micro-batches",
                     name(plan.schedule));
}

std::string print(const PipelinePlan& plan) {
  std::string text =
      fmt::format("pipeline {} micro-batches, {}\n", plan.micro_batches, name(plan.schedule));
  if (!plan.batch.empty()) text += fmt::format("batch {}\n", join(plan.batch, " "));
  for (const PipelinePlan::Stage& stage : plan.stages) {
    text += "stage on";
    for (const int32_t device : stage.devices) text += fmt::format(" {}", device);
    text += " =";
    for (const std::string& node : stage.nodes) {
      text += " ";
      append_label(text, '%', node);
    }
    text += "\n";
    if (stage.shards.mesh != nullptr) text += print(stage.shards);
  }
  return text;
}

namespace {

class PipelineParser {
 public:
  PipelineParser(std::string_view text, std::string_view file) : text_(text) {
    plan_.file = std::string(file);
  }

  Result<PipelinePlan> run() {
    HONE_TRY(read_plan_lines(
        text_, plan_.file,
        [&](std::string_view line, int64_t number) {
          number_ = number;
          return read(line);
        }));
    if (plan_.stages.empty())
      return bad_input("the pipeline has no stage")
          .at(plan_.file)
          .with_hint("a line of a stage is: stage on 0 1 = %a %b");
    return std::move(plan_);
  }

 private:
  Status read(std::string_view line) {
    Lexer lexer(line);
    const Token word = lexer.take();
    if (word.kind == TokenKind::end) return {};
    const std::string_view rest = trim(line.substr(word.offset + word.text.size()));
    if (word.is("pipeline")) return head(rest);
    if (!has_head_) return bad_input("the first line is not that of the pipeline");
    if (word.is("batch")) {
      for (const std::string_view name : split(rest, ' '))
        if (!trim(name).empty()) plan_.batch.emplace_back(trim(name));
      return {};
    }
    if (word.is("stage")) return stage(lexer);
    if (!plan_.stages.empty() &&
        HONE_TRY(read_shard_line(plan_.stages.back().shards, line, number_)))
      return {};
    return bad_input("'{}' is no decision", excerpt(word.text))
        .with_hint(
            "lines begin with pipeline, batch or stage; behind a stage with mesh, shard or "
            "output");
  }

  // "4 micro-batches, 1f1b"
  Status head(std::string_view text) {
    if (has_head_) return bad_input("there are two pipelines");
    has_head_ = true;
    const std::vector<std::string_view> parts = split(text, ',');
    const std::string_view count = trim(parts[0]);
    const size_t space = count.find(' ');
    const Result<int64_t> number = parse_int(count.substr(0, space));
    if (parts.size() != 2 || space == std::string_view::npos || !number.ok() ||
        trim(count.substr(space)) != "micro-batches")
      return bad_input("'{}' is no pipeline", excerpt(text))
          .with_hint("write pipeline 4 micro-batches, 1f1b");
    if (*number < 1 || *number > kMostMicroBatches)
      return over_limit("{} micro-batches; there are 1 to {}", *number, kMostMicroBatches);
    plan_.micro_batches = static_cast<int32_t>(*number);
    const std::optional<PipelineSchedule> schedule = schedule_from_name(trim(parts[1]));
    if (!schedule)
      return bad_input("there is no schedule '{}'", excerpt(trim(parts[1])))
          .with_hint("they are gpipe, 1f1b and interleaved");
    plan_.schedule = *schedule;
    return {};
  }

  Status stage(Lexer& lexer) {
    PipelinePlan::Stage made = {.line = number_};
    if (!lexer.take().is("on")) return bad_input("behind stage stands no 'on'");
    while (!lexer.peek().is("=")) {
      const Token token = lexer.take();
      const Result<int64_t> device = parse_int(token.text);
      if (!device.ok() || *device < 0 || *device >= kMaxDevices)
        return bad_input("'{}' is no device", excerpt(token.text))
            .with_hint("write stage on 0 1 = %h %a");
      if (std::ranges::find(made.devices, *device) != made.devices.end())
        return bad_input("device {} stands twice", *device);
      made.devices.push_back(static_cast<int32_t>(*device));
    }
    if (made.devices.empty()) return bad_input("the stage has no device");
    lexer.take();
    while (lexer.peek().kind != TokenKind::end) {
      std::string name = HONE_TRY(name_of_value(lexer.take(), "node"));
      if (!seen_.insert(name).second) return bad_input("'{}' is in two stages", excerpt(name));
      made.nodes.push_back(std::move(name));
    }
    plan_.stages.push_back(std::move(made));
    return {};
  }

  const std::string_view text_;
  PipelinePlan plan_;
  std::set<std::string> seen_;
  bool has_head_ = false;
  int64_t number_ = 0;
};

}  // namespace

Result<PipelinePlan> parse_pipeline_plan(std::string_view text, std::string_view file) {
  if (std::ssize(text) > kMaxPipelinePlan)
    return over_limit("the pipeline has more than {}", format_bytes(kMaxPipelinePlan))
        .at(std::string(file));
  return PipelineParser(text, file).run();
}

}  // namespace hone
