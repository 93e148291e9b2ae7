"""Models from Python: loading, running, and what is refused."""

import array
import gc
import os
import shutil
import subprocess
import sys
import threading
import unittest

import numpy as np

import hone

MLP = "zoo:mlp,size=tiny"


def write(name, text):
    with open(name, "w", encoding="utf8") as file:
        file.write(text)
    return name


DOUBLE = write(
    "double.hone",
    "graph @double(%x: f32[N, 2]) -> f32[N, 2] where N in 1..8 { %y = add %x, %x return %y }",
)
TWO = write(
    "two.hone",
    "graph @two(%x: f32[2, 3], %k: i64[3]) -> (f32[2, 3], i64[3]) {\n"
    "  %y = neg %x\n  %j = add %k, %k\n  return %y, %j\n}",
)


def compiled(source, **options):
    return hone.compile(source, cache=None, log=None, progress=False, **options)


class Running(unittest.TestCase):
    def setUp(self):
        self.two = compiled(TWO)
        self.x = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.k = np.arange(3)

    def check(self, results):
        np.testing.assert_array_equal(results[0], -self.x)
        np.testing.assert_array_equal(results[1], 2 * self.k)

    def test_takes_arrays_in_order_and_by_name(self):
        self.check(self.two(self.x, self.k))
        self.check(self.two(k=self.k, x=self.x))
        self.check(self.two(self.x, k=self.k))
        results = self.two.run({"k": self.k, "x": self.x})
        self.check([results["y"], results["j"]])
        self.assertEqual(list(results), ["y", "j"])

    def test_begins_on_quick_code_and_goes_on_with_the_real_one(self):
        real, quick = compiled(MLP, quick_start=False), compiled(MLP, quick_start=True)
        x = [np.full(port.shape, 0.5, port.dtype) for port in real.inputs]
        wanted = real(*x)
        np.testing.assert_array_equal(quick(*x), wanted)
        bound = quick.bind(x)
        np.testing.assert_array_equal(bound(), wanted)
        quick.finish()
        quick.finish()
        np.testing.assert_array_equal(quick(*x), wanted)
        np.testing.assert_array_equal(bound(), wanted)
        quick.save("quick.honec")
        np.testing.assert_array_equal(hone.load("quick.honec")(*x), wanted)
        for _ in range(3):
            compiled(MLP, quick_start=True)(*x)  # its thread ends with it

    def test_tells_its_inputs_and_outputs(self):
        self.assertEqual(self.two.inputs[0], hone.Port("x", "f32", "float32", (2, 3)))
        self.assertEqual(self.two.outputs[1], ("j", "i64", "int64", (3,)))
        self.assertEqual(
            repr(self.two), "<hone.Model two(x: f32[2, 3], k: i64[3]) -> (y: f32[2, 3], j: i64[3])>"
        )

    def test_reads_arrays_wherever_they_lie(self):
        x = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::2]
        frozen = self.k.copy()
        frozen.flags.writeable = False
        results = self.two(x, frozen)
        np.testing.assert_array_equal(results[0], -x)
        backwards = np.ascontiguousarray(x[::-1])[::-1]
        np.testing.assert_array_equal(self.two(backwards, frozen)[0], -x)
        bytes_ = np.zeros(25, np.uint8)
        unaligned = bytes_[1:].view(np.float32).reshape(2, 3)
        unaligned[:] = self.x
        self.check(self.two(unaligned, self.k))
        self.check(self.two(np.asfortranarray(self.x), array.array("q", [0, 1, 2])))

    def test_writes_to_arrays_that_are_given(self):
        y, j = np.empty((2, 3), np.float32), np.empty(3, np.int64)
        results = self.two(self.x, self.k, out=(y, j))
        self.assertIs(results[0], y)
        self.check((y, j))
        y[:] = 0
        self.check(list(self.two.run([self.x, self.k], out={"j": j, "y": y}).values()))

    def test_speaks_dlpack(self):
        class Tensor:  # as frameworks have them: DLPack and no buffer
            def __init__(self, held):
                self.held = held

            def __dlpack__(self, stream=None):
                return self.held.__dlpack__()

            def __dlpack_device__(self):
                return self.held.__dlpack_device__()

        before = sys.getrefcount(self.x)
        y = np.empty((2, 3), np.float32)
        self.check(self.two(Tensor(self.x), Tensor(self.k)))
        out = (Tensor(y), Tensor(np.empty(3, np.int64)))
        self.assertIs(self.two(self.x, self.k, out=out)[0], out[0])
        np.testing.assert_array_equal(y, -self.x)
        np.testing.assert_array_equal(np.from_dlpack(self.two(self.x, self.k)[0]), -self.x)
        view = Tensor(np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2])
        np.testing.assert_array_equal(self.two(view, self.k)[0], -view.held)
        gc.collect()
        self.assertEqual(sys.getrefcount(self.x), before)

        class Elsewhere(Tensor):
            def __dlpack_device__(self):
                return (2, 0)

        with self.assertRaisesRegex(hone.Unsupported, "input 'x' is on device 2:0") as caught:
            self.two(Elsewhere(self.x), self.k)
        self.assertIn("tensor.cpu()", caught.exception.hint)

    def test_says_what_is_wrong_with_an_array(self):
        x, k = self.x, self.k
        for arrays, words in [
            ((x.astype(np.float64), k), r"takes float32 \(2, 3\), the array is float64 \(2, 3\)"),
            ((x, k.astype(np.uint64)), r"'k' takes int64 \(3\), the array is uint64 \(3\)"),
            ((x.T, k), r"the array is float32 \(3, 2\)"),
            ((x, k[:, None]), r"the array is int64 \(3, 1\)"),
            ((x.astype(np.complex64), k), "the array is Zf"),
            ((x.astype(">f4"), k), "other byte order"),
            ((x, [0, 1, 2]), "input 'k' .* of type 'list'"),
            ((x, np.array([1, 2, 3], object)), "the array is O"),
            ((x,), "the model has 2 inputs, 1 are given"),
        ]:
            with self.assertRaisesRegex(hone.BadInput, words):
                self.two(*arrays)
        with self.assertRaisesRegex(hone.BadInput, "input 'k' is missing"):
            self.two.run({"x": x})
        with self.assertRaisesRegex(hone.BadInput, "there is no input 'z'") as caught:
            self.two.run({"x": x, "k": k, "z": k})
        self.assertEqual(caught.exception.hint, "the model has x, k")
        with self.assertRaisesRegex(hone.UsageError, "'x' is given twice"):
            self.two(x, x=x)
        with self.assertRaises(ValueError):
            self.two("text", k)

    def test_says_what_is_wrong_with_an_output(self):
        y, j = np.empty((2, 3), np.float32), np.empty(3, np.int64)
        frozen = y.copy()
        frozen.flags.writeable = False
        for out, words in [
            ((frozen, j), "output 'y': the array is read-only"),
            ((np.empty((2, 6), np.float32)[:, ::2], j), "output 'y': the array is not contiguous"),
            ((y.T.copy(), j), r"output 'y' takes float32 \(2, 3\)"),
            ((y.astype(np.float64), j), "the array is float64"),
            ((y,), "the model has 2 outputs, 1 are given"),
            ((self.x, j), "overlap"),
        ]:
            with self.assertRaisesRegex(hone.Error, words):
                self.two(self.x, self.k, out=out)

    def test_runs_in_many_threads_at_once(self):
        model = compiled("zoo:mlp,size=tiny,symbolic-batch")
        for one in (compiled(MLP), model):
            inputs = [np.random.default_rng(i).random((2, 16), np.float32) for i in range(8)]
            expected = [one(x) for x in inputs]
            wrong = []

            def work(i):
                for _ in range(50):
                    if not np.array_equal(one(inputs[i]), expected[i]):
                        wrong.append(i)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_leaves_other_threads_running(self):
        product = write(
            "product.hone",
            "graph @product(%x: f32[2048, 2048]) -> f32[2048, 2048] {\n"
            "  %y = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}\n  return %y\n}",
        )
        model = compiled(product, threads=1)
        x = np.zeros((2048, 2048), np.float32)
        done = threading.Event()

        def work():
            for _ in range(5):
                model(x)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        ticks = 0
        while not done.wait(1e-3):
            ticks += 1
        thread.join()
        self.assertGreater(ticks, 50)  # who waited for each run would have a few


class Sizes(unittest.TestCase):
    def test_stay_open(self):
        model = compiled(DOUBLE)
        self.assertEqual(model.inputs[0].shape, ("N", 2))
        for n in (1, 3, 8, 3):
            x = np.random.default_rng(n).random((n, 2), np.float32)
            np.testing.assert_array_equal(model(x), 2 * x)
        out = np.empty((3, 2), np.float32)
        self.assertIs(model(x, out=out), out)
        np.testing.assert_array_equal(out, 2 * x)
        with self.assertRaisesRegex(hone.BadInput, "9"):
            model(np.zeros((9, 2), np.float32))
        with self.assertRaisesRegex(hone.Unsupported, "are open"):
            model.plan
        model.save("double.honec")
        np.testing.assert_array_equal(hone.load("double.honec")(x), 2 * x)

    def test_are_bound(self):
        for model in (compiled(DOUBLE, sizes={"N": 4}), compiled(DOUBLE, shapes={"x": (4, 2)})):
            self.assertEqual(model.inputs[0].shape, (4, 2))
        with self.assertRaisesRegex(hone.Error, "M"):
            compiled(DOUBLE, sizes={"M": 4})
        with self.assertRaisesRegex(hone.Error, "9"):
            compiled(DOUBLE, sizes={"N": 9})


class Devices(unittest.TestCase):
    def test_divide_the_batch(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        k = np.arange(3)
        for devices in (2, "cpu,cpu", ["cpu", "cpu", "cpu"]):
            results = compiled(TWO, devices=devices)(x, k)
            np.testing.assert_array_equal(results[0], -x)
            np.testing.assert_array_equal(results[1], 2 * k)
        along = compiled(TWO, devices=2, batch=["x:1", "k"])(x, k)
        np.testing.assert_array_equal(along[0], -x)

    def test_leave_sizes_open(self):
        model = hone.load(DOUBLE, devices=3, cache=None, log=None, progress=False)
        for rows in (1, 3, 8):
            x = np.ones((rows, 2), np.float32)
            out = np.empty_like(x)
            model(x, out=out)
            np.testing.assert_array_equal(out, 2 * x)

    def test_that_are_none_are_refused(self):
        with self.assertRaisesRegex(hone.UsageError, "no device 'gpu'"):
            compiled(TWO, devices="gpu")
        with self.assertRaisesRegex(hone.UsageError, "batch needs devices"):
            compiled(TWO, batch="x")
        with self.assertRaisesRegex(hone.UsageError, "a plan is of one device"):
            compiled(TWO, devices=2, plan=compiled(TWO).plan)
        with self.assertRaisesRegex(hone.Error, "sizes that are numbers"):
            hone.load(DOUBLE, devices=3, cache=None, log=None, progress=False).save("open.honec")

    def test_are_in_the_file(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        k = np.arange(3)
        compiled(TWO, devices=2).save("two.honec")
        results = hone.load("two.honec")(x, k)
        np.testing.assert_array_equal(results[0], -x)
        np.testing.assert_array_equal(results[1], 2 * k)

    def test_add_up_sums(self):
        text = b"graph @s(%x: f32[5, 2]) { %y = reduce %x {kind = sum, axes = [0]} return %y }"
        x = np.arange(10, dtype=np.float32).reshape(5, 2)
        for devices in (2, 3, 5):
            np.testing.assert_array_equal(compiled(text, devices=devices)(x), x.sum(0))


class Types(unittest.TestCase):
    def test_that_numpy_lacks_are_bits(self):
        source = "graph @b(%x: bf16[3], %p: bool[2]) -> (bf16[3], bool[2])"
        model = compiled((source + " { %y = neg %x %q = not %p return %y, %q }").encode())
        self.assertEqual(model.inputs[0], ("x", "bf16", "uint16", (3,)))
        bits = np.array([0x3F80, 0x4000, 0xC040], np.uint16)
        y, q = model(bits, np.array([True, False]))
        np.testing.assert_array_equal(y, bits ^ 0x8000)
        np.testing.assert_array_equal(q, [False, True])
        with self.assertRaisesRegex(hone.BadInput, r"takes uint16 \(3\), bits of bf16"):
            model(np.zeros(3, np.float32), np.array([True, False]))

    def test_scalars_and_nothing(self):
        model = compiled(b"graph @s(%x: f32[], %e: f32[0, 4]) -> (f32[], f32[0, 4])"
                         b" { %y = neg %x %f = neg %e return %y, %f }")
        y, f = model(np.float32(2), np.zeros((0, 4), np.float32))
        self.assertEqual((y.shape, float(y), f.shape), ((), -2.0, (0, 4)))


class Files(unittest.TestCase):
    def test_compiled_models_are_saved_and_loaded(self):
        x = np.random.default_rng(0).random((2, 16), np.float32)
        model = compiled(MLP, output="mlp.honec", threads=1)
        self.assertIn("threads", model.plan)
        with open("mlp.honec", "rb") as file:
            data = file.read()
        shutil.copy("mlp.honec", "mlp.bin")
        for again in (
            hone.load("mlp.honec", verify=True),
            hone.load("mlp.bin", threads=1),
            hone.load(data, threads=1),
        ):
            self.assertEqual(again.inputs, model.inputs)
            np.testing.assert_array_equal(again(x), model(x))
        with self.assertRaisesRegex(hone.UsageError, "sizes: for models that are not compiled"):
            hone.load("mlp.honec", sizes={})
        with self.assertRaisesRegex(hone.UsageError, "no plan"):
            hone.load("mlp.honec").plan

    def test_have_names_that_say_what_they_are(self):
        x = np.random.default_rng(0).random((3, 2), np.float32)
        for options in ({}, {"sizes": {"N": 3}}):
            model = compiled(DOUBLE, **options)
            for name in ("saved.onnx", "saved.hone"):
                model.save(name)
                with open(name, "rb") as file:
                    data = file.read()
                for again in (compiled(name), compiled(data)):
                    self.assertEqual(again.inputs, model.inputs)
                    np.testing.assert_array_equal(again(x), 2 * x)
            for name in ("saved", "saved.bin", "honec", "saved.npz"):
                with self.assertRaisesRegex(hone.UsageError, name):
                    model.save(name)
                self.assertFalse(os.path.exists(name))
        compiled(DOUBLE, output="also.onnx")
        np.testing.assert_array_equal(compiled("also.onnx")(x), 2 * x)
        model.save("saved.honec")
        with self.assertRaisesRegex(hone.UsageError, "compiled here"):
            hone.load("saved.honec").save("saved.onnx")
        with self.assertRaisesRegex(hone.UsageError, "a compiled model"):
            hone.graph.load(DOUBLE).save("graph.honec")

    def test_damaged_and_absent_ones_are_refused(self):
        compiled(MLP, output="damaged.honec")
        with open("damaged.honec", "r+b") as file:
            file.seek(100)
            file.write(b"xxxx")
        for name, kind in [("damaged.honec", hone.BadInput), ("none.honec", hone.BadInput),
                           ("none.onnx", hone.BadInput), ("zoo:none", hone.Error)]:
            with self.assertRaises(kind) as caught:
                hone.load(name)
            self.assertEqual(caught.exception.code, type(caught.exception).code)
            self.assertTrue(caught.exception.what)
        with self.assertRaises(hone.Error):
            hone.load(b"graph @x(")

    def test_what_a_file_lacks_is_named(self):
        text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.custom_call @strange(%x) : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32> }"""
        with self.assertRaisesRegex(hone.Unsupported, "'strange'"):
            compiled(text.encode())

    def test_a_plan_is_taken(self):
        model = compiled(MLP, threads=1)
        self.assertEqual(compiled(MLP, plan=model.plan).plan, model.plan)
        with self.assertRaisesRegex(hone.BadInput, "<plan>:1"):
            compiled(MLP, plan="plan nonsense")
        with self.assertRaisesRegex(hone.UsageError, "threads: 100000"):
            compiled(MLP, threads=100000)
        with self.assertRaisesRegex(hone.UsageError, "there is no 'mmx'"):
            compiled(MLP, isa="mmx")
        for level in ("x86-64-v2", "avx2"):  # as help(hone.compile) says
            compiled(MLP, isa=level, threads=1)


class OpenFiles(unittest.TestCase):
    """Compiled models whose sizes are open, or that have segments."""

    def test_for_all_sizes(self):
        model = compiled(MLP + ",symbolic-batch", output="open.honec")
        loaded = hone.load("open.honec")
        self.assertEqual(loaded.inputs[0].shape, ("N", 16))
        for rows in (1, 5):
            x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
            np.testing.assert_allclose(loaded(x), model(x), rtol=1e-5, atol=1e-5)
            out = np.empty((rows, 10), np.float32)
            self.assertIs(loaded(x, out=out), out)
        with self.assertRaisesRegex(hone.BadInput, "takes float32 .N, 16."):
            loaded(np.zeros((1, 17), np.float32))

    def test_of_segments(self):
        text = b"""model @steps(%n: i64[], %x: f32[2]) -> (%y: f32[2]) {
          %y = loop trip %n with %s = %x {
            %t = run %s graph @step(%s: f32[2]) { %t = add %s, %s return %t }
            yield %t
          }
        }"""
        compiled(text, output="steps.honec")
        loaded = hone.load("steps.honec")
        x = np.array([1, 2], np.float32)
        for trips in (0, 3):
            np.testing.assert_array_equal(loaded(np.array(trips), x), x * 2**trips)
        session = hone.InferenceSession("steps.honec")
        (y,) = session.run(None, {"n": np.array(1), "x": x})
        np.testing.assert_array_equal(y, 2 * x)


class Sessions(unittest.TestCase):
    def test_run_as_those_of_onnx_runtime(self):
        options = hone.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = hone.GraphOptimizationLevel.ORT_ENABLE_ALL
        providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
        session = hone.InferenceSession(TWO, options, providers=providers, cache=None)
        self.assertEqual([i.name for i in session.get_inputs()], ["x", "k"])
        self.assertEqual(session.get_inputs()[0].type, "tensor(float)")
        self.assertEqual(session.get_outputs()[1].shape, [3])
        feed = {"x": np.ones((2, 3), np.float32), "k": np.arange(3)}
        y, j = session.run(None, feed)
        np.testing.assert_array_equal(y, -feed["x"])
        (only,) = session.run(["j"], feed)
        np.testing.assert_array_equal(only, j)
        with self.assertRaisesRegex(hone.BadInput, "there is no output 'z'"):
            session.run(["z"], feed)


class Importing(unittest.TestCase):
    def test_loads_no_compiler(self):
        compiled(MLP, output="light.honec")
        code = (
            "import sys, hone\n"
            "assert 'numpy' not in sys.modules and 'hone._compiler' not in sys.modules\n"
            "import numpy as np\n"
            "hone.load('light.honec')(np.zeros((2, 16), np.float32))\n"
            "assert 'hone._compiler' not in sys.modules\n"
            "maps = open('/proc/self/maps').read()\n"
            "assert 'LLVM' not in maps and 'MLIR' not in maps and 'protobuf' not in maps, maps\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_stubs_say_what_the_modules_have(self):
        import ast

        import hone._compiler
        import hone._runtime

        for module in (hone._runtime, hone._compiler):
            stub = module.__name__.split(".")[1] + ".pyi"
            with open(os.path.join(os.path.dirname(hone.__file__), stub), encoding="utf8") as file:
                tree = ast.parse(file.read())
            said = set()
            for node in tree.body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    said.add(node.name)
                elif isinstance(node, ast.AnnAssign):
                    said.add(node.target.id)
                elif isinstance(node, ast.ImportFrom) and node.module == "_runtime":
                    said.update(alias.name for alias in node.names)
            has = {name for name in vars(module) if not name.startswith("__")}
            has.update({"__version__"} & set(vars(module)))
            self.assertEqual(said, has, module.__name__)


if __name__ == "__main__":
    unittest.main()
