"""Models on a GPU take and give arrays by DLPack: on the fake driver, whose memory is the process's.

Its kernels run a function that this test gives for them, since it has no GPU.
"""

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import hone

FAKE = os.path.join(os.environ["BUILD"], "libfake_cuda.so")
if not os.path.exists(FAKE):
    print("there is no fake driver in", os.environ["BUILD"])
    sys.exit(77)
os.environ["HONE_CUDA_LIBRARY"] = FAKE
fake = ctypes.CDLL(FAKE)
fake.fake_cuda_faults.restype = ctypes.c_char_p
fake.fake_cuda_live.restype = fake.fake_cuda_calls.restype = ctypes.c_int64
fake.fake_cuda_register.restype = fake.fake_cuda_counts.restype = ctypes.c_bool
fake.fake_cuda_counts.argtypes = [ctypes.c_void_p, ctypes.c_int64]
fake.fake_cuda_register.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]

ROWS, COLUMNS = 3, 5
PART = 1  # rows of each of two devices: no price decides about as many rows as devices
F32 = f"f32[{ROWS}, {COLUMNS}]"
DOUBLE = f"graph @double(%x: {F32}) -> {F32} {{ %y = add %x, %x return %y }}"
CARRIED = f"""graph @carried(%x: {F32}, %s: {F32} donate 1) -> ({F32}, {F32}) {{
  %t = add %s, %x
  %y = mul %t, %x
  return %y, %t
}}
"""
KERNEL = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
)


def floats_at(address, count=ROWS * COLUMNS):
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


@KERNEL
def double(buffers, _symbols, _scratch, _begin, _end):
    floats_at(buffers[1])[:] = 2 * floats_at(buffers[0])


@KERNEL
def double_part(buffers, _symbols, _scratch, _begin, _end):
    floats_at(buffers[1], PART * COLUMNS)[:] = 2 * floats_at(buffers[0], PART * COLUMNS)


@KERNEL
def carry(buffers, _symbols, _scratch, begin, _end):
    """All of it at once, whatever part of it is asked for: t = s + x, in the place of s; y = t x."""
    if begin == 0:
        s, x, t, y = (floats_at(buffers[i]) for i in range(4))
        t[:] = s + x
        y[:] = t * x


class Backing(ctypes.Structure):
    """fake::Backing of tests/fake_cuda/fake_cuda.h."""

    _fields_ = [
        ("function", KERNEL),
        ("buffers", ctypes.c_int),
        ("symbols", ctypes.c_int),
        ("cpu_scratch_bytes", ctypes.c_int64),
        ("thread_scratch_bytes", ctypes.c_int64),
        ("works", ctypes.c_int64),
        ("trips", ctypes.c_int64),
        ("maps", ctypes.c_void_p * 3),  # an empty vector
        ("fails", ctypes.c_int),
        ("is_refused", ctypes.c_bool),
        ("launches", ctypes.c_void_p),
    ]


class Counts(ctypes.Structure):
    """fake::Counts."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "calls",
            "launches",
            "links",
            "most_links",
            "texts",
            "copied",
            "copied_to",
            "copied_from",
            "copied_to_peers",
            "reached",
            "of_null_stream",
            "allocations",
            "graphs",
            "early",
            "decisions",
        )
    ]


def counted():
    """What the driver has done so far."""
    counts = Counts()
    assert fake.fake_cuda_counts(ctypes.byref(counts), ctypes.sizeof(counts))
    return counts


def links():
    """Runs of the driver's compiler so far."""
    return counted().links


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype = ctypes.py_object
capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def good(code):
    assert code == 0, code


class OnGpu:
    """An array in memory of the fake GPU, as a framework has it."""

    def __init__(self, values, offset=0):
        good(fake.cuCtxSetCurrent(context))
        self.memory = ctypes.c_uint64()
        good(fake.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(values.nbytes + offset)))
        self.address = self.memory.value + offset
        ctypes.memmove(self.address, values.ctypes.data, values.nbytes)
        self.managed = Managed()
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.device_id = self.memory.value, 2, 0
        tensor.ndim, tensor.lanes, tensor.byte_offset = values.ndim, 1, offset
        tensor.code = 2 if values.dtype.kind == "f" else 0
        tensor.bits = 8 * values.itemsize
        tensor.shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        self.given_back = 0
        self.streams = []

        def deleter(_managed):
            self.given_back += 1

        self.managed.deleter = DELETER(deleter)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return capsule_new(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return (2, 0)

    def free(self):
        good(fake.cuCtxSetCurrent(context))
        good(fake.cuMemFree_v2(self.memory))


def taken(array):
    """The elements of a result, as who takes it by DLPack sees them."""
    capsule = array.__dlpack__(stream=1)
    tensor = Managed.from_address(capsule_pointer(capsule, b"dltensor")).tensor
    assert (tensor.device_type, tensor.code, tensor.bits) == (2, 2, 32)
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    count = int(np.prod(shape))
    return floats_at(tensor.data, count).reshape(shape).copy()


def compiled(name, text, kernel, buffers):
    """The model as a file, with a function for its kernel, once for each GPU."""
    with open(f"{name}.hone", "w", encoding="utf8") as file:
        file.write(text)
    # The fake refuses PTX that it does not know, so nothing is loaded before it is written.
    code = os.system(
        f"'{os.environ['HONE']}' compile {name}.hone --target sm_90 --cache none -o {name}.honec"
        " >/dev/null 2>&1"
    )
    assert code == 0
    with open(f"{name}.honec", "rb") as file:
        held = file.read()
    sections = int.from_bytes(held[12:16], "little")
    for i in range(sections):
        entry = held[32 + 32 * i : 64 + 32 * i]
        if int.from_bytes(entry[:4], "little") == 3:
            offset, size = (int.from_bytes(entry[at : at + 8], "little") for at in (8, 16))
            code = held[offset : offset + size]
    backing = Backing(function=kernel, buffers=buffers, cpu_scratch_bytes=64, works=1)
    texts = [text for text in code.split(b"\0") if b".entry" in text]
    assert len(texts) == 2
    for ptx in texts:
        function = re.search(rb"\.entry (\w+)\(", ptx).group(1)
        assert fake.fake_cuda_register(ptx, function, ctypes.byref(backing), ctypes.sizeof(backing))


good(fake.cuInit(0))
context = ctypes.c_void_p()
good(fake.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))


class OnAGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        compiled("double", DOUBLE, double, 2)
        compiled("carried", CARRIED, carry, 4)
        cls.x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)

    def setUp(self):
        self.model = hone.load("double.honec", device="cuda", cache=None)

    def test_takes_and_gives_arrays_there(self):
        x = OnGpu(self.x)
        y = self.model(x)
        self.assertEqual(y.__dlpack_device__(), (2, 0))
        self.assertEqual((y.shape, y.dtype), ((ROWS, COLUMNS), "float32"))
        np.testing.assert_array_equal(taken(y), 2 * self.x)
        self.assertEqual(x.streams, [1])  # the default one
        self.assertEqual(x.given_back, 1)
        # A result is an input like others.
        np.testing.assert_array_equal(taken(self.model(y)), 4 * self.x)
        self.assertEqual(list(self.model.run([x])), ["y"])
        x.free()

    def test_runs_in_the_stream_of_the_caller(self):
        good(fake.cuCtxSetCurrent(context))
        stream = ctypes.c_void_p()
        good(fake.cuStreamCreate(ctypes.byref(stream), 1))
        x = OnGpu(self.x)
        np.testing.assert_array_equal(taken(self.model(x, stream=stream.value)), 2 * self.x)
        self.assertEqual(x.streams, [stream.value])
        x.free()
        good(fake.cuStreamDestroy_v2(stream))

    def test_takes_arrays_that_are_not_aligned(self):
        x = OnGpu(self.x, offset=4)
        np.testing.assert_array_equal(taken(self.model(x)), 2 * self.x)
        x.free()

    def test_changes_a_state_where_it_lies(self):
        model = hone.load("carried.honec", device="cuda")
        self.assertEqual(model.donors, {"t": "s"})
        x, s = OnGpu(self.x), OnGpu(np.zeros_like(self.x))
        for run in range(1, 4):
            y, t = model(x, s, donate="s")
            self.assertIs(t, s)
            np.testing.assert_array_equal(taken(y), run * self.x * self.x)
            np.testing.assert_array_equal(floats_at(s.address), run * self.x.ravel())
        y, t = model(x, s)
        np.testing.assert_array_equal(taken(t), 4 * self.x)
        np.testing.assert_array_equal(floats_at(s.address), 3 * self.x.ravel())
        with self.assertRaisesRegex(hone.UsageError, "no output may lie in input 'x'"):
            model(x, s, donate="x")
        with self.assertRaisesRegex(hone.BadInput, "overlaps"):
            model(s, s, donate=True)
        x.free()
        s.free()

    def test_takes_arrays_of_the_machine_too(self):
        np.testing.assert_array_equal(self.model(self.x), 2 * self.x)

    def test_runs_on_the_cpu_where_no_device_is_named(self):
        np.testing.assert_array_equal(hone.load("double.honec")(self.x), 2 * self.x)

    def test_compiles_for_the_gpu(self):
        x = OnGpu(self.x)
        for model in (
            hone.load("double.hone", device="cuda"),
            hone.compile("double.hone", devices="cuda:0", cache=None),
        ):
            np.testing.assert_array_equal(taken(model(x)), 2 * self.x)
        x.free()
        for options in ({"isa": "avx2"}, {"batch": ["x"]}, {"threads": 2}):
            with self.assertRaisesRegex(hone.UsageError, "about CPUs"):
                hone.compile("double.hone", devices="cuda", **options)

    def test_divides_a_batch_with_the_cpu(self):
        # Its code is that of the whole, since it does not say how many elements there are.
        compiled("part", DOUBLE.replace(F32, f"f32[{PART}, {COLUMNS}]"), double_part, 2)
        with open("two.hone", "w", encoding="utf8") as file:
            file.write(DOUBLE.replace(F32, f"f32[{2 * PART}, {COLUMNS}]"))
        before = counted().launches
        x = self.x[: 2 * PART]
        for devices in (["cuda:0", "cpu"], "cuda:0,cpu"):
            model = hone.compile("two.hone", devices=devices, cache=None)
            np.testing.assert_array_equal(model(x), 2 * x)
        compiled("double", DOUBLE, double, 2)
        self.assertEqual(counted().launches - before, 2)
        with self.assertRaisesRegex(hone.UsageError, "named twice"):
            hone.compile("double.hone", devices="cuda:0,cuda")
        with self.assertRaisesRegex(hone.Unsupported, "cuda:7"):
            hone.compile("double.hone", devices=["cpu", "cuda:7"])
        with self.assertRaisesRegex(hone.Unsupported, "one GPU, or for CPUs"):
            model.save("divided.honec")

    def test_refuses_what_does_not_fit(self):
        x = OnGpu(self.x.astype(np.float64))
        with self.assertRaisesRegex(hone.BadInput, "input 'x'.*float64"):
            self.model(x)
        self.assertEqual(x.given_back, 1)
        x.free()
        x = OnGpu(self.x)
        with self.assertRaisesRegex(hone.UsageError, "stream"):
            self.model(self.x, stream=1)
        with self.assertRaisesRegex(BufferError, "never as a copy"):
            self.model(x).__dlpack__(copy=True)
        x.free()

    def test_a_gpu_that_is_lost_is_said_and_the_cpu_is_offered(self):
        # In another process: this one goes on.
        script = """if True:
            import ctypes, os, numpy as np, hone
            os.environ["FAKE_CUDA"] = "failing_call=%d,failing_code=700"
            try:
                hone.load("double.honec", device="cuda", cache=None)
            except hone.LimitError as error:
                print(error, "|", error.hint)
        """
        for call in (10, 15):
            told = subprocess.run(
                [sys.executable, "-c", script % call], capture_output=True, text=True, check=True
            ).stdout
            self.assertRegex(told, "(?s)CUDA_ERROR_ILLEGAL_ADDRESS.*lost.*the CPU runs it")
            self.assertNotIn("--", told)  # which are options of the command line

    def test_names_what_is_missing(self):
        with self.assertRaisesRegex(hone.Unsupported, "cuda:7"):
            hone.load("double.honec", device="cuda:7")
        with self.assertRaisesRegex(hone.UsageError, "^device.*cudax"):
            hone.load("double.honec", device="cudax")
        for name in ("gpu", "CUDA", "nvidia", ""):
            with self.assertRaisesRegex(hone.UsageError, f"device: there is no '{name}'"):
                hone.load("double.honec", device=name)
        np.testing.assert_array_equal(hone.load("double.honec", device="cpu")(self.x), 2 * self.x)
        with self.assertRaisesRegex(hone.UsageError, "device and devices"):
            hone.load("double.hone", device="cuda", devices=2)

    def test_keeps_machine_code_from_load_to_load(self):
        x = OnGpu(self.x)
        with tempfile.TemporaryDirectory() as folder:
            before = links()
            for made in (1, 1):  # by the first load
                model = hone.load("double.honec", device="cuda", cache=folder)
                self.assertEqual(links() - before, made)
                np.testing.assert_array_equal(taken(model(x)), 2 * self.x)
            with open("double.honec", "rb") as file:
                hone.load(file.read(), device="cuda", cache=folder)
            self.assertEqual(links() - before, 1)
            hone.load("double.honec", device="cuda", cache=None)
            self.assertEqual(links() - before, 2)
        x.free()

    def test_results_take_the_memory_of_those_that_are_gone(self):
        x = OnGpu(self.x)
        y = self.model(x)
        first = counted().allocations
        for _ in range(5):
            y = self.model(x)
        # One is read while the next is made.
        self.assertLessEqual(counted().allocations - first, 1)
        np.testing.assert_array_equal(taken(y), 2 * self.x)
        kept = [self.model(x) for _ in range(4)]
        for one in kept:
            np.testing.assert_array_equal(taken(one), 2 * self.x)
        # The pool keeps two results at most.
        live = fake.fake_cuda_live()
        del kept, one, y
        self.assertEqual(live - fake.fake_cuda_live(), 3)
        x.free()

    def test_memory_that_another_stream_reads_does_not_come_back(self):
        x = OnGpu(self.x)
        y = self.model(x)
        y = None
        first = counted().allocations
        y = self.model(x)
        self.assertEqual(counted().allocations, first)
        y.__dlpack__(stream=-1)
        y = None
        y = self.model(x)
        self.assertEqual(counted().allocations, first + 1)
        x.free()

    def test_writes_to_arrays_of_the_caller(self):
        x, out = OnGpu(self.x), OnGpu(np.zeros_like(self.x))
        self.model(x, out=out)
        first = counted().allocations
        for _ in range(3):
            self.assertIs(self.model(x, out=out), out)
        self.assertEqual(counted().allocations, first)
        np.testing.assert_array_equal(floats_at(out.address), 2 * self.x.ravel())
        with self.assertRaisesRegex(hone.BadInput, "overlaps"):
            self.model(x, out=x)
        with self.assertRaisesRegex(hone.BadInput, "output 'y'.*cuda:0"):
            self.model(x, out=np.empty_like(self.x))
        x.free()
        out.free()

    def test_gives_all_memory_back(self):
        del self.model
        live = fake.fake_cuda_live()
        x = OnGpu(self.x)
        model = hone.load("double.honec", device="cuda")
        y = model(x)
        capsule = y.__dlpack__()
        del y, model, capsule
        x.free()
        self.assertEqual(fake.fake_cuda_live(), live)

    def tearDown(self):
        self.assertEqual(fake.fake_cuda_faults(), b"")


if __name__ == "__main__":
    unittest.main()
