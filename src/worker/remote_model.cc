#include "worker/remote_model.h"

#include <optional>

#include "base/file.h"
#include "worker/watch.h"

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

Result<std::shared_ptr<Worker>> Worker::greet(std::unique_ptr<Transport> transport,
                                              std::string_view version) {
  std::shared_ptr<Worker> worker(new Worker(std::move(transport)));
  worker->name_ = worker->talk_.peer();
  HONE_TRY(worker->hear_greeting(version));
  return worker;
}

Status Worker::hear_greeting(std::string_view version) {
  WorkerGreeting greeting;
  HONE_TRY(talk_.hear(greeting, "waits for the worker's greeting"));
  if (version_of(greeting) != version)
    return unsupported("the worker {} is hone {}, and this is hone {}", name_, version_of(greeting),
                       version)
        .with_hint("start it again, with the same version");
  machine_ = HONE_TRY(instructions_of(greeting));
  threads_ = std::max<int64_t>(greeting.threads, 1);
  return {};
}

Worker::~Worker() { (void)talk_.say(WorkerRequest{.task = WorkerTask::close}, "ends"); }

Result<WorkerAnswer> Worker::ask(const WorkerRequest& request) {
  HONE_TRY(talk_.say(request, "asks a worker"));
  return hear_answer();
}

Result<WorkerAnswer> Worker::hear_answer() {
  WorkerAnswer answer;
  HONE_TRY(talk_.hear(answer, "waits for a worker"));
  if (answer.code == 0) return answer;
  if (answer.bytes > kMaxAnswerText)
    return bad_input("{}: an error of {} bytes", name_, answer.bytes);
  std::string text(answer.bytes, ' ');
  if (!text.empty())
    HONE_TRY(
        talk_.receive(std::as_writable_bytes(std::span(text.data(), text.size())), "hears why"));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  const bool is_code = answer.code >= 1 && answer.code <= 5;
  return Error(is_code ? static_cast<ErrorCode>(answer.code) : ErrorCode::limit,
               fmt::format("the worker {}: {}", name_, text));
}

Status Worker::load(std::span<const std::byte> file, const Digest& hash) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const WorkerAnswer answer =
      HONE_TRY(ask({.task = WorkerTask::load, .count = 0, .bytes = file.size(), .program = hash}));
  if (answer.count == 0) return {};
  HONE_TRY(talk_.send(file, "sends a program"));
  HONE_TRY(hear_answer());
  return {};
}

Result<std::vector<Tensor>> Worker::run(const Digest& program, std::span<const Tensor> inputs,
                                        std::span<const image::Port> ports, int64_t limit,
                                        const RunOptions& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<Watch> watch;
  if (options.cancel != nullptr) {
    HONE_TRY(options.cancel->check());
    watch.emplace([&] {
      const Status status = options.cancel->check();
      if (!status.ok()) transport_->cancel(status.error());
      return status.ok();
    });
  }
  std::vector<Type> types;
  for (const Tensor& each : inputs) types.push_back(each.type());
  HONE_TRY(talk_.say(WorkerRequest{.task = WorkerTask::run,
                                   .count = static_cast<uint32_t>(inputs.size()),
                                   .bytes = encode_types(types).size(),
                                   .program = program,
                                   .flushes_denormals = options.flush_denormals ? 1U : 0U},
                     "asks a worker"));
  HONE_TRY(talk_.send_tensors(inputs, "sends inputs"));
  const WorkerAnswer answer = HONE_TRY(hear_answer());
  return talk_.receive_tensors(
      answer.count, answer.bytes,
      [&](std::span<const Type> each) { return check_types(each, ports, "output", limit); },
      "receives outputs");
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
