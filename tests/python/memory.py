"""Runs without copies: results in memory that is used again, donated inputs, bound arrays."""

import gc
import resource
import threading
import unittest

import numpy as np

import hone

QUIET = {"cache": None, "log": None, "progress": False, "threads": 1}
MANY = 1 << 20  # numbers: large enough that the system gives and takes pages for them

# A cache that a step writes one row of, and a result beside it.
STEP = (
    f"graph @step(%cache: f32[{MANY // 8}, 8]DONATE, %row: f32[1, 8], %at: i64[])"
    f" -> (f32[{MANY // 8}, 8], f32[1, 8]) {{\n"
    "  %zero = constant 0 : i64[]\n"
    "  %new = dynamic_update %cache, %row, %at, %zero\n"
    "  %sum = add %row, %row\n"
    "  return %new, %sum\n}"
)
DOUBLE = f"graph @double(%x: f32[{MANY}]) -> f32[{MANY}] {{ %y = add %x, %x return %y }}"
OPEN = "graph @open(%x: f32[N, 2]) -> f32[N, 2] where N in 1..8 { %y = add %x, %x return %y }"


def compiled(text, **options):
    return hone.compile(text.encode(), **QUIET, **options)


def step(**options):
    return compiled(STEP.replace("DONATE", ""), **options)


def donating():
    return compiled(STEP.replace("DONATE", " donate 0"))


def place(array):
    return array.ctypes.data


def page_faults(work):
    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20


class Results(unittest.TestCase):
    def setUp(self):
        self.model = compiled(DOUBLE)
        self.x = np.arange(MANY, dtype=np.float32)

    def test_lie_where_earlier_ones_did_that_nobody_holds(self):
        first = self.model(self.x)
        where = place(first)
        del first
        again = self.model(self.x)
        self.assertEqual(place(again), where)
        np.testing.assert_array_equal(again, 2 * self.x)

    def test_leave_those_alone_that_somebody_holds(self):
        kept = [self.model(self.x * i) for i in range(4)]
        self.assertEqual(len({place(one) for one in kept}), 4)
        view = kept[0][5:7]
        lent = memoryview(kept[1])
        where = place(kept[0]), place(kept[1])
        del kept
        gc.collect()
        new = [self.model(self.x) for _ in range(4)]
        for one in new:
            self.assertNotIn(place(one), where)
        np.testing.assert_array_equal(view, [0, 0])
        np.testing.assert_array_equal(np.asarray(lent)[:3], [0, 2, 4])

    def test_outlive_the_model(self):
        y = self.model(self.x)
        self.model = None
        gc.collect()
        np.testing.assert_array_equal(y, 2 * self.x)

    def test_cost_no_pages(self):
        # An array that is made anew costs a fault for each page of 4 KB: 1,024 of them, or two of
        # 2 MB.
        session = hone.InferenceSession(DOUBLE.encode(), **QUIET)
        out = np.empty_like(self.x)
        for work in (
            lambda: self.model(self.x),
            lambda: self.model.run({"x": self.x}),
            lambda: self.model(self.x, out=out),
            lambda: session.run(None, {"x": self.x}),
            lambda: session.run(None, {"x": self.x}, out=[out]),
            self.model.bind([self.x]),
        ):
            self.assertLess(page_faults(work), 1)

    def test_may_be_given_in_part(self):
        model = step()
        row, cache = np.ones((1, 8), np.float32), np.zeros((MANY // 8, 8), np.float32)
        new = np.empty_like(cache)
        for out in ((new, None), {"new": new, "sum": None}):
            results = model(cache, row, np.array(3), out=out)
            self.assertIs(results[0], new)
            np.testing.assert_array_equal(results[1], row + row)
            np.testing.assert_array_equal(new[3], row[0])
        x = np.ones((3, 2), np.float32)
        np.testing.assert_array_equal(compiled(OPEN)(x, out=[None]), 2 * x)
        session = hone.InferenceSession(DOUBLE.encode(), **QUIET)
        out = np.empty_like(self.x)
        self.assertIs(session.run(["y"], {"x": self.x}, out={"y": out})[0], out)


class Donation(unittest.TestCase):
    def setUp(self):
        self.cache = np.zeros((MANY // 8, 8), np.float32)
        self.row = np.ones((1, 8), np.float32)

    def check_in_place(self, model, donate):
        where = place(self.cache)
        for at in range(3):
            new, total = model(self.cache, self.row * (at + 1), np.array(at), donate=donate)
            self.assertIs(new, self.cache)
            self.assertEqual(place(new), where)
            np.testing.assert_array_equal(total, self.row * 2 * (at + 1))
        np.testing.assert_array_equal(self.cache[:4, 0], [1, 2, 3, 0])

    def test_returns_the_input_itself(self):
        model = donating()
        self.assertEqual(model.donors, {"new": "cache"})
        for donate in ("cache", ["cache"], True):
            self.cache[:] = 0
            self.check_in_place(model, donate)

    def test_copies_nothing(self):
        # A step writes 32 bytes, and a cache that lies in pages of a mapping of its own is never
        # read: pages that are not touched are not made.
        import mmap

        room = mmap.mmap(-1, 64 << 20)
        cache = np.frombuffer(room, np.float32).reshape(-1, 8)
        model = compiled(
            STEP.replace("DONATE", " donate 0").replace(str(MANY // 8), str(len(cache)))
        )
        model(cache, self.row, np.array(0), donate=True)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for at in range(10):
            model(cache, self.row, np.array(at), donate=True)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, 10)
        np.testing.assert_array_equal(cache[:11, 0], [1] * 10 + [0])

    def test_leaves_inputs_alone_without_it(self):
        for donate in (None, False, ()):
            new, _ = donating()(self.cache, self.row, np.array(5), donate=donate)
            self.assertFalse(self.cache.any())
            np.testing.assert_array_equal(new[5], self.row[0])

    def test_is_asked_for_when_compiling(self):
        self.assertEqual(step().donors, {})
        model = step(donate={"cache": "new"})
        self.check_in_place(model, True)
        model.save("step.honec")
        again = hone.load("step.honec", threads=1)
        self.assertEqual(again.donors, {"new": "cache"})
        self.cache[:] = 0
        self.check_in_place(again, "cache")
        model.save("step.onnx")
        self.assertEqual(hone.load("step.onnx", **QUIET).donors, {"new": "cache"})
        for donate, words in [
            ({"none": "new"}, "no input 'none'"),
            ({"cache": "none"}, "no output 'none'"),
            ({"row": "new"}, "output 'new' is f32.*input 'row'.* is f32"),
            ({"cache": "new", "row": "new"}, "output 'new'"),
        ]:
            with self.assertRaisesRegex(hone.BadInput, words):
                step(donate=donate)

    def test_refuses_what_cannot_be_donated(self):
        model, at = donating(), np.array(0)
        frozen = self.cache.copy()
        frozen.flags.writeable = False
        for cache, donate, kind, words in [
            (self.cache, "none", hone.BadInput, "no input 'none'"),
            (self.cache, "row", hone.UsageError, "no output may lie in input 'row'"),
            (frozen, True, hone.BadInput, "input 'cache': the array is read-only"),
            (np.asfortranarray(self.cache), True, hone.BadInput, "'cache': .* not contiguous"),
        ]:
            with self.assertRaisesRegex(kind, words):
                model(cache, self.row, at, donate=donate)
        with self.assertRaisesRegex(hone.UsageError, "changes no input in place") as caught:
            step()(self.cache, self.row, at, donate=True)
        self.assertIn("donate={", caught.exception.hint)
        with self.assertRaisesRegex(hone.UsageError, "sizes are numbers"):
            compiled(OPEN)(np.ones((3, 2), np.float32), donate=True)


class Binding(unittest.TestCase):
    def test_reads_and_writes_the_same_arrays(self):
        model = compiled(DOUBLE)
        x = np.ones(MANY, np.float32)
        for bound in (model.bind({"x": x}), model.bind([x], out=[np.empty_like(x)])):
            self.assertIs(bound.inputs["x"], x)
            for i in range(3):
                x[:] = i
                y = bound()
                self.assertIs(y, bound.outputs["y"])
                np.testing.assert_array_equal(y, 2 * x)

    def test_carries_a_state_on(self):
        model = donating()
        cache, row, at = np.zeros((MANY // 8, 8), np.float32), np.ones((1, 8), np.float32), np.array(0)
        bound = model.bind({"cache": cache, "row": row, "at": at}, donate=True)
        for i in range(4):
            at[...] = i
            new, total = bound()
            self.assertIs(new, cache)
        np.testing.assert_array_equal(cache[:5, 0], [1, 1, 1, 1, 0])

    def test_holds_its_arrays_and_its_model(self):
        bound = compiled(DOUBLE).bind([np.ones(MANY, np.float32)])
        gc.collect()
        np.testing.assert_array_equal(bound()[:2], [2, 2])

    def test_refuses_arrays_that_would_be_copied(self):
        model = compiled(DOUBLE)
        with self.assertRaisesRegex(hone.BadInput, "input 'x': .* not contiguous"):
            model.bind([np.ones(2 * MANY, np.float32)[::2]])
        with self.assertRaisesRegex(hone.UsageError, "bind is for a model of one graph"):
            compiled(OPEN).bind([np.ones((3, 2), np.float32)])
        with self.assertRaisesRegex(hone.BadInput, "float64"):
            model.bind([np.ones(MANY)])

    def test_is_run_by_one_thread_at_a_time(self):
        product = "graph @p(%x: f32[1024, 1024]) -> f32[1024, 1024]"
        product += " { %y = dot %x, %x {lhs_contract = [1], rhs_contract = [0]} return %y }"
        bound = compiled(product).bind([np.zeros((1024, 1024), np.float32)])
        refused, done = [], threading.Event()

        def work():
            for _ in range(20):
                try:
                    bound()
                except hone.UsageError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        self.assertTrue(refused)
        self.assertIn("another thread", refused[0])
        bound()


if __name__ == "__main__":
    unittest.main()
