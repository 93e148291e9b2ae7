"""Numbers are the same on both sides of Python: each element is compared, by its bits, of every
element type and shape, however an array lies, by every way in and out. tests/python/numpy2.sh runs
this with the newest numpy, where ONNX Runtime is the judge of whole models, too."""

import array
import ctypes
import importlib.util
import itertools
import sys
import unittest

import numpy as np

import hone
import hone.graph as hg

QUIET = {"cache": None, "log": None, "progress": False}
RNG = np.random.default_rng(50)

HELD = {  # what arrays hold for each element type
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16", "bool": "bool",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "f8e4m3fn": "uint8", "f8e4m3fnuz": "uint8", "f8e5m2": "uint8", "f8e5m2fnuz": "uint8",
}  # fmt: skip
SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (1, 1), (2, 3), (5, 1, 4), (2, 3, 4, 5), (2,) * 6]


def numbers(name, shape):
    """Any finite numbers of an element type, as arrays hold them. (A NaN stays one, but need not keep
    its bits.)"""
    held = np.dtype(HELD[name])
    count = int(np.prod(shape, dtype=np.int64))
    if name == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if held.kind == "f":
        return (RNG.standard_normal(shape) * 10.0 ** RNG.integers(-4, 4, shape)).astype(held)
    bits = np.frombuffer(RNG.bytes(count * held.itemsize), held).reshape(shape).copy()
    if name == "bf16":
        return bits & 0xBFFF
    return (bits & 0xBB) | 1 if name.startswith("f8") else bits


class Lent:
    """As frameworks have arrays: DLPack, and no buffer."""

    def __init__(self, held):
        self.held = held

    def __dlpack__(self, stream=None):
        return self.held.__dlpack__()

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()


def unaligned(x):
    room = np.zeros(x.nbytes + 1, np.uint8)
    moved = room[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


def lying(x):
    """Arrays of the same elements that lie in memory in other ways, by name."""
    columns = np.array(x, order="F")
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "as it is", x
    yield "column by column", columns
    yield "read-only", frozen
    yield "unaligned", unaligned(x)
    yield "a view of memory", memoryview(columns)
    backwards = x
    if x.ndim > 0:
        everywhere = (slice(None, None, -1),) * x.ndim
        backwards = np.array(x[everywhere], order="C")[everywhere]
        yield "backwards", backwards
        yield "every second", np.repeat(x, 2, axis=-1)[..., ::2]
        order = (*range(1, x.ndim), 0)
        yield "turned", np.array(x.transpose(order), order="C").transpose(np.argsort(order))
    if x.dtype != np.bool_:  # which DLPack has since its version 1.0
        yield "by DLPack", Lent(x)
        yield "by DLPack, backwards", Lent(backwards)


class Values(unittest.TestCase):
    def same(self, found, expected, where=""):
        """The same elements, in an array of its own that lies row by row."""
        self.assertIs(type(found), np.ndarray, where)
        self.assertEqual((found.shape, found.dtype), (expected.shape, expected.dtype), where)
        self.assertEqual(found.tobytes(), expected.tobytes(), where)
        for index in itertools.islice(np.ndindex(*expected.shape), 100):
            one = np.asarray(found[index]).tobytes()
            self.assertEqual(one, np.asarray(expected[index]).tobytes(), f"{where} at {index}")
        self.assertTrue(found.flags.c_contiguous and found.flags.aligned, where)
        if found.size > 1:
            self.assertEqual(found.strides, np.empty(found.shape, found.dtype).strides, where)
        self.assertTrue(found.flags.writeable, where)

    def ways(self, source, **options):
        """Functions from inputs to outputs, by name: all ways to run a model."""
        model = hone.compile(source, **QUIET, **options)
        model.save("values.honec")
        with open("values.honec", "rb") as file:
            loaded = hone.load(file.read())
        outputs = len(model.outputs)
        session = hone.InferenceSession("values.honec")
        by_name = lambda arrays: dict(zip([p.name for p in model.inputs], arrays))  # noqa: E731

        def written(arrays):
            likes = [np.array(one) for one in loaded.run(list(arrays)).values()]
            out = [np.zeros(one.shape, one.dtype) for one in likes]
            loaded(*arrays, out=out)
            return out

        as_tuple = lambda r: r if outputs != 1 else (r,)  # noqa: E731
        yield "compiled", lambda arrays: as_tuple(model(*arrays))
        yield "loaded", lambda arrays: as_tuple(loaded(*arrays))
        yield "by name", lambda arrays: list(loaded.run(by_name(arrays)).values())
        yield "written to out", written
        yield "session", lambda arrays: session.run(None, by_name(arrays))

    def each_element_type(self, dims, where=""):
        inputs, outputs, types, lines = [], [], [], []
        for i, name in enumerate(HELD):
            inputs.append(f"%x{i}: {name}[{dims}, 3, 4]")
            outputs.append(f"%y{i}")
            types.append(f"{name}[4, {dims}, 3]")
            lines.append(f"%y{i} = transpose %x{i} {{permutation = [2, 0, 1]}}")
        return (
            f"graph @turn({', '.join(inputs)}) -> ({', '.join(types)}){where}"
            f" {{\n{chr(10).join(lines)}\nreturn {', '.join(outputs)}\n}}"
        ).encode()

    def test_of_every_element_type_however_arrays_lie(self):
        arrays = [numbers(name, (2, 3, 4)) for name in HELD]
        expected = [x.transpose(2, 0, 1) for x in arrays]
        for source in (self.each_element_type("2"), self.each_element_type("N", " where N in 1..5")):
            for way, run in self.ways(source):
                for how in [name for name, _ in lying(arrays[0])]:
                    given = [dict(lying(x)).get(how, x) for x in arrays]
                    for one, found, right in zip(HELD, run(given), expected):
                        self.same(found, right, f"{one}, {how}, {way}")

    def test_of_every_shape(self):
        names = [f"f32[{', '.join(map(str, shape))}]" for shape in SHAPES]
        inputs = ", ".join(f"%x{i}: {name}" for i, name in enumerate(names))
        lines = "\n".join(f"%y{i} = neg %x{i}" for i in range(len(names)))
        results = ", ".join(f"%y{i}" for i in range(len(names)))
        text = f"graph @all({inputs}) -> ({', '.join(names)}) {{\n{lines}\nreturn {results}\n}}"
        arrays = [RNG.random(shape, np.float32) - 0.5 for shape in SHAPES]
        arrays = [np.asarray(x, np.float32) for x in arrays]
        for way, run in self.ways(text.encode()):
            for how in [name for name, _ in lying(arrays[6])]:
                given = [dict(lying(x)).get(how, x) for x in arrays]
                for found, x in zip(run(given), arrays):
                    self.same(found, -x, f"{x.shape}, {how}, {way}")
        for found, x in zip(hg.parse(text).evaluate(arrays), arrays):
            self.same(found, -x, f"{x.shape}, evaluated")

    def test_of_what_is_no_array_of_numpy(self):
        for way, run in self.ways(b"graph @n(%x: f32[3]) -> f32[3] { %y = neg %x return %y }"):
            expected = np.array([-1, -2, -3], np.float32)
            numbers = array.array("f", [1, 2, 3])
            for given in (numbers, (ctypes.c_float * 3)(1, 2, 3), memoryview(numbers)):
                self.same(run([given])[0], expected, way)
            self.same(run([np.broadcast_to(np.float32(2), 3)])[0], np.full(3, -2, np.float32), way)
        for way, run in self.ways(b"graph @n(%x: f32[]) -> f32[] { %y = neg %x return %y }"):
            self.same(run([np.float32(2)])[0], np.array(-2, np.float32), way)

    def test_the_other_byte_order_is_refused(self):
        for name in HELD:
            x = numbers(name, (2,))
            swapped = x.astype(x.dtype.newbyteorder())
            if swapped.dtype == x.dtype:
                continue
            text = f"graph @n(%x: {name}[2]) -> {name}[2] {{ return %x }}".encode()
            with self.assertRaisesRegex(hone.BadInput, "the array is"):
                hone.compile(text, **QUIET)(swapped)
            with self.assertRaisesRegex(hone.BadInput, "element type"):
                hg.Builder().constant(swapped)

    def test_bytes_of_bools_that_are_neither_0_nor_1(self):
        odd = np.array([0, 1, 2, 255, 128], np.uint8).view(bool)
        text = b"graph @b(%p: bool[5], %x: f32[5]) -> (bool[5], f32[5], i32[]) {"
        text += b"%n = not %p %z = sub %x, %x %s = select %p, %x, %z %c = cast %p {dtype = i32}"
        text += b"%t = reduce %c {kind = sum, axes = [0]} return %n, %s, %t }"
        x = np.arange(1, 6, dtype=np.float32)
        truth = np.array([False, True, True, True, True])
        for way, run in self.ways(text):
            n, s, t = run([odd, x])
            self.same(n, ~truth, way)
            self.same(s, np.where(truth, x, 0).astype(np.float32), way)
            self.same(t, np.array(4, np.int32), way)
        b = hg.Builder()
        p = b.parameter("p", "bool", [5])
        graph = b.finish(hg.and_(b.constant(odd), p))
        self.same(graph.evaluate([np.ones(5, bool)])[0], truth)

    def test_types_of_fewer_bits_than_a_byte(self):
        packed = np.array([0x21, 0xF3, 0x05], np.uint8)  # 1, 2, 3, -1, 5
        text = b"graph @p(%x: i4[5]) -> (i4[5], i32[5]) {"
        text += b"%y = reverse %x {axes = [0]} %z = cast %x {dtype = i32} return %y, %z }"
        for way, run in self.ways(text):
            for how, given in lying(packed):
                y, z = run([given])
                self.same(z, np.array([1, 2, 3, -1, 5], np.int32), f"{way}, {how}")
                self.same(y, np.array([0xF5, 0x23, 0x01], np.uint8), f"{way}, {how}")

    def test_constants(self):
        for name in HELD:
            if name.startswith(("bf16", "f8")):  # their bits are numbers of other types
                continue
            x = numbers(name, (2, 3))
            for how, given in lying(x):
                b = hg.Builder()
                graph = b.finish(hg.transpose(b.constant(given), permutation=[1, 0]))
                self.same(graph.evaluate([])[0], x.T, f"{name}, {how}")
                self.same(hone.compile(graph, **QUIET)(), x.T, f"{name}, {how}")

    def test_numbers_beside_values(self):
        cases = [("i64", 2**60 + 1), ("u64", 2**64 - 1), ("i8", -128), ("u8", 255), ("i32", 3.0),
                 ("i16", np.float64(-7)), ("f64", 2**53 + 2), ("f64", 0.1)]  # fmt: skip
        for name, number in cases:
            b = hg.Builder()
            x = b.parameter("x", name, [1])
            graph = b.finish(x + number)
            zero = np.zeros(1, HELD[name])
            self.same(graph.evaluate([zero])[0], np.array([number]).astype(HELD[name]), name)
        for name, number in [("u8", 256), ("u8", -1), ("i8", 128), ("i64", 2**63), ("i32", 0.5),
                             ("u64", 2**64), ("i64", float("nan")), ("i64", 1e300)]:  # fmt: skip
            x = hg.Builder().parameter("x", name, [1])
            with self.assertRaisesRegex(hone.UsageError, f"{name} has no"):
                x + number

    def test_features_of_kernels(self):
        class Looks(hone.Cost):
            seen = 0

            def price(self, kernel, schedules, threads):
                rows = kernel.features(schedules)
                for row, schedule in zip(rows, schedules):
                    (alone,) = kernel.features([schedule])
                    assert row.tobytes() == alone.tobytes(), (row, alone)
                    assert len(set(row.tolist())) > 3, row
                self.seen += len(rows)
                return kernel.analytic(schedules)

        looks = Looks()
        hone.compile("zoo:mlp,size=tiny", cost=looks, **QUIET)
        self.assertGreater(looks.seen, 3)

    def test_arrays_are_the_callers_own(self):
        x = RNG.random((3, 2), np.float32)
        for rows in ("3", "N"):
            where = " where N in 1..5" if rows == "N" else ""
            text = f"graph @i(%x: f32[{rows}, 2]) -> (f32[{rows}, 2], f32[{rows}, 2], f32[2]){where}"
            text += " { %c = constant [3, 4] : f32[2] return %x, %x, %c }"
            for way, run in self.ways(text.encode()):
                before, results = x.copy(), run([x])
                for one in results:
                    one += 1
                for a, b in itertools.combinations([x, *results], 2):
                    self.assertFalse(np.shares_memory(a, b), way)
                self.same(x, before, way)
                self.same(run([x])[2], np.array([3, 4], np.float32), way)
                self.same(results[1], before + 1, way)

    def test_outputs_in_the_memory_of_inputs(self):
        text = b"""model @steps(%n: i64[], %x: f32[2]) -> (%y: f32[2], %z: f32[2]) {
          %y = run %x graph @more(%x: f32[2]) { %y = add %x, %x return %y }
          %z = loop trip %n with %s = %x {
            %t = run %s graph @step(%s: f32[2]) { %t = add %s, %s return %t }
            yield %t
          }
        }"""
        hone.compile(text, **QUIET).save("steps.honec")
        for model in (hone.compile(text, **QUIET), hone.load("steps.honec")):
            for trips in (0, 2):
                x = np.array([1, 2], np.float32)
                z = np.zeros(2, np.float32)
                model(np.array(trips), x, out=(x, z))
                self.same(x, np.array([2, 4], np.float32))
                self.same(z, np.array([1, 2], np.float32) * 2**trips)
            with self.assertRaisesRegex(hone.BadInput, "output 'z' overlaps output 'y'"):
                model(np.array(1), x, out=(z, z))

    def test_arrays_of_dlpack_are_written_where_they_lie_or_not_at_all(self):
        class Versioned(Lent):  # version 1 says what is not to be written to
            def __dlpack__(self, stream=None, max_version=None):
                return self.held.__dlpack__(max_version=max_version)

        x = np.arange(3, dtype=np.float32)
        y = np.zeros(3, np.float32)
        for way, run in self.ways(b"graph @n(%x: f32[3]) -> f32[3] { %y = neg %x return %y }"):
            pass
        model = hone.load("values.honec")
        model(x, out=Lent(y))
        self.same(y, -x)
        if int(np.__version__.split(".")[0]) < 2:
            return
        self.same(model(Versioned(x)), -x)
        frozen = y.copy()
        frozen.flags.writeable = False
        self.same(model(Versioned(frozen)), -frozen)
        with self.assertRaisesRegex(hone.BadInput, "output 'y': the array is read-only"):
            model(x, out=Versioned(frozen))
        model(-x, out=Versioned(y))
        self.same(y, x)

    def test_no_element_is_a_bad_place(self):
        empty = np.empty((0, 8), np.float32)[:, ::2]
        text = b"graph @e(%x: f32[0, 4]) -> f32[0, 4] { %y = neg %x return %y }"
        model = hone.compile(text, **QUIET)
        model.save("empty.honec")
        for one in (model, hone.load("empty.honec")):
            self.assertIs(one(empty, out=empty), empty)


@unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "ml_dtypes is not installed")
class Extensions(unittest.TestCase):
    """Element types that a package adds to numpy: it lends no memory of them."""

    def test_are_taken_by_their_bits(self):
        import ml_dtypes

        for name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"):
            dtype = np.dtype(getattr(ml_dtypes, name))
            short = name.replace("bfloat", "bf").replace("float", "f").replace("_", "")
            bits = np.dtype(f"uint{8 * dtype.itemsize}")
            text = f"graph @c(%x: {short}[4]) -> ({short}[4], f32[4])"
            text += " { %r = reverse %x {axes = [0]} %y = cast %x {dtype = f32} return %r, %y }"
            model = hone.compile(text.encode(), **QUIET)
            x = np.array([1, -2, 0.5, 3], dtype)
            with self.assertRaisesRegex(hone.Unsupported, "cannot be read") as caught:
                model(x)
            self.assertIn("array.view(numpy.uint16)", caught.exception.hint)
            r, y = model(x.view(bits))
            self.assertEqual(r.view(dtype).tolist(), x.tolist()[::-1])
            self.assertEqual(y.tolist(), x.astype(np.float32).tolist())


HAS_RIVAL = importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime")


@unittest.skipUnless(HAS_RIVAL, "onnx and onnxruntime are not installed")
class BesideOnnxRuntime(unittest.TestCase):
    def models(self):
        """ONNX models whose outputs tell each element's place, by name."""
        from onnx import TensorProto as T
        from onnx import helper

        def model(name, inputs, nodes, outputs):
            value = lambda v: helper.make_tensor_value_info(*v)  # noqa: E731
            graph = helper.make_graph(
                [helper.make_node(op, list(i), list(o), **a) for op, i, o, a in nodes],
                name, [value(v) for v in inputs], [value(v) for v in outputs],
            )
            opset = [helper.make_opsetid("", 17)]
            return helper.make_model(graph, opset_imports=opset, ir_version=8)

        f32, f16, i64, boolean = T.FLOAT, T.FLOAT16, T.INT64, T.BOOL
        yield "layers", model(
            "layers", [("x", f32, ["N", 8]), ("w", f32, [8, 6]), ("b", f32, [6])],
            [("MatMul", "xw", "m", {}), ("Add", "mb", "a", {}), ("Relu", "a", "y", {}),
             ("Transpose", "y", "t", {"perm": [1, 0]}), ("Softmax", "a", "s", {"axis": -1})],
            [("y", f32, ["N", 6]), ("t", f32, [6, "N"]), ("s", f32, ["N", 6])],
        ), {"N": 5}  # fmt: skip
        yield "types", model(
            "types", [("h", f16, [2, 3]), ("i", i64, [2, 3]), ("p", boolean, [2, 3])],
            [("Neg", "h", "a", {}), ("Add", "ii", "b", {}), ("Not", "p", "c", {}),
             ("Where", "phh", "d", {}), ("Cast", "i", "e", {"to": T.DOUBLE}),
             ("Cast", "i", "f", {"to": T.INT8}), ("Transpose", "i", "g", {"perm": [1, 0]})],
            [("a", f16, [2, 3]), ("b", i64, [2, 3]), ("c", boolean, [2, 3]), ("d", f16, [2, 3]),
             ("e", T.DOUBLE, [2, 3]), ("f", T.INT8, [2, 3]), ("g", i64, [3, 2])],
        ), {}  # fmt: skip
        yield "images", model(
            "images", [("x", f32, [1, 3, 9, 8]), ("w", f32, [4, 3, 3, 3])],
            [("Conv", "xw", "c", {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
             ("MaxPool", "c", "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
             ("ReduceMean", "p", "m", {"axes": [2, 3], "keepdims": 0})],
            [("p", f32, [1, 4, 2, 4]), ("m", f32, [1, 4])],
        ), {}  # fmt: skip

    def test_whole_models_agree(self):
        import onnx
        import onnxruntime as ort

        print(f"numpy {np.__version__}, onnx {onnx.__version__}, onnxruntime {ort.__version__}")
        for name, proto, sizes in self.models():
            onnx.checker.check_model(proto)
            data = proto.SerializeToString()
            rival = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
            model = hone.compile(data, **QUIET, sizes=sizes)
            model.save(f"{name}.honec")
            model.save(f"{name}.onnx")
            onnx.checker.check_model(f"{name}.onnx")
            written = ort.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
            feed = {}
            for port in model.inputs:
                if port.dtype.startswith("float"):
                    feed[port.name] = (RNG.random(port.shape) - 0.5).astype(port.dtype)
                else:
                    feed[port.name] = RNG.integers(-50, 50, port.shape).astype(port.dtype)
            expected = rival.run(None, feed)
            lying = {key: np.asfortranarray(x) for key, x in feed.items()}
            for way, found in [
                ("compiled", list(model.run(lying).values())),
                ("loaded", list(hone.load(f"{name}.honec").run(lying).values())),
                ("open", list(hone.compile(data, **QUIET).run(lying).values())),
                ("session", hone.InferenceSession(data, **QUIET).run(None, feed)),
                ("written as ONNX", written.run(None, feed)),
            ]:
                self.assertEqual(len(found), len(expected))
                for port, a, b in zip(model.outputs, found, expected):
                    self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), f"{name}, {way}")
                    np.testing.assert_allclose(
                        a, b, rtol=1e-4, atol=1e-5, err_msg=f"{name}: {port.name}, {way}"
                    )


if __name__ == "__main__":
    print(f"numpy {np.__version__}, Python {sys.version.split()[0]}")
    unittest.main()
