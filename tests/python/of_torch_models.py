"""Models of torchvision and transformers, made from configurations, compute with hone what they
compute with PyTorch: by torch.export and by torch.compile. Skipped where the packages are not
installed; HONE_TORCH_PYTHON names an interpreter that has them. Arguments: names of models."""

import os
import sys
import time

try:
    import torch
    import torchvision
    import transformers
except ImportError:
    other = os.environ.get("HONE_TORCH_PYTHON", "")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", os.path.abspath(__file__), *sys.argv[1:]])
    print("skipped: there is no torch, torchvision and transformers; HONE_TORCH_PYTHON names an "
          "interpreter that has them")  # fmt: skip
    sys.exit(77)

from torch import nn
from torchvision.models import resnet

import hone
import hone.torch

OPTIONS = {"cache": None, "log": None, "cost": "default"}
TOLERANCE = 1e-4  # of the largest element: sums of f32 in another order, through all layers
vision = torchvision.models


def image(size):
    return torch.rand(2, 3, size, size)


def of_vision(make, size, **options):
    return lambda: (make(weights=None, num_classes=10, **options), (image(size),))


class Plain(nn.Module):
    """A model of transformers whose result is one tensor."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *args):
        made = self.model(**dict(zip(self.names, args)))
        return made.logits if hasattr(made, "logits") else made[0]


SMALL = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    vocab_size=99, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
TOKENS = "input_ids attention_mask".split()


def tokens():
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    return torch.randint(3, 99, (2, 12)), mask


def of_text(model, config, **options):
    def make():
        given = {**SMALL, **options}
        kind = getattr(transformers, config)
        return Plain(getattr(transformers, model)(kind(**given)), TOKENS), tokens()

    return make


def decoder(model, config, **options):
    return of_text(model, config, use_cache=False, **options)


GROUPED = {"num_key_value_heads": 2}
OF_GPT = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)


def encoder_decoder(model, config, **options):
    def make():
        made = getattr(transformers, model)(getattr(transformers, config)(
            vocab_size=99, pad_token_id=0, decoder_start_token_id=1, use_cache=False,
            **options))  # fmt: skip
        return Plain(made, [*TOKENS, "decoder_input_ids"]), (*tokens(), tokens()[0][:, :7])

    return make


def clip():
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    made = transformers.CLIPModel(transformers.CLIPConfig(
        text_config={**small, "vocab_size": 99, "eos_token_id": 2, "bos_token_id": 1},
        vision_config={**small, "image_size": 32, "patch_size": 8}, projection_dim=16))  # fmt: skip

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = made

        def forward(self, text, mask, picture):
            out = self.model(input_ids=text, attention_mask=mask, pixel_values=picture)
            return out.logits_per_image, out.text_embeds

    return Both(), (*tokens(), image(32))


def of_pictures(model, config, **options):
    def make():
        made = getattr(transformers, model)(getattr(transformers, config)(
            image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=4, intermediate_size=64, **options))  # fmt: skip
        return Plain(made, ["pixel_values"]), (image(32),)

    return make


def whisper():
    made = transformers.WhisperModel(transformers.WhisperConfig(
        d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99,
        num_mel_bins=16, max_source_positions=20, max_target_positions=20, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False))  # fmt: skip
    given = torch.rand(2, 16, 40), tokens()[0][:, :7]
    return Plain(made, ["input_features", "decoder_input_ids"]), given


MODELS = {
    "resnet18": of_vision(vision.resnet18, 64),
    "resnext": lambda: (resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], groups=4, num_classes=10,
                                      width_per_group=8), (image(64),)),
    "mobilenet_v2": of_vision(vision.mobilenet_v2, 64),
    "mobilenet_v3": of_vision(vision.mobilenet_v3_small, 64),
    "efficientnet": of_vision(vision.efficientnet_b0, 64),
    "densenet": lambda: (vision.DenseNet(8, (2, 2, 2), 16, num_classes=10), (image(64),)),
    "shufflenet": of_vision(vision.shufflenet_v2_x0_5, 64),
    "squeezenet": of_vision(vision.squeezenet1_1, 64),
    "convnext": lambda: (vision.ConvNeXt([vision.convnext.CNBlockConfig(16, 32, 1),
                                          vision.convnext.CNBlockConfig(32, None, 2)],
                                         num_classes=10), (image(64),)),
    "bert": of_text("BertForMaskedLM", "BertConfig"),
    "roberta": of_text("RobertaModel", "RobertaConfig"),
    "distilbert": lambda: (
        Plain(transformers.DistilBertModel(transformers.DistilBertConfig(
            vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64)), TOKENS), tokens()),
    "albert": of_text("AlbertModel", "AlbertConfig", embedding_size=16),
    "electra": of_text("ElectraModel", "ElectraConfig", embedding_size=16),
    "deberta": of_text("DebertaV2Model", "DebertaV2Config", relative_attention=True,
                       pos_att_type=["p2c", "c2p"], position_buckets=8),
    "gpt2": decoder("GPT2LMHeadModel", "GPT2Config", **OF_GPT),
    "gpt_neox": decoder("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "llama": decoder("LlamaForCausalLM", "LlamaConfig", **GROUPED),
    "mistral": decoder("MistralForCausalLM", "MistralConfig", **GROUPED),
    "qwen2": decoder("Qwen2ForCausalLM", "Qwen2Config", **GROUPED),
    "gemma": decoder("GemmaForCausalLM", "GemmaConfig", head_dim=8, **GROUPED),
    "phi": decoder("PhiForCausalLM", "PhiConfig"),
    "opt": decoder("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32),
    "bloom": decoder("BloomForCausalLM", "BloomConfig", n_layer=2, n_head=4),
    "mamba": decoder("MambaForCausalLM", "MambaConfig", state_size=8),
    "t5": encoder_decoder("T5ForConditionalGeneration", "T5Config", d_model=32, d_kv=8, d_ff=64,
                          num_layers=2, num_heads=4),
    "bart": encoder_decoder("BartForConditionalGeneration", "BartConfig", d_model=32,
                            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64),
    "vit": of_pictures("ViTModel", "ViTConfig"),
    "clip": clip,
    "whisper": whisper,
}  # fmt: skip


def difference(ours, theirs):
    """Of all elements, by the largest of the tensor."""
    worst = 0.0
    ours, theirs = (torch.utils._pytree.tree_leaves(one) for one in (ours, theirs))
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    for one, other in zip(ours, theirs):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), (one.shape, other.shape)
        assert torch.equal(one.isfinite(), other.isfinite())
        apart = (one.double() - other.double()).abs().nan_to_num(0)
        scale = float(other.double().abs().nan_to_num(0, 0, 0).max())
        worst = max(worst, float(apart.max()) / (scale or 1.0))
    return worst


def run(name):
    torch.manual_seed(0)
    module, given = MODELS[name]()
    module = module.eval()
    said = []
    with torch.no_grad():
        for weights in module.parameters():  # Some begin as zeros, and then all agree.
            if not weights.any():
                weights.normal_(0, 0.1)
        want = module(*given)
        for way in ("export", "compile"):
            begin, left = time.time(), {}
            if way == "export":
                model = hone.torch.compile(module, given, **OPTIONS)
                left = model.eager
            else:
                torch._dynamo.reset()
                options = {"eager": lambda op, reason: left.update({op: reason}), **OPTIONS}
                model = torch.compile(module, backend="hone", options=options)
            worst = difference(model(*given), want)
            assert worst <= TOLERANCE, f"{way}: {worst} from PyTorch"
            ops = ", ".join(f"{op} ({reason})" for op, reason in sorted(left.items()))
            said.append(f"{way} {worst:.1e} {time.time() - begin:.0f} s  {ops}".rstrip())
    return said


def main(names):
    failed = []
    names = names or list(MODELS)
    for name in names:
        try:
            lines = run(name)
        except Exception as error:
            failed.append(name)
            lines = [f"FAILED {type(error).__name__}: {str(error).splitlines()[:3]}"]
        for line in lines:
            print(f"{name:20}{line}", flush=True)
    print(f"{len(names) - len(failed)} of {len(names)} models agree with PyTorch")
    sys.exit(1 if failed else 0)


main(sys.argv[1:])
