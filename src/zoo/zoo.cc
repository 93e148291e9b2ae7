#include "zoo/zoo.h"

#include <algorithm>

#include "base/text.h"
#include "zoo/models.h"

namespace hone {
namespace {

constexpr std::string_view kTorchvision = "torchvision's table of weights";

// Published figures leave running means and variances out of the parameters, and count biases,
// norms and activations as no multiply-adds. Where none is stated, a test derives the counts.
const ZooEntry kEntries[] = {
    {.name = "mlp",
     .summary = "fully connected layers with relu",
     .build = &zoo::mlp,
     .full = {.depth = 3},
     .tiny = {.batch = 2, .depth = 2}},
    {.name = "alexnet",
     .summary = "five convolutions, three linear layers",
     .build = &zoo::alexnet,
     .full = {.image = 224, .classes = 1000},
     .tiny = {.batch = 2, .image = 64, .classes = 10},
     .published = {61.10e6, 0.714e9, kTorchvision}},
    {.name = "vgg16",
     .summary = "13 convolutions of 3x3, three linear layers",
     .build = &zoo::vgg16,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 1, .classes = 10},
     .published = {138.36e6, 15.47e9, kTorchvision}},
    {.name = "vgg19",
     .summary = "16 convolutions of 3x3, three linear layers",
     .build = &zoo::vgg19,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 1, .classes = 10},
     .published = {143.67e6, 19.63e9, kTorchvision}},
    {.name = "squeezenet",
     .summary = "SqueezeNet 1.0: squeezing 1x1 convolutions feed 1x1 and 3x3 ones",
     .build = &zoo::squeezenet,
     .full = {.image = 224, .classes = 1000},
     .tiny = {.image = 48, .classes = 10},
     .published = {1.248e6, 0.819e9, kTorchvision}},
    {.name = "resnet18",
     .summary = "residual blocks of two 3x3 convolutions",
     .build = &zoo::resnet18,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.batch = 2, .image = 32, .depth = 1, .classes = 10},
     .published = {11.69e6, 1.814e9, kTorchvision}},
    {.name = "resnet50",
     .summary = "residual bottlenecks",
     .build = &zoo::resnet50,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 1, .classes = 10},
     .published = {25.56e6, 4.089e9, kTorchvision}},
    {.name = "resnext50",
     .summary = "ResNeXt 32x4d: residual bottlenecks with grouped convolutions",
     .build = &zoo::resnext50,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 1, .classes = 10},
     .published = {25.03e6, 4.23e9, kTorchvision}},
    {.name = "densenet121",
     .summary = "every layer reads all before it in its block",
     .build = &zoo::densenet121,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 2, .classes = 10},
     .published = {7.979e6, 2.834e9, kTorchvision}},
    {.name = "inception_v3",
     .summary = "parallel branches of factorized convolutions",
     .build = &zoo::inception_v3,
     .full = {.image = 299, .classes = 1000},
     .tiny = {.image = 75, .classes = 10},
     .published = {23.83e6, 5.713e9, "torchvision's table of weights, less the auxiliary head"}},
    {.name = "mobilenet_v2",
     .summary = "inverted residuals",
     .build = &zoo::mobilenet_v2,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 2, .classes = 10},
     .published = {3.505e6, 0.301e9, kTorchvision}},
    {.name = "mobilenet_v3",
     .summary = "MobileNetV3 large: inverted residuals with squeeze-and-excite",
     .build = &zoo::mobilenet_v3,
     .full = {.image = 224, .classes = 1000},
     .tiny = {.image = 32, .classes = 10},
     .published = {5.483e6, 0.217e9, kTorchvision}},
    {.name = "efficientnet_b0",
     .summary = "inverted residuals with squeeze-and-excite and silu",
     .build = &zoo::efficientnet_b0,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 2, .classes = 10},
     .published = {5.289e6, 0.386e9, kTorchvision}},
    {.name = "shufflenet_v2",
     .summary = "ShuffleNet v2 x1.0: split, filter half, shuffle the channels",
     .build = &zoo::shufflenet_v2,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 2, .classes = 10},
     .published = {2.279e6, 0.145e9, kTorchvision}},
    {.name = "nasnet_a",
     .summary = "NASNet-A mobile: cells found by search",
     .build = &zoo::nasnet_a,
     .full = {.image = 224, .depth = kAsPublished, .classes = 1000},
     .tiny = {.image = 32, .depth = 1, .classes = 10},
     .published = {5.3e6, 0.564e9, "Zoph et al. 2017, table 3"}},
    {.name = "unet",
     .summary = "segmentation: down, up, and crops across; depth counts the levels",
     .build = &zoo::unet,
     .full = {.image = 572, .depth = 4},
     .tiny = {.image = 60, .depth = 2},
     .published = {31.03e6, 0, "the network of the paper, as counted by its reimplementations"}},
    {.name = "yolo_v3",
     .summary = "detection at three scales with non-maximum suppression",
     .build = &zoo::yolo_v3,
     .full = {.image = 416, .depth = kAsPublished},
     .tiny = {.image = 64, .depth = 1},
     .published = {61.9e6, 0, "the model card of lucid-dl/yolo-v3, from darknet's yolov3.weights"}},
    {.name = "bert_base",
     .summary = "bidirectional transformer encoder",
     .build = &zoo::bert_base,
     .full = {.length = 128, .max_length = 512, .depth = 12},
     .tiny = {.batch = 2, .length = 8, .max_length = 16, .depth = 2},
     .published = {109.48e6, 0, "BERT's checkpoint"}},
    {.name = "vit_b16",
     .summary = "vision transformer over 16x16 patches",
     .build = &zoo::vit_b16,
     .full = {.image = 224, .depth = 12, .classes = 1000},
     .tiny = {.image = 16, .depth = 2, .classes = 10},
     .published = {86.57e6, 17.56e9, kTorchvision}},
    {.name = "mixer",
     .summary = "MLP-Mixer B/16: linear layers over patches, then over channels",
     .build = &zoo::mixer_b16,
     .full = {.image = 224, .depth = 12, .classes = 1000},
     .tiny = {.image = 16, .depth = 2, .classes = 10},
     .published = {59.9e6, 12.6e9, "timm's model card of mixer_b16_224.goog_in21k_ft_in1k"}},
    {.name = "gpt2",
     .summary = "causal transformer decoder over a prompt",
     .build = &zoo::gpt2,
     .full = {.length = 64, .max_length = 1024, .depth = 12},
     .tiny = {.batch = 2, .length = 8, .max_length = 32, .depth = 2},
     .published = {124.44e6, 0, "GPT-2's checkpoint"}},
    {.name = "gpt2_decode",
     .summary = "one token of gpt2 with donated caches; length counts their places",
     .build = &zoo::gpt2_decode,
     .full = {.length = 1024, .max_length = 1024, .depth = 12},
     .tiny = {.batch = 2, .length = 8, .max_length = 32, .depth = 2},
     .published = {124.44e6, 0, "GPT-2's checkpoint"}},
    {.name = "llama",
     .summary = "TinyLlama 1.1B: rms norms, rotary positions, grouped heads, SwiGLU",
     .build = &zoo::llama,
     .full = {.length = 64, .max_length = 2048, .depth = 22},
     .tiny = {.batch = 2, .length = 8, .max_length = 32, .depth = 2},
     .published = {1.1e9, 0, "jzhang38/TinyLlama, table of training details"}},
    {.name = "transformer_xl",
     .summary = "causal transformer with relative positions and a memory",
     .build = &zoo::transformer_xl,
     .full = {.length = 150, .depth = 16},
     .tiny = {.batch = 2, .length = 8, .depth = 2}},
    {.name = "lstm",
     .summary = "language model: embedding, lstm layers, softmax",
     .build = &zoo::lstm_language_model,
     .full = {.length = 35, .max_length = 4096, .depth = 2},
     .tiny = {.batch = 2, .length = 6, .max_length = 4096, .depth = 2},
     .unrolls = true},
    {.name = "gnmt",
     .summary = "translation: lstm encoder and decoder with attention",
     .build = &zoo::gnmt,
     .full = {.length = 50, .max_length = 4096, .depth = 8},
     .tiny = {.batch = 2, .length = 5, .max_length = 4096, .depth = 3},
     .unrolls = true},
    {.name = "nas_rnn",
     .summary = "language model with the recurrent cell found by search",
     .build = &zoo::nas_rnn,
     .full = {.length = 35, .max_length = 4096, .depth = 2},
     .tiny = {.batch = 2, .length = 6, .max_length = 4096, .depth = 2},
     .unrolls = true},
    {.name = "wavenet",
     .summary = "dilated causal convolutions over audio samples",
     .build = &zoo::wavenet,
     .full = {.length = 4096, .max_length = 65536, .depth = 30},
     .tiny = {.length = 32, .max_length = 65536, .depth = 4}},
    {.name = "dlrm",
     .summary = "recommendation: embedding bags and their pairwise products",
     .build = &zoo::dlrm,
     .full = {.batch = 128, .length = 1},
     .tiny = {.batch = 4, .length = 3}},
    {.name = "graph_network",
     .summary = "message passing over a mesh; length counts the nodes of one mesh",
     .build = &zoo::graph_network,
     .full = {.length = 2000, .max_length = 65536, .depth = 15},
     .tiny = {.length = 20, .max_length = 65536, .depth = 2}},
};

// The size asked for, or the model's own.
Result<int64_t> chosen(const ZooEntry& entry, std::string_view what, std::optional<int64_t> asked,
                       int64_t own, int64_t max) {
  if (!asked) return own;
  if (own == 0) return usage_error("model '{}' has no {}", entry.name, what);
  if (*asked < 1 || *asked > max)
    return usage_error("{} {} is outside of 1 to {}", what, *asked, max);
  return *asked;
}

Status choose_sizes(Net& net, const ZooEntry& entry, const ZooOptions& o) {
  constexpr int64_t kMaxBatch = 1024, kMaxImage = 16384, kMaxDepth = 1000, kMaxClasses = 65536;
  net.tiny = o.size == ZooSize::tiny;
  const ZooSizes& own = net.tiny ? entry.tiny : entry.full;
  net.max_length = own.max_length;
  net.batch = HONE_TRY(chosen(entry, "batch", o.batch, own.batch, kMaxBatch));
  net.length = HONE_TRY(chosen(entry, "length", o.length, own.length, own.max_length));
  net.image = HONE_TRY(chosen(entry, "image size", o.image, own.image, kMaxImage));
  net.depth = HONE_TRY(chosen(entry, "depth", o.depth, own.depth, kMaxDepth));
  net.classes = HONE_TRY(chosen(entry, "number of classes", o.classes, own.classes, kMaxClasses));
  net.unroll = o.unroll;
  if (o.unroll && !entry.unrolls)
    return usage_error("model '{}' has no recurrent cell to unroll", entry.name);
  if (o.symbolic_batch) net.batch = Symbol::get("N", 1, kMaxBatch);
  if (!o.symbolic_length) return {};
  if (own.length == 0) return usage_error("model '{}' has no length", entry.name);
  if (o.unroll) return usage_error("a symbolic length cannot be unrolled");
  net.length = Symbol::get("T", 1, own.max_length);
  return {};
}

}  // namespace

std::span<const ZooEntry> zoo_entries() { return kEntries; }

Result<Graph> build_zoo_model(std::string_view name, const ZooOptions& options) {
  static constexpr std::string_view kList = "'hone zoo list' shows the models";
  if (name.empty()) return usage_error("the name of a zoo model is missing").with_hint(kList);
  std::vector<std::string_view> names;
  for (const ZooEntry& entry : kEntries) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    Builder builder(entry.name);
    Net net(builder, options.seed);
    HONE_TRY(choose_sizes(net, entry, options));
    return builder.finish(entry.build(net));
  }
  const std::string meant = did_you_mean(name, names);
  return usage_error("there is no model '{}' in the zoo", excerpt(name))
      .with_hint(meant.empty() ? kList : std::string_view(meant));
}

}  // namespace hone
