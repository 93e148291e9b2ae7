"""Graphs, prices and searches from Python."""

import os
import signal
import subprocess
import sys
import threading
import unittest

import numpy as np

import hone
import hone.graph as hg

QUIET = {"cache": None, "log": None, "progress": False}
RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.random(shape, np.float32)


class Graphs(unittest.TestCase):
    def check(self, graph, *inputs, tolerance=1e-5):
        """Compiled, against the reference."""
        results = hone.compile(graph, **QUIET)(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        for computed, expected in zip(results, graph.evaluate(inputs)):
            np.testing.assert_allclose(computed, expected, rtol=tolerance, atol=tolerance)
        return results

    def test_a_network(self):
        w, bias = random(8, 4), random(4)
        b = hg.Builder("mlp")
        n = b.symbol("N", 1, 16)
        x = b.parameter("x", "f32", [n, 8])
        self.assertEqual((x.shape, x.dtype), (("N", 8), "f32"))
        self.assertEqual(repr(x), "<hone.graph.Value f32[N, 8]>")
        h = hg.relu(x @ w + bias)
        y = hg.softmax(h * 2.0 - 1, axis=-1).named("y")
        graph = b.finish(y, h)
        self.assertIn("%y = softmax", str(graph))
        given = random(3, 8)
        probability, _ = self.check(graph, given)
        np.testing.assert_allclose(probability.sum(axis=1), np.ones(3), rtol=1e-6)
        again = hg.parse(graph.text())
        self.assertEqual(again.hash, graph.hash)
        for name in ("mlp.hone", "mlp.onnx"):
            graph.save(name)
            np.testing.assert_array_equal(hone.load(name, **QUIET)(given)[0], probability)
        self.assertEqual(hg.load("mlp.hone").hash, graph.hash)

    def test_every_elementwise_op_of_one_real(self):
        b = hg.Builder()
        x = b.parameter("x", "f32", [2, 5])
        names = "neg abs floor exp log sqrt tanh sin erf logistic gelu"
        outputs = [getattr(hg, name)(x) for name in names.split()]
        self.check(b.finish(*outputs), random(2, 5) + 0.5)

    def test_ops_with_attributes_numbers_and_several_results(self):
        b = hg.Builder()
        x = b.parameter("x", "f32", [4, 6])
        outputs = [
            hg.reduce(x, kind="max", axes=[1]),
            hg.transpose(x, permutation=[1, 0]),
            hg.reshape(x, dims=[2, 12]),
            hg.select(hg.compare(x, 0.5, direction="lt"), 0.0, x),
            hg.concat(x, 1 / (x + 1), axis=0),
            2 ** x,
            random(4, 6) + x,
            random(3, 4) @ x,
            *hg.top_k(x, k=2, axis=1),
        ]
        self.check(b.finish(*outputs), random(4, 6))
        self.assertIn("axes", hg.reduce.__doc__)
        self.assertTrue(callable(hg.not_) and callable(hg.and_))

    def test_regions(self):
        b = hg.Builder()
        x = b.parameter("x", "f32", [5, 3])
        k = b.parameter("k", "i64", [])
        is_small = hg.compare(k, 2, direction="lt")
        (chosen,) = hg.if_else(is_small, [x], lambda v: v + 1, lambda v: v * 2)
        last, _ = hg.while_loop(
            [x, k],
            lambda v, i: hg.compare(i, 4, direction="lt"),
            lambda v, i: (v * 0.5, i + 1),
        )
        zeros = np.zeros(3, np.float32)
        total, steps = hg.scan([b.constant(zeros)], [x], lambda s, row: (s + row, s))
        graph = b.finish(chosen, last, total, steps)
        for count in (0, 3):
            self.check(graph, random(5, 3), np.int64(count))

    def test_says_what_is_wrong(self):
        b = hg.Builder()
        x = b.parameter("x", "f32", [2, 3])
        k = b.parameter("k", "i64", [3])
        kept = []
        keep = lambda row: kept.append(row) or row  # noqa: E731
        for attempt, words in [
            (lambda: x + k, "add"),
            (lambda: hg.relu(x, axis=1), "relu has no attribute 'axis'"),
            (lambda: hg.reduce(x, kind="sum", axes="one"), "attribute 'axes' takes another type"),
            (lambda: hg.reduce(x, kind="product of", axes=[0]), "kind"),
            (lambda: hg.reshape(x, dims=[7]), "reshape"),
            (lambda: hg.reshape(x, dims=["M"]), "M"),
            (lambda: hg.relu(1.0), "no operand is a value"),
            (lambda: b.op("reluu", x), "no op 'reluu'"),
            (lambda: x @ np.ones((4, 4), np.float32), "dot|contract"),
            (lambda: x + np.ones(3, np.complex64), "element type"),
            (lambda: b.parameter("y", "float", [1]), "'float'"),
            (lambda: b.symbol("N", 5, 4), "lies in 5..4"),
            (lambda: b.symbol("1", 1, 4), "'1'"),
            (lambda: x + hg.Builder().parameter("z", "f32", [3]), "different graphs"),
            (lambda: hg.scan([], [x], keep) and kept[0].shape, "returned"),
            (lambda: hg.parse("graph @x("), "<text>:1"),
        ]:
            with self.assertRaisesRegex(hone.Error, words):
                attempt()
        with self.assertRaises(ZeroDivisionError):
            hg.scan([], [x], lambda row: 1 / 0)
        graph = b.finish(x + 1)
        self.check(graph, random(2, 3), np.arange(3))
        with self.assertRaisesRegex(hone.UsageError, "finished"):
            x + 1


class Prices(unittest.TestCase):
    def test_choose_plans(self):
        class Simple(hone.Cost):
            kernels = set()
            chosen_by = "analytic"

            def price(self, kernel, schedules, threads):
                assert kernel.features(schedules).shape == (len(schedules), len(FEATURES))
                assert len(kernel.text()) > 0 and kernel.loops
                self.kernels.add(kernel.name)
                return [len(str(schedule)) * 1e-6 for schedule in schedules]

            def command(self):
                return 1e-6

        from hone._compiler import FEATURES

        x = random(2, 16)
        cost = Simple()
        model = hone.compile("zoo:mlp,size=tiny", cost=cost, **QUIET)
        default = hone.compile("zoo:mlp,size=tiny", **QUIET)
        self.assertTrue(cost.kernels)
        self.assertNotEqual(model.plan, default.plan)
        np.testing.assert_allclose(model(x), default(x), rtol=1e-5, atol=1e-6)

    def test_that_fail_are_told(self):
        class Wrong(hone.Cost):
            def __init__(self, answer):
                self.answer = answer

            def price(self, kernel, schedules, threads):
                return self.answer(schedules)

        for answer, words in [
            (lambda s: [1.0] * (len(s) + 1), "prices of"),
            (lambda s: [float("nan")] * len(s), "returned nan"),
            (lambda s: 1 / 0, "division"),
            (lambda s: "text", ""),
        ]:
            with self.assertRaisesRegex(Exception, words):
                hone.compile("zoo:mlp,size=tiny", cost=Wrong(answer), **QUIET)


class Tuning(unittest.TestCase):
    def test_by_a_search_with_progress(self):
        class Walk(hone.Search):
            looked = 0

            def look(self, run):
                self.looked += 1
                self.run = run
                assert run.text(run.best) and run.coordinates(run.best) > 0
                while True:
                    nearby = run.neighbours(run.best, 0) or [run.draw()]
                    if not run.price([p for p in nearby[:4] if p is not None]):
                        return
                    if run.draw() is None or run.trials > 20:
                        return

        heard = []
        search = Walk()
        b = hg.Builder("d")
        x, w = b.parameter("x", "f32", [64, 64]), b.parameter("w", "f32", [64, 64])
        graph = b.finish(x @ w)
        tuned = hone.tune(
            graph, seconds=6, search=search, only="schedules", cache=None, log="tune.db",
            threads=1, progress=heard.append,
        )
        self.assertGreater(search.looked, 0)
        self.assertTrue(os.path.exists("tune.db"))
        self.assertGreaterEqual(tuned.gain, 1)
        self.assertTrue(heard and heard[0].label == "seconds" and "seconds" in heard[-1].line)
        with self.assertRaisesRegex(hone.UsageError, "the search is over"):
            search.run.best
        inputs = random(64, 64), random(64, 64)
        model = hone.compile(graph, plan=tuned.plan, cache=None)
        np.testing.assert_allclose(model(*inputs), inputs[0] @ inputs[1], rtol=1e-4)
        hone.compile(graph, cache=None, log="tune.db", threads=1, progress=False)

    def test_refuses(self):
        for options, words in [
            ({"search": "guess"}, "guess"),
            ({"only": "colours"}, "colours"),
            ({"seconds": 0}, "budget"),
        ]:
            with self.assertRaisesRegex(hone.UsageError, words):
                hone.tune("zoo:mlp,size=tiny", **{"seconds": 1, **options}, **QUIET)
        with self.assertRaises(hone.Error):
            hone.tune("zoo:mlp,size=tiny,symbolic-batch", seconds=1, **QUIET)

    def test_ends_by_ctrl_c(self):
        timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            hone.tune("zoo:mlp,size=tiny", seconds=60, **QUIET)
        timer.join()

    def test_ends_when_progress_raises(self):
        def stop(progress):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            hone.tune("zoo:mlp,size=tiny", seconds=60, cache=None, log=None, progress=stop)


class Examples(unittest.TestCase):
    def test_run(self):
        folder = os.path.join(os.environ["ROOT"], "examples")
        for name, arguments, words in [
            ("own_cost.py", [], "schedules had a price"),
            ("own_search.py", ["zoo:mlp,size=tiny", "3"], ""),
            ("own_model.py", [], "%y = softmax"),
            ("run_model.py", [], "logits float32 (2, 10)"),
            ("run_model.py", ["layer.onnx"], "y float32 (1, 2)"),
        ]:
            path = os.path.join(folder, name)
            with open(path, encoding="utf8") as file:
                self.assertLessEqual(len(file.readlines()), 30)
            environment = {**os.environ, "XDG_CACHE_HOME": os.getcwd()}
            environment["HONE_LOG"] = os.path.abspath("examples.db")
            found = subprocess.run(
                [sys.executable, path, *arguments], env=environment, capture_output=True, text=True
            )
            self.assertEqual(found.returncode, 0, found.stderr)
            self.assertIn(words, found.stdout)


if __name__ == "__main__":
    unittest.main()
