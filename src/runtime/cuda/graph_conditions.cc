#include "runtime/cuda/graph_conditions.h"

#include "runtime/cuda/decide_kernel.h"

namespace hone {

namespace {

// If the driver's linker does not know the function that the kernel calls, the driver does: it
// takes the text itself then. The store keeps that, so a linker is asked once.
Result<std::unique_ptr<CudaModule>> decide_module(const std::shared_ptr<const CudaDevice>& device,
                                                  const CubinStore& store) {
  const std::string refusal = "a refusal of a " + cubin_key(*device, kDecidePtx);
  const bool asks = store.find && !store.find(refusal);
  if (asks) {
    const Result<std::string> cubin = make_cubin(*device, {.text = kDecidePtx}, store);
    if (cubin.ok())
      if (Result<std::unique_ptr<CudaModule>> made = CudaModule::load(device, *cubin); made.ok())
        return made;
  }
  Result<std::unique_ptr<CudaModule>> made = CudaModule::load(device, kDecidePtx);
  if (asks && made.ok() && store.put) store.put(refusal, kDecideFunction);
  return made;
}

}  // namespace

Result<std::unique_ptr<GraphConditions>> GraphConditions::make(
    std::shared_ptr<const CudaDevice> device, const CubinStore& store) {
  std::unique_ptr<GraphConditions> made(new GraphConditions(std::move(device)));
  const CudaEntry entered = HONE_TRY(made->device_->enter());
  made->module_ = HONE_TRY(made->device_->shared_module(
      kDecidePtx, [&] { return decide_module(made->device_, store); }));
  made->decide_ = HONE_TRY(made->module_->function(kDecideFunction, 0));
  made->stop_ = HONE_TRY(CudaMemory::make(made->device_, sizeof(int32_t)));
  HONE_TRY(made->write_stop(0));
  return made;
}

Status GraphConditions::branch(cuda::Stream stream, cuda::Address byte, const Record& then,
                               const Record& otherwise) const {
  // Both conditions are set before: `then` may write what the byte comes from.
  const cuda::Condition yes = HONE_TRY(new_condition(stream));
  HONE_TRY(decide(stream, byte, yes, false));
  const cuda::Condition no = otherwise ? HONE_TRY(new_condition(stream)) : 0;
  if (otherwise) HONE_TRY(decide(stream, byte, no, true));
  HONE_TRY(fill(HONE_TRY(add_node(stream, yes, cuda::ConditionalNode::kIf)), then));
  if (!otherwise) return {};
  return fill(HONE_TRY(add_node(stream, no, cuda::ConditionalNode::kIf)), otherwise);
}

Status GraphConditions::loop(cuda::Stream stream, cuda::Address byte, const Record& body) const {
  const cuda::Condition more = HONE_TRY(new_condition(stream));
  HONE_TRY(decide(stream, byte, more, false));
  const cuda::Graph graph = HONE_TRY(add_node(stream, more, cuda::ConditionalNode::kWhile));
  return fill(graph, [&](cuda::Stream inner) -> Status {
    HONE_TRY(body(inner));
    return decide(inner, byte, more, false);
  });
}

namespace {

// Nodes of a graph that is captured: what comes next is behind these.
struct LastNodes {
  const cuda::Node* nodes = nullptr;
  size_t count = 0;
};

// The graph that the stream captures. The driver refuses to tell the last nodes where one of them
// is a kernel behind which others may begin early; null does not ask for them.
Result<cuda::Graph> captured_graph(const CudaDevice& device, cuda::Stream stream, LastNodes* last) {
  cuda::Graph made = nullptr;
  int status = 0;
  uint64_t number = 0;
  HONE_TRY(device.check(device.call().cuStreamGetCaptureInfo_v2(stream, &status, &number, &made,
                                                                last ? &last->nodes : nullptr,
                                                                last ? &last->count : nullptr),
                        "looked at a graph that it makes"));
  return made;
}

}  // namespace

Result<cuda::Condition> GraphConditions::new_condition(cuda::Stream stream) const {
  const cuda::Graph graph = HONE_TRY(captured_graph(*device_, stream, nullptr));
  cuda::Condition made = 0;
  HONE_TRY(device_->check(
      device_->call().cuGraphConditionalHandleCreate(&made, graph, device_->context(), 0, 0),
      "made a condition of a graph"));
  return made;
}

Status GraphConditions::decide(cuda::Stream stream, cuda::Address byte, cuda::Condition condition,
                               bool opposite) const {
  uint64_t words[] = {byte, stop_->address(), condition, opposite ? 1U : 0U};
  void* parameters[] = {&words[0], &words[1], &words[2], &words[3]};
  const cuda::LaunchConfig config = {.stream = stream};
  return device_->check(device_->call().cuLaunchKernelEx(&config, decide_, parameters, nullptr),
                        "put a condition into a graph");
}

// The graph that runs if the condition says so.
Result<cuda::Graph> GraphConditions::add_node(cuda::Stream stream, cuda::Condition condition,
                                              int kind) const {
  LastNodes last;
  const cuda::Graph graph = HONE_TRY(captured_graph(*device_, stream, &last));
  cuda::ConditionalNode parameters;
  parameters.condition = condition;
  parameters.kind = kind;
  parameters.context = device_->context();
  cuda::Node node = nullptr;
  const cuda::Functions& call = device_->call();
  HONE_TRY(device_->check(call.cuGraphAddNode(&node, graph, last.nodes, last.count, &parameters),
                          "put a block into a graph"));
  HONE_TRY(device_->check(
      call.cuStreamUpdateCaptureDependencies(stream, &node, 1, cuda::kSetDependencies),
      "went on behind a block of a graph"));
  return parameters.graphs[0];
}

Status GraphConditions::fill(cuda::Graph graph, const Record& work) const {
  const cuda::Functions& call = device_->call();
  cuda::Stream stream = nullptr;
  HONE_TRY(device_->check(call.cuStreamCreate(&stream, cuda::kNotWithNull),
                          "made a stream for a block"));
  Status good = device_->check(
      call.cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cuda::kCaptureOfThread),
      "began a block of a graph");
  if (good.ok()) {
    good = work(stream);
    cuda::Graph same = nullptr;  // the node has it
    const Status ended =
        device_->check(call.cuStreamEndCapture(stream, &same), "ended a block of a graph");
    if (good.ok()) good = ended;
  }
  (void)call.cuStreamDestroy_v2(stream);
  return good;
}

Status GraphConditions::write_stop(int32_t value) const {
  const cuda::Functions& call = device_->call();
  cuda::Stream stream = nullptr;
  HONE_TRY(device_->check(call.cuStreamCreate(&stream, cuda::kNotWithNull), "made a stream"));
  Status good = device_->check(
      call.cuMemcpyHtoDAsync_v2(stop_->address(), &value, sizeof value, stream), "told loops");
  // The copy must not outlive the value.
  const Status waited = device_->check(call.cuStreamSynchronize(stream), "waited to tell loops");
  if (!waited.ok()) (void)call.cuStreamSynchronize(stream);
  (void)call.cuStreamDestroy_v2(stream);
  return good.ok() ? waited : good;
}

Status GraphConditions::end_loops(cuda::Stream stream) const {
  HONE_TRY(write_stop(1));
  HONE_TRY(device_->check(device_->call().cuStreamSynchronize(stream), "waited for loops to end"));
  return write_stop(0);
}

}  // namespace hone
