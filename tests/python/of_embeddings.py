"""hone.Embedder gives the vectors that transformers gives: models of random weights and their
tokenizers, saved as folders. Skipped where the packages are not installed; HONE_TORCH_PYTHON names
an interpreter that has them."""

import json
import os
import random
import sys
import unicodedata

try:
    import tokenizers
    import torch
    import transformers
except ImportError:
    other = os.environ.get("HONE_TORCH_PYTHON", "")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", os.path.abspath(__file__), *sys.argv[1:]])
    print("skipped: there is no torch, transformers and tokenizers; HONE_TORCH_PYTHON names an "
          "interpreter that has them")  # fmt: skip
    sys.exit(77)

import hone

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
COMMON = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM .,!?'éÉüÜßøØñÇΣσςİıБжЖ中文語각ﬁ½\u0301\u200b\u00ad\t\n"
# Categories that may differ between versions of Unicode are left out.
RARE = [chr(c) for c in range(32, 0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]


def random_text(rng, size):
    return "".join(rng.choice(COMMON if rng.random() < 0.7 else RARE) for _ in range(size))


def words_of(tokenizer, text):
    normal = tokenizer.normalizer.normalize_str(text)
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]


def tokenizer_for(text, lowercase):
    """A vocabulary of most characters and some pieces of the text."""
    rng = random.Random(7)
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    vocabulary = {token: i for i, token in enumerate(SPECIAL)}
    for word in words_of(made, text):
        for i, letter in enumerate(word):
            if rng.random() < 0.95:
                vocabulary.setdefault(letter if i == 0 else "##" + letter, len(vocabulary))
        end = rng.randrange(len(word)) + 1
        vocabulary.setdefault(word[:end], len(vocabulary))
    made.model = tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]")
    made.add_special_tokens(SPECIAL)
    return made


def save_tokenizer(tokenizer, folder):
    tokenizer.save(f"{folder}/tokenizer.json")
    with open(f"{folder}/tokenizer_config.json", "w") as file:
        json.dump({"cls_token": "[CLS]", "sep_token": "[SEP]"}, file)


SHAPE = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96,
    "max_position_embeddings": 80,
}  # fmt: skip


def models(size):
    yield transformers.BertModel(transformers.BertConfig(vocab_size=size, **SHAPE))
    yield transformers.RobertaModel(
        transformers.RobertaConfig(vocab_size=size, pad_token_id=1, **SHAPE)
    )
    yield transformers.DistilBertModel(
        transformers.DistilBertConfig(
            vocab_size=size, dim=64, n_layers=3, n_heads=4, hidden_dim=96,
            max_position_embeddings=80,
        )  # fmt: skip
    )


def check(model, tokenizer, texts):
    name = type(model).__name__
    folder = os.path.abspath(name)
    model.eval().save_pretrained(folder)
    save_tokenizer(tokenizer, folder)
    for pooling in ("mean", "cls"):
        embedder = hone.Embedder(folder, pooling=pooling, threads=1, cache=None, progress=False)
        for text in texts:
            ids = [2, *tokenizer.encode(text).ids, 3]
            with torch.no_grad():
                states = model(torch.tensor([ids])).last_hidden_state[0]
            vector = states.mean(0) if pooling == "mean" else states[0]
            wanted = torch.nn.functional.normalize(vector, dim=0)
            made = torch.tensor(embedder.embed(text))
            error = (made - wanted).abs().max().item()
            assert error < 1e-5, f"{name}, {pooling}: {error} for {text!r}"
    print(name)


def main():
    torch.manual_seed(1)
    rng = random.Random(3)
    for lowercase in (True, False):
        texts = [random_text(rng, size) for size in (1, 5, 20, 40, 40, 40)]
        tokenizer = tokenizer_for(random_text(rng, 4000) + " ".join(texts), lowercase)
        for model in models(tokenizer.get_vocab_size()):
            check(model, tokenizer, [text for text in texts if len(tokenizer.encode(text).ids) < 70])


main()
