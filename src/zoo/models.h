#pragma once

#include <vector>

#include "zoo/net.h"

// The models of the zoo, each a function from its sizes to its outputs; zoo.cc holds the table.

namespace hone::zoo {

using Outputs = std::vector<Value>;

// cnn_classic.cc
Outputs mlp(Net& net);
Outputs alexnet(Net& net);
Outputs vgg16(Net& net);
Outputs vgg19(Net& net);
Outputs squeezenet(Net& net);

// cnn_residual.cc
Outputs resnet18(Net& net);
Outputs resnet50(Net& net);
Outputs resnext50(Net& net);
Outputs densenet121(Net& net);

// cnn_mobile.cc
Outputs mobilenet_v2(Net& net);
Outputs mobilenet_v3(Net& net);
Outputs efficientnet_b0(Net& net);
Outputs shufflenet_v2(Net& net);

// inception.cc, nasnet.cc, segmentation.cc, detection.cc
Outputs inception_v3(Net& net);
Outputs nasnet_a(Net& net);
Outputs unet(Net& net);
Outputs yolo_v3(Net& net);

// transformer_encoder.cc
Outputs bert_base(Net& net);
Outputs vit_b16(Net& net);
Outputs mixer_b16(Net& net);

// transformer_decoder.cc, transformer_xl.cc
Outputs gpt2(Net& net);
Outputs gpt2_decode(Net& net);
Outputs llama(Net& net);
Outputs transformer_xl(Net& net);

// recurrent.cc
Outputs lstm_language_model(Net& net);
Outputs gnmt(Net& net);
Outputs nas_rnn(Net& net);

// audio.cc, recommend.cc, graph_network.cc
Outputs wavenet(Net& net);
Outputs dlrm(Net& net);
Outputs graph_network(Net& net);

}  // namespace hone::zoo
