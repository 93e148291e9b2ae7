#pragma once

#include <memory>
#include <vector>

#include "tests/worker/scripted_transport.h"
#include "worker/remote_model.h"
#include "worker/serve.h"

// Any bytes as the messages of a caller, and as those of a worker.

namespace hone::tested {

inline std::vector<image::Port> hostile_ports() {
  const Symbol n = Symbol::get("n", 1, 64);
  return {{"x", Type::get(DType::f32, {4, Dim(n)})}, {"flag", Type::get(DType::boolean, {3})}};
}

inline void meet_hostile_caller(const std::vector<std::byte>& bytes) {
  ScriptedTransport transport(bytes);
  KeptPrograms programs(1 << 20);
  (void)serve_caller(transport, programs, {.version = "1", .memory_limit = 1 << 20});
}

inline void meet_hostile_tensors(const std::vector<std::byte>& bytes) {
  ScriptedTransport transport(bytes);
  Talk talk(transport, kWorkerDevice);
  const std::vector<image::Port> ports = hostile_ports();
  WorkerRequest request;
  if (!talk.hear(request, "hears").ok()) return;
  (void)talk.receive_tensors(
      request.count, request.bytes,
      [&](std::span<const Type> types) { return check_types(types, ports, "input", 1 << 16); },
      "receives");
}

inline void meet_hostile_worker(std::vector<std::byte> bytes) {
  const Result<std::shared_ptr<Worker>> worker =
      Worker::greet(std::make_unique<ScriptedTransport>(std::move(bytes)), "1");
  if (!worker.ok()) return;
  const std::vector<std::byte> file(100);
  const Digest hash = {};
  if (!(*worker)->load(file, hash).ok()) return;
  const std::vector<Tensor> inputs = {Tensor::scalar(DType::f32, 1)};
  while ((*worker)->run(hash, inputs, hostile_ports(), 1 << 16, {}).ok()) {
  }
}

}  // namespace hone::tested
