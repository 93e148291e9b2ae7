"""Prints the numbers of the tokens of a text by the library `tokenizers`, for a byte-level vocabulary
of a GGUF file, or for a tokenizer.json: reference_tokens.py MODEL TEXT_FILE. Writes a random text with
--random SEED SIZE, and a random unigram vocabulary with --unigram plain|bytes FILE."""

import json
import random
import struct
import sys


def random_text(seed, size):
    rng = random.Random(seed)
    common = ["the", "other", "it's", "WE'LL", " ", "  ", "\n", "\r\n", "\t", "7", "123456", "'", "é", "語",
              "😀", "e\u0301", "_", "--", "...", "\u3000", "\u00a0", "Ⅷ", "½", "ß", "don't", "<", "a", "on"]
    text = []
    for _ in range(size):
        if rng.random() < 0.75:
            text.append(rng.choice(common))
        else:
            code = rng.choice([0x80, 0x500, 0x3000, 0xD800, 0x10000, 0x20000])
            text.append(chr(rng.randrange(1, code)))
    return "".join(text).replace("<s>", "").replace("</s>", "")


def metadata(path):
    data = open(path, "rb").read()
    at = 8
    sizes = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def number(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def value(kind):
        nonlocal at
        if kind == 8:
            size = number("Q")
            at += size
            return data[at - size : at].decode()
        if kind == 9:
            item, count = number("I"), number("Q")
            return [value(item) for _ in range(count)]
        return number(sizes[kind])

    number("Q")
    keys = {}
    for _ in range(number("Q")):
        key = value(8)
        keys[key] = value(number("I"))
    return keys


def tokenizer(keys):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokens = keys["tokenizer.ggml.tokens"]
    merges = [tuple(line.split(" ", 1)) for line in keys["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    steps = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if keys["tokenizer.ggml.pre"] == "smollm":
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return made


def random_unigram(has_bytes, path):
    """Pieces of a random text. Scores are quarters, so that sums are exact and often equal."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    rng = random.Random(4)
    text = random_text(99, 2000).encode("utf-8", "ignore").decode().replace(" ", "\u2581")
    pieces = {"<unk>": 0.0}
    for _ in range(600):
        at = rng.randrange(len(text))
        pieces.setdefault(text[at : at + rng.choice([1, 1, 2, 3, 4, 7])], -rng.randrange(4, 60) / 4)
    if has_bytes:
        pieces.update({f"<0x{byte:02X}>": 0.0 for byte in range(256)})
    made = Tokenizer(models.Unigram(list(pieces.items()), unk_id=0, byte_fallback=has_bytes))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.save(path)


if sys.argv[1] == "--unigram":
    random_unigram(sys.argv[2] == "bytes", sys.argv[3])
elif sys.argv[1] == "--random":
    text = random_text(int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.buffer.write(text.encode("utf-8", "ignore"))
else:
    text = open(sys.argv[2], newline="", encoding="utf-8").read()
    if sys.argv[1].endswith(".json"):
        from tokenizers import Tokenizer

        made = Tokenizer.from_file(sys.argv[1])
    else:
        made = tokenizer(metadata(sys.argv[1]))
    for number in made.encode(text, add_special_tokens=False).ids:
        print(number)
