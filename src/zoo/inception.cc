#include "zoo/models.h"

// Inception v3 (Szegedy et al. 2015), without the auxiliary head.

namespace hone::zoo {
namespace {

Value unit(Net& net, std::string_view name, Value x, int64_t channels, const ConvSpec& spec) {
  return relu(conv_bn(net, name, x, net.width(channels), spec, {.epsilon = 1e-3}));
}

Value pool_branch(Net& net, Value x, int64_t channels) {
  return unit(net, "pool", avg_pool(x, 3, 1, 1), channels, {.kernel = {1}});
}

// The names of the blocks are those of the paper's figures: A 5, C 6, E 7; B and D halve the image.
Value block_a(Net& net, Value x, int64_t pool_channels) {
  Value one = unit(net, "1x1", x, 64, {.kernel = {1}});
  Value five = unit(net, "5x5/1", x, 48, {.kernel = {1}});
  five = unit(net, "5x5/2", five, 64, {.kernel = {5}});
  Value twice = unit(net, "3x3dbl/1", x, 64, {.kernel = {1}});
  twice = unit(net, "3x3dbl/2", twice, 96, {.kernel = {3}});
  twice = unit(net, "3x3dbl/3", twice, 96, {.kernel = {3}});
  return concat({one, five, twice, pool_branch(net, x, pool_channels)}, 1);
}

Value block_b(Net& net, Value x) {
  Value three = unit(net, "3x3", x, 384, {.kernel = {3}, .stride = 2, .padding = {0}});
  Value twice = unit(net, "3x3dbl/1", x, 64, {.kernel = {1}});
  twice = unit(net, "3x3dbl/2", twice, 96, {.kernel = {3}});
  twice = unit(net, "3x3dbl/3", twice, 96, {.kernel = {3}, .stride = 2, .padding = {0}});
  return concat({three, twice, max_pool(x, 3, 2)}, 1);
}

Value block_c(Net& net, Value x, int64_t inner) {
  Value one = unit(net, "1x1", x, 192, {.kernel = {1}});
  Value seven = unit(net, "7x7/1", x, inner, {.kernel = {1}});
  seven = unit(net, "7x7/2", seven, inner, {.kernel = {1, 7}});
  seven = unit(net, "7x7/3", seven, 192, {.kernel = {7, 1}});
  Value twice = unit(net, "7x7dbl/1", x, inner, {.kernel = {1}});
  twice = unit(net, "7x7dbl/2", twice, inner, {.kernel = {7, 1}});
  twice = unit(net, "7x7dbl/3", twice, inner, {.kernel = {1, 7}});
  twice = unit(net, "7x7dbl/4", twice, inner, {.kernel = {7, 1}});
  twice = unit(net, "7x7dbl/5", twice, 192, {.kernel = {1, 7}});
  return concat({one, seven, twice, pool_branch(net, x, 192)}, 1);
}

Value block_d(Net& net, Value x) {
  Value three = unit(net, "3x3/1", x, 192, {.kernel = {1}});
  three = unit(net, "3x3/2", three, 320, {.kernel = {3}, .stride = 2, .padding = {0}});
  Value seven = unit(net, "7x7x3/1", x, 192, {.kernel = {1}});
  seven = unit(net, "7x7x3/2", seven, 192, {.kernel = {1, 7}});
  seven = unit(net, "7x7x3/3", seven, 192, {.kernel = {7, 1}});
  seven = unit(net, "7x7x3/4", seven, 192, {.kernel = {3}, .stride = 2, .padding = {0}});
  return concat({three, seven, max_pool(x, 3, 2)}, 1);
}

// A 1x3 and a 3x1 convolution side by side.
Value fork(Net& net, std::string_view name, Value x) {
  Builder::Scope scope = net.scope(name);
  Value left = unit(net, "1x3", x, 384, {.kernel = {1, 3}});
  return concat({left, unit(net, "3x1", x, 384, {.kernel = {3, 1}})}, 1);
}

Value block_e(Net& net, Value x) {
  Value one = unit(net, "1x1", x, 320, {.kernel = {1}});
  Value three = fork(net, "3x3/2", unit(net, "3x3/1", x, 384, {.kernel = {1}}));
  Value twice = unit(net, "3x3dbl/1", x, 448, {.kernel = {1}});
  twice = fork(net, "3x3dbl/3", unit(net, "3x3dbl/2", twice, 384, {.kernel = {3}}));
  return concat({one, three, twice, pool_branch(net, x, 192)}, 1);
}

// Runs a block with its names under `name`.
template <class Block, class... Args>
Value named_block(Net& net, std::string_view name, Block block, Value x, Args... args) {
  Builder::Scope scope = net.scope(name);
  return block(net, x, args...);
}

}  // namespace

Outputs inception_v3(Net& net) {
  Value x = unit(net, "1a", net.images(), 32, {.kernel = {3}, .stride = 2, .padding = {0}});
  x = unit(net, "2a", x, 32, {.kernel = {3}, .padding = {0}});
  x = unit(net, "2b", x, 64, {.kernel = {3}});
  x = max_pool(x, 3, 2);
  x = unit(net, "3b", x, 80, {.kernel = {1}});
  x = unit(net, "4a", x, 192, {.kernel = {3}, .padding = {0}});
  x = max_pool(x, 3, 2);
  x = named_block(net, "5b", block_a, x, 32);
  x = named_block(net, "5c", block_a, x, 64);
  x = named_block(net, "5d", block_a, x, 64);
  x = named_block(net, "6a", block_b, x);
  x = named_block(net, "6b", block_c, x, 128);
  x = named_block(net, "6c", block_c, x, 160);
  x = named_block(net, "6d", block_c, x, 160);
  x = named_block(net, "6e", block_c, x, 192);
  x = named_block(net, "7a", block_d, x);
  x = named_block(net, "7b", block_e, x);
  x = named_block(net, "7c", block_e, x);
  return {classifier(net, "fc", x)};
}

}  // namespace hone::zoo
