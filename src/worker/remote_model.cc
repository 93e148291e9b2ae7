#include "worker/remote_model.h"

#include <algorithm>

#include "base/file.h"

namespace hone {
// ---- A worker ----------------------------------------------------------------------------------

Result<std::shared_ptr<Worker>> Worker::call(const HostPort& address, std::string_view secret,
                                             std::string_view version,
                                             const StreamOptions& options) {
  const TcpListener listener = HONE_TRY(TcpListener::open());
  const TcpGroup group = {.group = {kCallerDevice, {1, 1}},
                          .addresses = {address, {"127.0.0.1", listener.port()}},
                          .secret = std::string(secret),
                          .run = kWorkerProtocol};
  Result<std::unique_ptr<Transport>> joined = join_tcp(listener, group, options);
  if (!joined.ok())
    return Error(joined.error())
        .about(fmt::format("no worker answers at {}", to_string(address)))
        .with_hint(
            "it is started by 'hone worker --listen ADDRESS:PORT --secret FILE', with the "
            "same secret; a worker serves one caller at a time");
  return greet(*std::move(joined), version);
}

Result<std::shared_ptr<Worker>> Worker::greet(std::shared_ptr<Transport> transport,
                                              std::string_view version, const CallerSeat& seat) {
  std::shared_ptr<Worker> worker(new Worker(std::move(transport), seat));
  worker->name_ = worker->lines_.front().talk.peer();
  const Status greeted = worker->hear_greeting(version);
  if (greeted.ok()) return worker;
  worker->transport_->cancel(greeted.error());  // the worker is told why
  return greeted.error();
}

Status Worker::hear_greeting(std::string_view version) {
  WorkerGreeting greeting;
  HONE_TRY(lines_.front().talk.hear(greeting, "waits for the worker's greeting"));
  if (version_of(greeting) != version)
    return unsupported("the worker {} is hone {}, and this is hone {}", name_, version_of(greeting),
                       version)
        .with_hint("start it again, with the same version");
  if (greeting.work != seat_.work)
    return bad_input("{} was started with another command line than this process", name_)
        .with_hint("all of them run the same command");
  machine_ = HONE_TRY(instructions_of(greeting));
  threads_ = std::max<int64_t>(greeting.threads, 1);
  return {};
}

// The first device ends last: it waits for the others.
Worker::~Worker() {
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line)
    (void)line->talk.say(WorkerRequest{.task = WorkerTask::close}, "ends");
}

Result<WorkerAnswer> Worker::ask(Line& line, const WorkerRequest& request) {
  HONE_TRY(line.talk.say(request, "asks a worker"));
  return hear_answer(line);
}

Result<WorkerAnswer> Worker::hear_answer(Line& line) {
  WorkerAnswer answer;
  HONE_TRY(line.talk.hear(answer, "waits for a worker"));
  if (answer.code == 0) return answer;
  if (answer.bytes > kMaxAnswerText)
    return bad_input("{}: an error of {} bytes", name_, answer.bytes);
  std::string text(answer.bytes, ' ');
  if (!text.empty())
    HONE_TRY(line.talk.receive(std::as_writable_bytes(std::span(text.data(), text.size())),
                               "hears why"));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  const bool is_code = answer.code >= 1 && answer.code <= 5;
  return Error(is_code ? static_cast<ErrorCode>(answer.code) : ErrorCode::limit,
               fmt::format("the worker {}: {}", name_, text));
}

Status Worker::start(int32_t devices, const WorkerGroup* group) {
  HONE_CHECK(lines_.size() == 1, "a worker has started before");
  if (devices < 1 || devices > kMaxWorkerDevices)
    return over_limit("{} devices of the worker {}; it has 1 to {}", devices, name_,
                      kMaxWorkerDevices);
  Line& first = lines_.front();
  const std::scoped_lock lock(first.mutex);
  const std::string text = group == nullptr ? "" : print(group->hosts);
  HONE_TRY(first.talk.say(
      WorkerRequest{.task = WorkerTask::start,
                    .count = static_cast<uint32_t>(devices),
                    .bytes = text.size(),
                    .program = group == nullptr ? Digest() : group->work,
                    .number = group == nullptr ? 0 : static_cast<uint32_t>(group->process)},
      "asks a worker"));
  if (!text.empty())
    HONE_TRY(first.talk.send(std::as_bytes(std::span(text.data(), text.size())), "sends hosts"));
  HONE_TRY(hear_answer(first));
  for (int32_t i = 1; i < devices; ++i) lines_.emplace_back(*transport_, seat_, i);
  return {};
}

Status Worker::load(std::span<const std::byte> file, const Digest& hash) {
  Line& first = lines_.front();
  const std::lock_guard<std::mutex> lock(first.mutex);
  const WorkerAnswer answer = HONE_TRY(
      ask(first, {.task = WorkerTask::load, .count = 0, .bytes = file.size(), .program = hash}));
  if (answer.count == 0) return {};
  HONE_TRY(first.talk.send(file, "sends a program"));
  sent_bytes_ += std::ssize(file);
  HONE_TRY(hear_answer(first));
  return {};
}

// While it lives, a cancelled run ends the conversation.
Result<std::unique_ptr<Watch>> Worker::watch(const RunOptions& options) {
  if (options.cancel == nullptr) return std::unique_ptr<Watch>();
  return Watch::make([this, cancel = options.cancel] {
    const Status status = cancel->check();
    if (!status.ok()) transport_->cancel(status.error());
    return status.ok();
  });
}

Result<std::vector<Tensor>> Worker::run(const Digest& program, std::span<const Tensor> inputs,
                                        std::span<const image::Port> ports, int64_t limit,
                                        const RunOptions& options) {
  Line& line = lines_.front();
  const std::lock_guard<std::mutex> lock(line.mutex);
  if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
  const std::unique_ptr<Watch> watched = HONE_TRY(watch(options));
  std::vector<Type> types;
  for (const Tensor& each : inputs) types.push_back(each.type());
  HONE_TRY(line.talk.say(WorkerRequest{.task = WorkerTask::run,
                                       .count = static_cast<uint32_t>(inputs.size()),
                                       .bytes = encode_types(types).size(),
                                       .program = program,
                                       .flushes_denormals = options.flush_denormals ? 1U : 0U},
                         "asks a worker"));
  HONE_TRY(line.talk.send_tensors(inputs, "sends inputs"));
  const WorkerAnswer answer = HONE_TRY(hear_answer(line));
  return line.talk.receive_tensors(
      answer.count, answer.bytes,
      [&](std::span<const Type> each) { return check_types(each, ports, "output", limit); },
      "receives outputs");
}

namespace {

std::vector<std::byte> types_text(std::span<const image::Port> ports) {
  std::vector<Type> types;
  for (const image::Port& port : ports) types.push_back(port.type);
  return encode_types(types);
}

size_t bytes_of(const image::Port& port) { return static_cast<size_t>(port.type.static_bytes()); }

}  // namespace

Status Worker::run(int32_t device, const RemoteProgram& program,
                   std::span<const void* const> inputs, std::span<void* const> outputs,
                   const RunOptions& options) {
  Line& line = lines_.at(static_cast<size_t>(device));
  const std::lock_guard<std::mutex> lock(line.mutex);
  if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
  const std::unique_ptr<Watch> watched = HONE_TRY(watch(options));
  const std::vector<std::byte> text = types_text(program.inputs);
  HONE_TRY(line.talk.say(WorkerRequest{.task = WorkerTask::run,
                                       .count = static_cast<uint32_t>(inputs.size()),
                                       .bytes = text.size(),
                                       .program = program.hash,
                                       .flushes_denormals = options.flush_denormals ? 1U : 0U,
                                       .number = program.meets_others ? 1U : 0U},
                         "asks a worker"));
  if (!text.empty()) HONE_TRY(line.talk.send(text, "sends inputs"));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span bytes(static_cast<const std::byte*>(inputs[i]), bytes_of(program.inputs[i]));
    if (!bytes.empty()) HONE_TRY(line.talk.send(bytes, "sends inputs"));
  }
  const WorkerAnswer answer = HONE_TRY(hear_answer(line));
  std::vector<std::byte> told(types_text(program.outputs).size());
  if (answer.count != outputs.size() || answer.bytes != told.size())
    return bad_input("the worker {} gives {} outputs; the model has {}", name_, answer.count,
                     outputs.size());
  if (!told.empty()) HONE_TRY(line.talk.receive(told, "receives outputs"));
  if (told != types_text(program.outputs))
    return bad_input("the worker {} gives outputs of other types", name_);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::span bytes(static_cast<std::byte*>(outputs[i]), bytes_of(program.outputs[i]));
    if (!bytes.empty()) HONE_TRY(line.talk.receive(bytes, "receives outputs"));
    HONE_TRY(check_bits(program.outputs[i].type, bytes));
  }
  return {};
}

// ---- A model -----------------------------------------------------------------------------------

Result<std::shared_ptr<const RemoteModel>> RemoteModel::make(std::shared_ptr<Worker> worker,
                                                             const HonecFile& file,
                                                             int64_t memory_limit) {
  const MappedFile bytes = HONE_TRY(MappedFile::open(file.path()));
  std::shared_ptr<RemoteModel> model(new RemoteModel(std::move(worker), file, memory_limit));
  model->program_ = sha256(bytes.bytes());
  HONE_TRY(model->worker_->load(bytes.bytes(), model->program_));
  return std::shared_ptr<const RemoteModel>(std::move(model));
}

Result<std::vector<Tensor>> RemoteModel::run(std::span<const Tensor> inputs,
                                             const RunOptions& options,
                                             std::vector<UnitTimes>*) const {
  return worker_->run(program_, inputs, outputs_, memory_limit_, options);
}

}  // namespace hone
