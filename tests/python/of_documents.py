"""The examples of pages with JAX, PyTorch or TensorFlow run, one after another, and print what the
page shows: each where its package is installed. HONE_JAX_PYTHON, HONE_TORCH_PYTHON and
HONE_TENSORFLOW_PYTHON name interpreters that have them."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["ROOT"])
FRAMEWORKS = ("jax", "torch", "tensorflow")
MARK = "---- the next block ----"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}


def python_of(framework):
    """An interpreter that has it, or none."""
    named = os.environ.get(f"HONE_{framework.upper()}_PYTHON")
    for python in (sys.executable, named):
        probe = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
        if python and subprocess.run([python, "-c", probe, framework]).returncode == 0:
            return python
    return None


def agrees(shown, printed):
    """`...` stands for anything within a line."""
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, printed) is not None


def check(page, python, blocks):
    program, wanted = "", []
    for kind, text in blocks:
        if kind == "output":
            wanted.append(text)
        else:
            program += f"{text}print({MARK!r})\n"
            wanted.append(None)
    environment = {**os.environ, **QUIET, "XDG_CACHE_HOME": os.path.abspath("cache")}
    environment["HONE_LOG"] = os.path.abspath("log.db")
    with open("program.py", "w", encoding="utf8") as file:
        file.write(program)
    done = subprocess.run(
        [python, "-B", "program.py"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, f"{page}: an example ends with {done.returncode}"
    printed = iter(done.stdout.split(MARK + "\n"))
    last = ""
    for text in wanted:
        if text is None:
            last = next(printed)
        else:
            assert agrees(text, last), f"{page} shows\n{text}hone prints\n{last}"


ran = 0
for framework in FRAMEWORKS:
    python = python_of(framework)
    if python is None:
        print(f"skipped: there is no {framework}")
        continue
    seen = 0
    for file in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
        fence = rf"^```(python|output) of {framework}\n(.*?)^```$"
        blocks = re.findall(fence, file.read_text(encoding="utf8"), re.M | re.S)
        if blocks:
            check(str(file.relative_to(ROOT)), python, blocks)
            seen += len(blocks)
    assert seen >= 2, f"no page has an example with {framework}"
    print(f"{seen} blocks of {framework} run")
    ran += 1
sys.exit(0 if ran else 77)
