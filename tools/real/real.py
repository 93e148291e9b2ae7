"""hone against the engines that people could install, on models as PyTorch exports them today.

Every engine is a process; all of them run in turns. A process is stopped while it is not its turn,
because threads of some go on spinning after a run. Results are kept model by model, so that an
interrupted table goes on where it was. docs/measuring.md says what the figures mean.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

import names

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TITLES = {
    "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO f32", "openvino_own": "OpenVINO",
    "eager": "PyTorch", "inductor": "Inductor", "hone_bf16": "hone bf16",
}  # fmt: skip
FEWER_BITS = ("openvino_own", "hone_bf16")  # no rivals of a run in f32
PATIENCE = 900  # seconds to export a model, or to load and first run it


class Failed(Exception):
    pass


def has_bf16():
    """The processor multiplies bf16."""
    with open("/proc/cpuinfo", encoding="utf8") as file:
        flags = file.read()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"


class Child:
    """An engine with a model."""

    def __init__(self, program, engine, case, threads, options):
        words = [program, "-B", os.path.join(HERE, "engine.py"), engine, case.name]
        words += [str(case.batch), str(threads), case.folder]
        paths = [HERE] + ([options.package] if engine.startswith("hone") else [])
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
        environment.pop("OPENBLAS_CORETYPE", None)
        self.log = open(os.path.join(case.folder, f"{engine}.log"), "w+", encoding="utf8")
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment,
        )  # fmt: skip
        try:
            self.said = self.answer(PATIENCE)
        except Failed:
            self.end()
            raise
        self.pause()

    def answer(self, seconds):
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed("no answer in time")
            line = self.process.stdout.readline()
            if not line:
                self.log.seek(0)
                raise Failed(last_line(self.log.read()))
            said = json.loads(line)
            if "failed" in said:
                raise Failed(said["failed"])
            return said

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def run(self, seconds):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        took = self.answer(60 + 20 * seconds)["seconds"]
        self.pause()
        return took

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Case:
    def __init__(self, name, batch, options):
        self.name, self.batch = name, batch
        self.folder = os.path.join(options.files, f"{name}-{batch}")

    def prepare(self, options):
        if os.path.exists(os.path.join(self.folder, "done")):
            return
        os.makedirs(self.folder, exist_ok=True)
        export = [options.python_of["eager"], "-B", os.path.join(HERE, "export.py")]
        self.call(export + [self.name, str(self.batch), self.folder])
        if self.name in names.TRAINING:
            model = os.path.join(self.folder, "model.onnx")
            step = ["--loss", "cross-entropy", "--optimizer", "sgd"]
            self.call([options.hone, "grad", model, *step, "-o", self.folder + "/step.hone"])
        open(os.path.join(self.folder, "done"), "w").close()

    def prepare_bf16(self, options):
        """The model as `hone quantize` writes it; levels of all layers are given, so few runs do."""
        path = os.path.join(self.folder, "bf16.hone")
        if not os.path.exists(path):
            model = os.path.join(self.folder, "model.onnx")
            self.call([options.hone, "quantize", model, "--to", "bf16", "--error", "1",
                       "--trials", "0", "-o", path])  # fmt: skip

    def call(self, words):
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=PATIENCE, check=False,
                env=dict(os.environ, PYTHONPATH=HERE),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failed("it takes too long to make its files") from None
        if done.returncode != 0:
            raise Failed("its files cannot be made: " + last_line(done.stderr))

    def engines(self, options):
        own = ["eager", "inductor"] if self.name in names.TRAINING else list(TITLES)
        if not has_bf16():
            own = [one for one in own if one != "hone_bf16"]
        # The loss of eager PyTorch is what others are compared with.
        return [one for one in ["eager", "hone", *own] if one in options.engines + ["hone"]]


def measured(case, threads, options):
    """A row: seconds of each engine, ratios, differences, and why an engine has none."""
    row = {"seconds": {}, "ratio": {}, "difference": {}, "loaded": {}, "version": {}, "failed": {}}
    row["load"] = os.getloadavg()[0]
    children = {}
    try:
        for engine in dict.fromkeys(case.engines(options)):
            try:
                if engine == "hone_bf16":
                    case.prepare_bf16(options)
                child = Child(options.python_of[engine], engine, case, threads, options)
            except Failed as why:
                if engine == "hone":  # There is nothing to compare then.
                    raise Failed(f"hone did not run it: {why}") from None
                row["failed"][engine] = str(why)
                continue
            children[engine] = child
            for fact in ("difference", "loaded", "version"):
                row[fact][engine] = child.said[fact]
        rounds = []
        for number in range(options.rounds):
            order = list(children)
            times = {}
            for engine in reversed(order) if number % 2 else order:
                try:
                    times[engine] = children[engine].run(options.seconds)
                except (Failed, OSError) as why:
                    row["failed"][engine] = str(why)
                    children.pop(engine).end()
            rounds.append(times)
        for engine in children:
            row["seconds"][engine] = statistics.median(one[engine] for one in rounds)
            row["ratio"][engine] = statistics.median(
                one[engine] / one["hone"] for one in rounds if "hone" in one
            )
    finally:
        for child in children.values():
            child.end()
    return row


# ---- Rows ----------------------------------------------------------------------------------------


def build_key(options):
    """Of the processor and of hone as it is built."""
    digest = hashlib.sha256()
    package = os.path.join(options.package, "hone")
    for name in sorted(os.listdir(package)):
        if name.endswith((".so", ".py")):
            with open(os.path.join(package, name), "rb") as file:
                digest.update(file.read())
    # The name alone is that of several generations on rented machines.
    facts = {"model name": platform.processor(), "cpu family": "?", "model": "?"}
    with open("/proc/cpuinfo", encoding="utf8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if not line.strip():
                break
            if name.strip() in facts:
                facts[name.strip()] = value.strip()
    processor = "{model name} (family {cpu family}, model {model})".format(**facts)
    return processor, digest.hexdigest()[:16]


class Rows:
    def __init__(self, path):
        self.path, self.all = path, {}
        if os.path.exists(path):
            with open(path, encoding="utf8") as file:
                self.all = json.load(file)

    def keep(self, key, row):
        self.all[key] = row
        with open(self.path + ".new", "w", encoding="utf8") as file:
            json.dump(self.all, file, indent=1)
        os.replace(self.path + ".new", self.path)


# ---- Tables --------------------------------------------------------------------------------------


def best_of(row):
    """The least ratio of a rival; without those that compute in fewer bits."""
    ratios = [r for engine, r in row["ratio"].items() if engine not in ("hone", *FEWER_BITS)]
    return min(ratios, default=None)


def mean(ratios):
    return math.exp(statistics.fmean(math.log(one) for one in ratios)) if ratios else None


def number(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def line_of(name, threads, row):
    mine = row["seconds"].get("hone")
    cells = [name, str(threads), number(mine and 1e3 * mine, "{:.3f}")]
    cells += [number(row["ratio"].get(engine)) for engine in TITLES]
    worst = row["difference"].get("hone")
    worst = worst if isinstance(worst, str) or worst is None else f"{worst:.0e}"
    return cells + [number(best_of(row)), worst or ""]


def means(rows):
    """Of the models of batch 1, by threads: geometric means against each rival and the best."""
    for threads in sorted({threads for _, threads, _ in rows}):
        chosen = [row for name, threads_, row in rows
                  if threads_ == threads and "-8" not in name and not name.startswith("train_")]
        cells = ["geometric mean", str(threads), ""]
        for engine in TITLES:
            cells.append(number(mean([r["ratio"][engine] for r in chosen if engine in r["ratio"]])))
        yield cells + [number(mean([b for b in map(best_of, chosen) if b is not None])), ""]


HEADINGS = ["model", "threads", "hone, ms", *TITLES.values(), "best", "difference"]


def text_table(rows):
    lines = [HEADINGS] + [line_of(*one) for one in rows] + list(means(rows))
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )


def failures(rows):
    for name, threads, row in rows:
        for engine, why in row["failed"].items():
            yield f"{name}, threads {threads}: {TITLES.get(engine, engine)} did not run it: {why}"


INTRODUCTION = """# Performance

This page compares hone with the engines that people install, on models as PyTorch exports
them today. All of them run in turns, in fp32 at batch 1, on {cores} cores of {processor}.
The engines are {versions}.

A number says how many times as fast as an engine hone is: above 1 hone is faster. *best* is
the number of the best engine in fp32. *OpenVINO* without f32 chooses its precision: it
computes in bf16 where the processor has it. *hone bf16* is hone with the layers in bf16, as
[`hone quantize --to bf16`](quantize.md) writes them. Both do not count for *best*: the lower
number of them is the faster one. *difference* is that of hone's outputs in fp32 to
PyTorch's, in parts of an output's largest number. *train_NAME* is a step of training.

{command} measures and writes this page. [Measuring](measuring.md#real-models-dev-bench-real)
says how. [hone's own models](performance-zoo.md) have another page.
"""


def introduction(rows, processor):
    versions = {}
    for _, _, row in rows:
        for engine, version in row["version"].items():
            # Both ways of OpenVINO and of PyTorch are one package each.
            name = {"openvino_own": "OpenVINO", "openvino": "OpenVINO", "inductor": "PyTorch"}
            name = name.get(engine) or TITLES.get(engine, engine)
            versions[name] = re.split("[-+]", version)[0]
    said = [f"{name} {version}" for name, version in sorted(versions.items()) if name != "hone"]
    return INTRODUCTION.format(
        cores=os.cpu_count(), processor=processor, versions=", ".join(said),
        command="`./dev bench real --page=docs/performance.md`",
    )  # fmt: skip


def page(rows, processor):
    """docs/performance.md: the introduction and the table."""
    lines = [
        introduction(rows, processor),
        "| " + " | ".join(HEADINGS) + " |",
        "|---|" + "---|" * (len(HEADINGS) - 1),
    ]
    for cells in [line_of(*one) for one in rows] + list(means(rows)):
        lines.append("| " + " | ".join(cells) + " |")
    said = list(failures(rows))
    if said:
        lines += ["", *[f"- {one}" for one in said]]
    return "\n".join(lines) + "\n"


# ---- All of it -----------------------------------------------------------------------------------


def chosen(options):
    """Pairs of a model and a batch."""
    if options.models:
        known = names.IMAGES + names.OTHERS + names.TRAINING
        for name in options.models:
            if name not in known:
                sys.exit(f"there is no model '{name}'; there are {', '.join(known)}")
        return [(name, options.batch) for name in options.models]
    if options.quick:
        return [(name, 1) for name in names.QUICK]
    singles = [(name, 1) for name in names.IMAGES + names.OTHERS + names.TRAINING]
    return singles + [(name, 8) for name in names.BATCHED]


def given():
    build = os.path.join(ROOT, "build", "release")
    parser = argparse.ArgumentParser(prog="./dev bench real", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="eight models")
    parser.add_argument("--models", type=lambda text: text.split(","), help="these, by name")
    parser.add_argument("--batch", type=int, default=1, help="of the models that --models names")
    parser.add_argument("--threads", default="1,2", help="of each row")
    parser.add_argument("--engines", default=",".join(TITLES), help="rivals to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each engine in a round")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench", "real"))
    parser.add_argument("--page", help="also write the table to this file, as Markdown")
    parser.add_argument("--package", default=os.path.join(build, "python"), help="hone's")
    parser.add_argument("--hone", default=os.path.join(build, "hone"), help="hone's command line")
    parser.add_argument("--python", action="append", default=[], metavar="ENGINE=PROGRAM",
                        help="the Python that has an engine; default: this one")
    parser.add_argument("--drop-files", action="store_true", help="delete a model that was measured")
    options = parser.parse_args()
    options.threads = [int(one) for one in options.threads.split(",")]
    options.engines = options.engines.split(",")
    for engine in options.engines:
        if engine not in TITLES:
            sys.exit(f"there is no engine '{engine}'; there are {', '.join(TITLES)}")
    options.python_of = {engine: sys.executable for engine in ["hone", *TITLES]}
    for one in options.python:
        engine, _, program = one.partition("=")
        if engine not in options.python_of:
            sys.exit(f"--python: there is no engine '{engine}'")
        options.python_of[engine] = program
    options.files = os.path.join(options.folder, "files")
    return options


def main():
    options = given()
    os.makedirs(options.folder, exist_ok=True)
    processor, build = build_key(options)
    kept = Rows(os.path.join(options.folder, "rows.json"))
    rows = []
    for name, batch in chosen(options):
        case = Case(name, batch, options)
        title = name if batch == 1 else f"{name}-{batch}"
        for threads in options.threads:
            key = f"{processor}/{build}/{title}/{threads}/{','.join(sorted(options.engines))}"
            if key not in kept.all:
                try:
                    case.prepare(options)
                    row = measured(case, threads, options)
                except Failed as why:
                    print(f"{title}: {why}", flush=True)
                    continue
                if row["seconds"].get("hone"):
                    kept.keep(key, row)
            else:
                row = kept.all[key]
            rows.append((title, threads, row))
            print("  ".join(line_of(*rows[-1])), flush=True)
        if options.drop_files:
            shutil.rmtree(case.folder, ignore_errors=True)
    print("\n" + text_table(rows))
    print("\n".join(failures(rows)))
    if options.page:
        with open(options.page, "w", encoding="utf8") as file:
            file.write(page(rows, processor))


if __name__ == "__main__":
    main()
