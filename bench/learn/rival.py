"""Training steps of PyTorch, one for each line on the standard input; it answers their seconds.
To the line "memory" it answers how many bytes a step has at its peak.

    /usr/bin/python3 rival.py MODEL THREADS
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile


def mlp():
    layers = []
    for i in range(6):
        layers += [nn.Linear(256, 256), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    x, target = torch.randn(1024, 256), torch.randn(1024, 256)
    return model, lambda: F.mse_loss(model(x), target)


def transformer():
    layer = nn.TransformerEncoderLayer(
        256, 4, 1024, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2)
    x, target = torch.randn(8, 128, 256), torch.randn(8, 128, 256)
    return model, lambda: F.mse_loss(model(x), target)


class Sage(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbours = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, sources, targets, counts):
        total = torch.zeros_like(x).index_add(0, targets, x[sources])
        return self.own(x) + self.neighbours(total / counts)


def sage(nodes, edges):
    layers = nn.ModuleList([Sage(64, 64) for _ in range(3)])
    x, target = torch.randn(nodes, 64), torch.randn(nodes, 64)
    sources = torch.randint(nodes, (edges,))
    targets = torch.randint(nodes, (edges,)).sort()[0]
    counts = torch.bincount(targets, minlength=nodes).clamp(min=1).unsqueeze(1).float()

    def forward():
        y = x
        for i, layer in enumerate(layers):
            y = layer(y if i == 0 else F.relu(y), sources, targets, counts)
        return y

    return layers, forward, target


def graph_sage():
    layers, forward, target = sage(20_000, 40_000)
    return layers, lambda: F.mse_loss(forward(), target)


def graph_sage_50():
    layers, forward, _ = sage(50, 100)
    return layers, forward


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def resnet18():
    widths, blocks, width = [64, 128, 256, 512], [], 64
    for i, next_width in enumerate(widths):
        blocks += [Block(width, next_width, 1 if i == 0 else 2), Block(next_width, next_width, 1)]
        width = next_width
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    model.eval()  # norms keep their means and variances, as in 'hone grad'
    x, labels = torch.randn(8, 3, 64, 64), torch.randint(1000, (8,))
    return model, lambda: F.cross_entropy(model(x), labels)


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def peak_bytes(step, model, optimizer):
    """What stays between steps, and the most that a step allocates beside it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    now = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    parameters = list(model.parameters())
    states = [t for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t)]
    gradients = [p.grad for p in parameters if p.grad is not None]
    batch = [t for t in step.batch if torch.is_tensor(t)]
    return peak + bytes_of(parameters + states + gradients + batch + list(model.buffers()))


def infer(forward):
    with torch.no_grad():
        for _ in sys.stdin:
            start = time.perf_counter()
            forward()
            print(time.perf_counter() - start, flush=True)


def main():
    torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    model, loss_of = globals()[sys.argv[1]]()
    if sys.argv[1] == "graph_sage_50":
        infer(loss_of)
        return
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        loss.item()

    step.batch = [cell.cell_contents for cell in loss_of.__closure__]
    for line in sys.stdin:
        if line.strip() == "memory":
            print(peak_bytes(step, model, optimizer), flush=True)
            continue
        start = time.perf_counter()
        step()
        print(time.perf_counter() - start, flush=True)


main()
