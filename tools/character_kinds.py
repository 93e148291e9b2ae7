#!/usr/bin/env python3
"""Writes src/language/character_kinds.def: letters, numbers and marks as this Python knows them."""

import unicodedata

KINDS = {"L": "letter", "N": "number", "M": "mark"}


def ranges():
    current = None
    for code in range(0x110000):
        kind = KINDS.get(unicodedata.category(chr(code))[0])
        if current and current[1] == code - 1 and current[2] == kind:
            current[1] = code
            continue
        if current and current[2]:
            yield current
        current = [code, code, kind]
    if current[2]:
        yield current


def lines():
    line = ""
    for first, last, kind in ranges():
        row = f"HONE_CHARACTERS(0x{first:X}, 0x{last:X}, {kind})"
        if len(line) + len(row) + 1 > 100:
            yield line
            line = row
        else:
            line = f"{line} {row}" if line else row
    yield line


with open("src/language/character_kinds.def", "w") as file:
    file.write(
        "// Letters (general category L), numbers (N) and marks (M) of Unicode "
        f"{unicodedata.unidata_version}:\n"
        "// HONE_CHARACTERS(first, last, kind), in order. tools/character_kinds.py writes it.\n\n"
        "// clang-format off\n"
    )
    for line in lines():
        file.write(line + "\n")
    file.write("// clang-format on\n#undef HONE_CHARACTERS\n")
