#!/usr/bin/env python3
"""Writes src/language/character_folds.def: characters without case and accents, as this Python
knows them."""

import unicodedata

HANGUL = range(0xAC00, 0xD7A4)  # taken apart by a formula


def of(categories):
    """Ranges of characters of these general categories."""
    first = None
    for code in range(0x110001):
        is_one = code < 0x110000 and unicodedata.category(chr(code)).startswith(categories)
        if is_one and first is None:
            first = code
        if not is_one and first is not None:
            yield first, code - 1
            first = None


def folds():
    """What characters become that change: without accents, and in lower case."""
    for code in range(0x110000):
        kind = unicodedata.category(chr(code))
        if kind in ("Mn", "Cs") or code in HANGUL:
            continue
        parts = unicodedata.normalize("NFD", chr(code))
        text = "".join(c for c in parts if unicodedata.category(c) != "Mn").lower()
        if text != chr(code):
            yield code, [ord(c) for c in text]


def runs(pairs):
    """Neighbours with equal steps: first, count, step, what the first one becomes, its step."""
    at = 0
    while at < len(pairs):
        best = (1, 1, 1)
        for step in (1, 2):
            for to_step in (0, 1, 2):
                end = at + 1
                while (
                    end < len(pairs)
                    and pairs[end][0] - pairs[end - 1][0] == step
                    and pairs[end][1] - pairs[end - 1][1] == to_step
                ):
                    end += 1
                best = max(best, (end - at, step, to_step), key=lambda one: one[0])
        yield pairs[at][0], best[0], best[1], pairs[at][1], best[2]
        at += best[0]


def rows():
    for first, last in of("P"):
        yield f"HONE_PUNCTUATION(0x{first:X}, 0x{last:X})"
    for first, last in of("Mn"):
        yield f"HONE_ACCENT(0x{first:X}, 0x{last:X})"
    all_folds = list(folds())
    singles = [(code, to[0]) for code, to in all_folds if len(to) == 1]
    for first, count, step, to, to_step in runs(singles):
        yield f"HONE_FOLD(0x{first:X}, {count}, {step}, 0x{to:X}, {to_step})"
    for code, to in all_folds:
        if len(to) > 1:
            codes = ", ".join(f"0x{c:X}" for c in (to + [0])[:3])
            yield f"HONE_LONG_FOLD(0x{code:X}, {codes})"


def lines():
    line = ""
    for row in rows():
        if len(line) + len(row) + 1 > 100:
            yield line
            line = row
        else:
            line = f"{line} {row}" if line else row
    yield line


with open("src/language/character_folds.def", "w") as file:
    file.write(
        "// Characters without case and accents, by the decompositions and lower case of Unicode "
        f"{unicodedata.unidata_version}.\n"
        "// tools/character_folds.py writes it.\n"
        "// HONE_PUNCTUATION(first, last): general category P.\n"
        "// HONE_ACCENT(first, last): general category Mn.\n"
        "// HONE_FOLD(first, count, step, to, to_step): what a run of characters becomes.\n"
        "// HONE_LONG_FOLD(character, a, b, c): it becomes several; c may be 0\n\n"
        "// clang-format off\n"
    )
    for line in lines():
        file.write(line + "\n")
    file.write(
        "// clang-format on\n#undef HONE_PUNCTUATION\n#undef HONE_ACCENT\n#undef HONE_FOLD\n"
        "#undef HONE_LONG_FOLD\n"
    )
