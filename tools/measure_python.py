"""What Python adds to a model: prints a table. PYTHONPATH=build/release/python python3 ..."""

import os
import subprocess
import sys
import threading
import time

import numpy as np

import hone


def cpu_ms(code, count=15):
    """Of the fastest: what others do on the machine only adds."""
    took = []
    for _ in range(count):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True)
        after = os.times()
        took.append(after.children_user - before.children_user)
        took[-1] += after.children_system - before.children_system
    return 1e3 * min(took)


def microseconds(call, seconds=1.0):
    """The fastest of many rounds: what others do on the machine only adds."""
    rounds, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(200):
            call()
        rounds.append((time.perf_counter() - began) / 200)
    return 1e6 * min(rounds)


def runs_a_second(model, inputs, threads, seconds=2.0):
    counts, end = [0] * threads, time.perf_counter() + seconds

    def work(i):
        while time.perf_counter() < end:
            model(*inputs)
            counts[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


quiet = {"cache": None, "log": None, "progress": False, "threads": 1}
bare, with_hone = cpu_ms("pass"), cpu_ms("import hone")
print(f"python3 -c pass                          {bare:8.0f} ms of a core")
print(f"python3 -c 'import hone'                 {with_hone:8.0f} ms of a core")

text = b"graph @four(%a: f32[8], %b: f32[8], %c: f32[8], %d: f32[8]) -> f32[8]"
text += b" { %e = add %a, %b %f = add %c, %d %y = add %e, %f return %y }"
model = hone.compile(text, **quiet)
arrays = [np.ones(8, np.float32) for _ in range(4)]
out = np.empty(8, np.float32)
session = hone.InferenceSession(text, **quiet)
feed = dict(zip("abcd", arrays))
print(f"model(a, b, c, d) of 8 numbers each      {microseconds(lambda: model(*arrays)):8.2f} us")
print(f"the same with out=                       "
      f"{microseconds(lambda: model(*arrays, out=out)):8.2f} us")
bound = model.bind(arrays)
print(f"bound()                                  {microseconds(bound):8.2f} us")
print(f"session.run(None, {{...}})                 "
      f"{microseconds(lambda: session.run(None, feed)):8.2f} us")

model = hone.compile("zoo:resnet18,image=64", **quiet)
arrays = [np.ones(model.inputs[0].shape, np.float32)]
one = runs_a_second(model, arrays, 1)
for threads in (1, 2, 8):
    rate = runs_a_second(model, arrays, threads)
    print(f"{threads} threads on {len(os.sched_getaffinity(0))} cores, runs a second     "
          f"      {rate:8.1f}  {rate / one:.2f}x")
