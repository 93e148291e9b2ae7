"""Shows what fewer bits give: speed against f32 and against engines that people could install, errors,
right answers and energy. Each section prints a table; docs/measuring.md says what the figures mean.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RIVALS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
NETS = ["resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3"]
ZOO = ["mlp", "squeezenet", "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3",
       "efficientnet_b0", "shufflenet_v2", "inception_v3", "densenet121", "bert_base", "vit_b16",
       "mixer", "gpt2", "gpt2_decode", "lstm"]  # fmt: skip
QUICK = ["mlp", "squeezenet", "mobilenet_v3"]
LEVELS = ["bf16", "f16", "int8", "w8", "w4", "w2"]
DIGITS = """data digits{0}/train.npz
validation digits{0}/test.npz
input image
target label
loss cross-entropy
layer linear 64
layer relu
layer linear 32
layer relu
layer linear 10
rate 0.003
seed {0}
epochs 10
"""


class Failed(Exception):
    pass


def run(options, *words):
    """Standard output of a command of hone."""
    done = subprocess.run([options.hone, *map(str, words)], capture_output=True, text=True,
                          cwd=options.folder, check=False)  # fmt: skip
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Failed(next((line for line in lines if line.startswith("error")), lines[-1]))
    return done.stdout


def print_table(title, rows):
    print("\n" + title)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip(), flush=True)


def add(rows, *cells):
    """A section takes long: each row is told when it is there."""
    rows.append(list(cells))
    print("  ".join(cells), file=sys.stderr, flush=True)


def mean_text(numbers):
    return f"{math.exp(statistics.fmean(map(math.log, numbers))):.2f}" if numbers else ""


def against(options, model, threads):
    """Seconds of hone, and how many times as long each rival takes, or why it has no figure."""
    mine, ratios = None, {}
    for rival in options.rivals:
        words = ["bench", model, "--threads", threads, "--seconds", options.seconds, "--no-log"]
        try:
            said = json.loads(run(options, *words, "--vs", rival, "--python", options.python,
                                  "--json", "-"))
        except Failed as why:
            ratios[rival] = str(why)
            continue
        mine, ratios[rival] = said["seconds"]["median"], said["rival"]["ratio"]
    if mine is None:
        words = ["bench", model, "--threads", threads, "--seconds", options.seconds, "--no-log"]
        mine = json.loads(run(options, *words, "--json", "-"))["seconds"]["median"]
    return mine, ratios


def cells_of(ratios, notes, name):
    for rival, ratio in ratios.items():
        if isinstance(ratio, str):
            notes.append(f"{name}: {RIVALS[rival]}: {ratio}")
    return ["" if isinstance(one, str) else f"{one:.2f}" for one in ratios.values()]


def bandwidth(options):
    """Bytes a second that memory delivers to one core and to all, as the probe measures it."""
    text = run(options, "target", "probe", "-o", "-")
    found = re.search(r"memory = .* at ([0-9.]+) GB/s a core(?:, ([0-9.]+) GB/s in all)?", text)
    return [1e9 * float(found[1]), 1e9 * float(found[2] or found[1])]


def decoder(options):
    """2 layers, 2048 and 8192 wide, groups of 32: one token, and a prompt of 16."""
    import decoder as files  # needs onnx

    delivered = bandwidth(options)
    rows = [["decoder", "threads", "hone, ms", *map(RIVALS.get, options.rivals), "of the memory"]]
    notes = []
    for count, what in ((1, "decode"), (16, "prompt of 16")):
        for level in ("int4", "int8", "f16", "f32"):
            path = os.path.join(options.folder, f"decoder-{level}-{count}.onnx")
            if not os.path.exists(path):
                files.Decoder(level, count).write(path)
            for threads in options.threads:
                name = f"{what}, {level}"
                seconds, ratios = against(options, path, threads)
                part = files.weight_bytes(level) / seconds / delivered[0 if threads == 1 else 1]
                add(rows, name, str(threads), f"{1e3 * seconds:.3f}",
                    *cells_of(ratios, notes, name), f"{100 * part:.0f} %" if count == 1 else "")
            os.remove(path)
    print_table("How many times as long others take, and the part of the memory's speed", rows)
    print("\n".join(notes))


def bytes_of_nets(options):
    """int8 nets as they are exported, against others."""
    rows = [["int8", "threads", "hone, ms", *map(RIVALS.get, options.rivals)]]
    notes, all_ratios = [], {rival: [] for rival in options.rivals}
    for net in NETS[-1:] if options.quick else NETS:
        path = os.path.join(options.folder, f"{net}.onnx")
        run(options, "quantize", f"zoo:{net}", "--to", "int8", "--error", 1, "--trials", 0, "-o", path)
        for threads in options.threads:
            seconds, ratios = against(options, path, threads)
            add(rows, net, str(threads), f"{1e3 * seconds:.3f}", *cells_of(ratios, notes, net))
            for rival, ratio in ratios.items():
                if not isinstance(ratio, str):
                    all_ratios[rival].append(ratio)
    rows.append(["geometric mean", "", "", *map(mean_text, all_ratios.values())])
    print_table("int8 nets: how many times as long others take", rows)
    print("\n".join(notes))


def zoo(options):
    """quantize --to auto --error 1e-2 over the zoo."""
    rows, gains = [["auto, error 1e-2", "f32, ms", "then, ms", "speed", "unseen error"]], []
    notes = []
    path = os.path.join(options.folder, "auto.json")
    for name in QUICK if options.quick else ZOO:
        try:
            run(options, "quantize", f"zoo:{name}", "--to", "auto", "--error", "1e-2",
                "--threads", options.threads[0], "--json", path)
        except Failed as why:
            notes.append(f"{name}: {why}")
            continue
        with open(path, encoding="utf8") as file:
            said = json.load(file)
        gains.append(said["measured_f32"] / said["measured"])
        add(rows, name, f"{1e3 * said['measured_f32']:.3f}", f"{1e3 * said['measured']:.3f}",
            f"{gains[-1]:.2f}", f"{said['unseen']['error']:.1e}")
    rows.append(["geometric mean", "", "", mean_text(gains), ""])
    print_table("Levels by search", rows)
    print("\n".join(notes))


def train_fold(options, fold):
    run(options, "zoo", "digits", "-o", f"digits{fold}", "--seed", fold)
    with open(os.path.join(options.folder, f"net{fold}.train"), "w", encoding="utf8") as file:
        file.write(DIGITS.format(fold))
    run(options, "train", f"net{fold}.train", "--anew")


def digits(options):
    """Right answers by level: each fold has other drawings and other first weights."""
    folds = 2 if options.quick else 5
    drops, before = {level: [] for level in LEVELS}, []
    path = os.path.join(options.folder, "digits.json")
    for fold in range(folds):
        train_fold(options, fold)
        for level in LEVELS:
            run(options, "quantize", f"net{fold}/model.hone", "--dim", "N=128", "--data",
                f"digits{fold}/runs", "--labels", "label", "--to", level, "--drop", "90%",
                "--trials", 0, "--json", path)
            with open(path, encoding="utf8") as file:
                said = json.load(file)["unseen"]
            drops[level].append(said["right_f32"] - said["right"])
            if level == LEVELS[0]:
                before.append(said["right_f32"])
    rows = [["digits", "right answers", "drop", "largest of a fold"]]
    right = statistics.fmean(before)
    rows.append(["f32", f"{100 * right:.2f} %", "", ""])
    for level, each in drops.items():
        drop = statistics.fmean(each)
        rows.append([level, f"{100 * (right - drop):.2f} %", f"{100 * drop:.2f}",
                     f"{100 * max(each):.2f}"])
    print_table(f"Digits, {folds} folds of 512 images: points of accuracy", rows)


def energy(options):
    """Energy of approximate multipliers at a drop of at most half a point, on the first fold."""
    tables = options.multipliers
    if not tables:
        print("\nenergy: left out; --multipliers names a folder with multipliers.csv and tables")
        return
    with open(os.path.join(tables, "multipliers.csv"), encoding="utf8") as file:
        lines = [line.split(",") for line in file.read().splitlines()[1:]]
    own = run(options, "target", "show").rstrip().rstrip("}")
    train_fold(options, 0)
    for name, sign, power, area, *_ in lines:
        if sign == "signed":
            table = os.path.join(tables, f"{name}.npy")
            own += f'  multiplier = "{name}", signed, {power} mW, {area} um2, "{table}"\n'
    with open(os.path.join(options.folder, "chip.target"), "w", encoding="utf8") as file:
        file.write(own + "}\n")
    said = run(options, "quantize", "net0/model.hone", "--dim", "N=128", "--data", "digits0/runs",
               "--labels", "label", "--target", "chip.target", "--drop", "0.5%")
    print("\nApproximate multipliers on digits")
    print("\n".join(line for line in said.splitlines()
                    if line.startswith(("exact", "energy", "seen", "unseen"))))


SECTIONS = {"decoder": decoder, "bytes": bytes_of_nets, "zoo": zoo, "digits": digits,
            "energy": energy}  # fmt: skip


def given():
    parser = argparse.ArgumentParser(prog="./dev bench precision", description=__doc__)
    parser.add_argument("--sections", default=",".join(SECTIONS), help="some of them")
    parser.add_argument("--quick", action="store_true", help="fewer models and folds")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rivals", default=",".join(RIVALS))
    parser.add_argument("--seconds", type=float, default=1, help="for each side of a comparison")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the rivals")
    parser.add_argument("--multipliers", help="a folder of approximate multipliers")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench", "precision"))
    parser.add_argument("--hone", default=os.path.join(ROOT, "build", "release", "hone"))
    options = parser.parse_args()
    options.threads = [int(one) for one in options.threads.split(",")]
    options.sections = options.sections.split(",")
    options.rivals = options.rivals.split(",") if options.rivals else []
    for section in options.sections:
        if section not in SECTIONS:
            sys.exit(f"there is no section '{section}'; there are {', '.join(SECTIONS)}")
    for rival in options.rivals:
        if rival not in RIVALS:
            sys.exit(f"there is no rival '{rival}'; there are {', '.join(RIVALS)}")
    options.folder = os.path.abspath(options.folder)
    return options


def main():
    options = given()
    os.makedirs(options.folder, exist_ok=True)
    for section in options.sections:
        try:
            SECTIONS[section](options)
        except (Failed, ImportError) as why:
            print(f"\n{section}: {why}", flush=True)


if __name__ == "__main__":
    main()
