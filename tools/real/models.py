"""The models of `./dev bench real`: as people have them in PyTorch, with random seeded weights.

build(NAME) gives a module and its inputs; the process that exports it and the processes that run
it in PyTorch make the same one. Packages are imported when a model needs them.
"""

import torch

from names import IMAGES, TRAINING


class Call(torch.nn.Module):
    """A module whose inputs and outputs are tensors in order."""

    def __init__(self, module, function):
        super().__init__()
        self.module = module
        self.function = function

    def forward(self, *tensors):
        return self.function(self.module, *tensors)


def _tokens(vocabulary, length, batch=1):
    return torch.randint(0, vocabulary, (batch, length))


def _image(name, batch):
    import torchvision.models as vision

    size = {"inception_v3": 299, "fcn_resnet50": 320, "ssdlite320_mobilenet_v3_large": 320}
    image = torch.randn(batch, 3, size.get(name, 224), size.get(name, 224))
    if name == "inception_v3":
        return vision.inception_v3(weights=None, init_weights=True), (image,)
    if name == "fcn_resnet50":
        net = vision.segmentation.fcn_resnet50(weights=None, weights_backbone=None)
        return Call(net, lambda net, x: net(x)["out"]), (image,)
    if name == "ssdlite320_mobilenet_v3_large":
        # Boxes and scores before they are chosen: how many are chosen depends on the numbers.
        net = vision.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)

        def heads(net, x):
            found = net.head(list(net.backbone(x).values()))
            return found["bbox_regression"], found["cls_logits"]

        return Call(net, heads), (image,)
    return getattr(vision, name)(weights=None), (image,)


def _encoder(name):
    import transformers as t

    words = lambda net, ids, mask: net(input_ids=ids, attention_mask=mask)[0]
    mask = torch.ones(1, 128, dtype=torch.long)
    if name == "bert":
        return Call(t.BertModel(t.BertConfig()), words), (_tokens(30000, 128), mask)
    if name == "distilbert":
        return Call(t.DistilBertModel(t.DistilBertConfig()), words), (_tokens(30000, 128), mask)
    if name == "roberta":
        config = t.RobertaConfig(vocab_size=50265, max_position_embeddings=514)
        return Call(t.RobertaModel(config), words), (_tokens(50000, 128) + 2, mask)
    if name == "t5_encoder":
        config = t.T5Config(d_model=512, num_layers=6, num_heads=8, d_ff=2048)
        return Call(t.T5EncoderModel(config), words), (_tokens(32000, 128), mask)
    if name == "whisper_encoder":
        net = t.WhisperModel(t.WhisperConfig()).encoder
        return Call(net, lambda net, x: net(x)[0]), (torch.randn(1, 80, 3000),)
    net = t.Wav2Vec2Model(t.Wav2Vec2Config())
    return Call(net, lambda net, x: net(x)[0]), (torch.randn(1, 16000),)


def _decoder(name):
    import transformers as t

    prompt = lambda net, ids: net(input_ids=ids, use_cache=False).logits
    if name == "gpt2":
        return Call(t.GPT2LMHeadModel(t.GPT2Config()), prompt), (_tokens(50000, 64),)
    small = {
        "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8,
        "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 512,
    }  # fmt: skip
    if name == "qwen":
        return Call(t.Qwen2ForCausalLM(t.Qwen2Config(**small)), prompt), (_tokens(32000, 64),)
    if name == "llama":
        return Call(t.LlamaForCausalLM(t.LlamaConfig(**small)), prompt), (_tokens(32000, 64),)

    # One token after 128 others, whose keys and values are inputs; those with it are outputs.
    config = t.GPT2Config()
    past = [
        torch.randn(1, config.n_head, 128, config.n_embd // config.n_head)
        for _ in range(2 * config.n_layer)
    ]

    def step(net, ids, *past):
        cache = t.DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        logits = net(input_ids=ids, past_key_values=cache, use_cache=True).logits
        return (logits, *(one for layer in cache.layers for one in (layer.keys, layer.values)))

    return Call(t.GPT2LMHeadModel(config), step), (_tokens(50000, 1), *past)


class Dlrm(torch.nn.Module):
    """Tables of 26 categories, numbers through a net, and the products of all pairs."""

    def __init__(self, rows=100_000, width=64):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(rows, width) for _ in range(26))
        self.bottom = _layers(13, 512, 256, width)
        self.top = _layers(27 * 26 // 2 + width, 512, 256, 1)

    def forward(self, numbers, categories):
        x = self.bottom(numbers)
        rows = [x] + [table(categories[:, i]) for i, table in enumerate(self.tables)]
        all_rows = torch.stack(rows, 1)
        products = torch.bmm(all_rows, all_rows.transpose(1, 2))
        i, j = torch.triu_indices(27, 27, 1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, i, j]], 1)))


def _layers(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class Lstm(torch.nn.Module):
    def __init__(self, inputs=256, hidden=512, outputs=128):
        super().__init__()
        self.cells = torch.nn.LSTM(inputs, hidden, 2, batch_first=True)
        self.head = torch.nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class GraphSage(torch.nn.Module):
    """Two layers of means over neighbours; the edges are a part of the model."""

    def __init__(self, nodes=2000, edges=16000, width=128, classes=16):
        super().__init__()
        self.register_buffer("source", torch.randint(0, nodes, (edges,)))
        self.register_buffer("target", torch.randint(0, nodes, (edges,)))
        degree = torch.zeros(nodes).index_add(0, self.target, torch.ones(edges))
        self.register_buffer("share", 1 / degree.clamp(min=1)[:, None])
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(2 * width, width if i == 0 else classes) for i in range(2)
        )

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            means = torch.zeros_like(x).index_add(0, self.target, x[self.source]) * self.share
            x = layer(torch.cat([x, means], 1))
            x = torch.relu(x) if i == 0 else x
        return x


def _training(name):
    """A model, its batch, and the number of classes: the loss is the cross-entropy of labels."""
    if name == "train_mlp":
        return _layers(784, 512, 256, 10), (torch.randn(128, 784),)
    if name == "train_resnet18":
        import torchvision.models as vision

        return vision.resnet18(weights=None), (torch.randn(8, 3, 128, 128),)
    if name == "train_transformer":
        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        net = torch.nn.Sequential(encoder, torch.nn.Linear(256, 64))
        return net, (torch.randn(4, 64, 256),)
    if name == "train_lstm":
        return Lstm(64, 128, 32), (torch.randn(16, 32, 64),)
    return GraphSage(), (torch.randn(2000, 128),)


def build(name, batch=1):
    """A module that computes as in use, and its inputs. All of it is the same in every process."""
    torch.manual_seed(0)
    if name in IMAGES:
        module, inputs = _image(name, batch)
    elif name in TRAINING:
        module, inputs = _training(name)
    elif name in ("gpt2", "gpt2_decode", "qwen", "llama"):
        module, inputs = _decoder(name)
    elif name == "lstm":
        module, inputs = Lstm(), (torch.randn(1, 64, 256),)
    elif name == "dlrm":
        module, inputs = Dlrm(), (torch.randn(64, 13), torch.randint(0, 100_000, (64, 26)))
    else:
        module, inputs = _encoder(name)
    return module.eval(), inputs


def labels_of(output):
    """Random labels for what a model says: numbers of its last dim."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, output.shape[-1], output.shape[:-1], generator=generator)


def forest():
    """A forest of scikit-learn as ONNX, its inputs and what scikit-learn says."""
    import numpy as np
    import skl2onnx
    from sklearn.ensemble import RandomForestClassifier

    random = np.random.default_rng(0)
    x = random.standard_normal((2000, 40)).astype(np.float32)
    labels = (x[:, :5].sum(1) + random.standard_normal(2000) > 0).astype(np.int64)
    trees = RandomForestClassifier(100, max_depth=10, random_state=0).fit(x, labels)
    given = x[:64]
    model = skl2onnx.to_onnx(trees, given, options={"zipmap": False})
    return model.SerializeToString(), {"X": given}, [trees.predict(given), trees.predict_proba(given)]
