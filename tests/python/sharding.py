"""Meshes, and how they divide arrays and values of graphs."""

import os
import tempfile
import unittest

import numpy as np

import hone
import hone.graph as hg


class Meshes(unittest.TestCase):
    def test_count_devices(self):
        mesh = hone.mesh(x=2, y=4)
        self.assertEqual(mesh.devices, 8)
        self.assertEqual(str(mesh), "x=2,y=4")
        self.assertEqual(eval(repr(mesh)), mesh)
        self.assertEqual([mesh.place(5, ["x"]), mesh.place(5, ["y"])], [1, 1])
        self.assertEqual(mesh.place(6, ["y", "x"]), 5)
        for wrong in ({}, {"x": 0}, {"x": 1.5}):
            with self.assertRaises(hone.UsageError):
                hone.mesh(**wrong)


class Arrays(unittest.TestCase):
    def test_in_parts_of_devices(self):
        array = np.arange(24).reshape(6, 4)
        with hone.mesh(batch=2, model=2):
            parts = hone.shard(array, "batch", "model")
        np.testing.assert_array_equal(parts.part(3), array[3:, 2:])
        self.assertIs(parts.whole(), array)
        self.assertEqual(repr(parts.placements), "(Shard(0), Shard(1))")

    def test_sizes_that_do_not_divide(self):
        parts = hone.shard(np.arange(7), "x", mesh=hone.mesh(x=3))
        self.assertEqual([list(parts.part(d)) for d in range(3)], [[0, 1, 2], [3, 4, 5], [6]])

    def test_placements_of_dtensor(self):
        array = np.arange(8).reshape(2, 4)
        mesh = hone.mesh(a=2, b=2)
        parts = hone.shard(array, hone.Shard(1), hone.Replicate(), mesh=mesh)
        self.assertEqual(parts.dims, ((), ("a",)))
        np.testing.assert_array_equal(parts.part(2), array[:, 2:])
        with self.assertRaisesRegex(hone.UsageError, "2 axes"):
            hone.shard(array, hone.Shard(0), mesh=mesh)
        with self.assertRaisesRegex(hone.UsageError, "2 dims"):
            hone.shard(array, hone.Shard(2), hone.Replicate(), mesh=mesh)
        last = hone.shard(array, hone.Shard(-1), hone.Replicate(), mesh=mesh)
        self.assertEqual(last.dims, parts.dims)
        with self.assertRaisesRegex(hone.UsageError, "all its elements"):
            hone.shard(array, hone.Partial(), hone.Replicate(), mesh=mesh)
        with self.assertRaisesRegex(hone.UsageError, "'mean'"):
            hone.Partial("mean")

    def test_placements_keep_the_order(self):
        array, mesh = np.arange(8).reshape(4, 2), hone.mesh(a=2, b=2)
        parts = hone.shard(array, ("a", "b"), None, mesh=mesh)
        again = hone.shard(array, *parts.placements, mesh=mesh)
        for device in range(4):
            np.testing.assert_array_equal(again.part(device), parts.part(device))
        other = hone.shard(array, ("b", "a"), None, mesh=mesh)
        np.testing.assert_array_equal(other.part(1), [[4, 5]])
        with self.assertRaisesRegex(hone.UsageError, "divided by b a: .* in the order a, b"):
            other.placements
        with self.assertRaisesRegex(hone.UsageError, "whole axes"):
            hone.shard(array, "a:(1)2", None, mesh=hone.mesh(a=4)).placements

    def test_parts_of_axes(self):
        array, mesh = np.arange(8), hone.mesh(x=4, y=2)
        # Device 2 * x + y; x is a grid of 2 x 2.
        outer = hone.shard(array, "x:(1)2", mesh=mesh)
        self.assertEqual([int(outer.part(d)[0]) for d in range(8)], [0, 0, 0, 0, 4, 4, 4, 4])
        turned = hone.shard(array, "x:(2)2 x:(1)2", mesh=mesh)
        self.assertEqual([int(turned.part(d)[0]) for d in range(8)], [0, 0, 4, 4, 2, 2, 6, 6])
        self.assertEqual(repr(turned), "<ShardedArray (8,) [x:(2)2 x:(1)2] on hone.mesh(x=4, y=2)>")
        self.assertEqual(hone.shard(array, "[x:(2)2 x:(1)2]", mesh=mesh).dims, turned.dims)
        for dims, words in [("x:(1)3", "no part"), ("x:(0)2", "no part"), ("x:2", "no axis"),
                            ("x x:(2)2", "divides twice"), ("x open", "'open' is for graphs"),
                            ("[x] replicated [y]", "replicated"), ("[x", "no axis|no sharding"),
                            (5, "5 is no axis")]:
            with self.assertRaisesRegex(hone.UsageError, words):
                hone.shard(array, dims, mesh=mesh)

    def test_are_arrays(self):
        array = np.arange(8, dtype=np.float32)
        parts = hone.shard(array, "x", mesh=hone.mesh(x=2))
        self.assertIs(np.asarray(parts), array)
        self.assertEqual(np.asarray(parts, np.float64).dtype, np.float64)
        np.testing.assert_array_equal(np.array(parts), array)

    def test_names_of_axes_in_quotes(self):
        mesh = hone.Mesh({"data-par": 2, "open": 2})
        self.assertEqual(str(mesh), '"data-par"=2,"open"=2')
        self.assertEqual(eval(repr(mesh)), mesh)
        parts = hone.shard(np.arange(4), ("data-par", "open"), mesh=mesh)
        self.assertEqual([int(parts.part(d)[0]) for d in range(4)], [0, 1, 2, 3])

    def test_say_what_is_wrong(self):
        array = np.zeros((4, 4))
        with self.assertRaisesRegex(hone.UsageError, "no mesh"):
            hone.shard(array, "x", None)
        with self.assertRaisesRegex(hone.UsageError, "is no array"):
            hone.shard(3, "x", mesh=hone.mesh(x=2))
        with hone.mesh(x=2):
            for dims, words in [(("x",), "1 dims"), (("y", None), "no axis 'y'"),
                                (("x", "x"), "divides twice")]:
                with self.assertRaisesRegex(hone.UsageError, words):
                    hone.shard(array, *dims)


def layers(say):
    """Two products; `say` is called with the values by name."""
    v, w = np.ones((6, 4), np.float32), np.ones((4, 6), np.float32)
    b = hg.Builder("two")
    x = b.parameter("x", "f32", [8, 6])
    h = hg.tanh(x @ v).named("h")
    y = (h @ w).named("y")
    say({"x": x, "h": h, "y": y})
    return b.finish(y)


class Graphs(unittest.TestCase):
    def test_values_say_it(self):
        with hone.mesh(batch=2):
            graph = layers(lambda values: hone.shard(values["x"], "batch", None))
        self.assertIn("[batch, -]", str(graph))
        self.assertIn("[batch = 2]", str(graph))
        # The text keeps it, and the numbers stay as they were.
        again = hg.parse(graph.text())
        self.assertEqual(str(again), str(graph))
        given = np.arange(48, dtype=np.float32).reshape(8, 6) / 48
        plain = layers(lambda values: None)
        np.testing.assert_array_equal(graph.evaluate([given])[0], plain.evaluate([given])[0])

    def test_values_say_all_of_the_text(self):
        def say(values):
            hone.shard(values["x"], "a:(1)2 open priority 1", "open")
            hone.shard(values["h"], "[a, -] replicated [b]")
            hone.shard(values["y"], hone.Shard(-1), hone.Partial("max"))

        with hone.mesh(a=4, b=2):
            text = str(layers(say))
        for words in ("[a:(1)2 open priority 1, open]", "[a, -] replicated [b]",
                      "[-, a] partial max [b]"):
            self.assertIn(words, text)

    def test_graphs_take_placements(self):
        graph, mesh = layers(lambda values: None), hone.mesh(a=2, b=2, c=2)
        said = hone.shard(graph, x=(hone.Shard(0), hone.Replicate(), hone.Partial()), mesh=mesh)
        self.assertIn("[a, -] partial sum [c]", str(said))
        self.assertEqual(graph.shape("h"), (8, 4))
        said = hone.shard(graph, x="[a, open] replicated [b]", mesh=mesh)
        self.assertIn("[a, open] replicated [b]", str(said))

    def test_graphs_say_it(self):
        graph = layers(lambda values: None)
        mesh = hone.mesh(batch=2, model=2)
        said = hone.shard(graph, x=("batch", None), h=("batch", "model"), mesh=mesh)
        self.assertNotIn("[batch", str(graph))  # it stays as it was
        self.assertIn("[batch, -]", str(said))
        self.assertIn("[batch, model]", str(said))
        with self.assertRaisesRegex(hone.Error, "no value 'z'"):
            hone.shard(graph, z=("batch",), mesh=mesh)
        with self.assertRaises(hone.Error):
            hone.shard(graph, x=("batch",), mesh=mesh)  # it has two dims
        with self.assertRaisesRegex(hone.UsageError, "many values"):
            hone.shard(graph, "batch", mesh=mesh)
        with self.assertRaisesRegex(hone.UsageError, "names are of the values"):
            hone.shard(np.zeros(4), x=("batch",), mesh=mesh)


class Models(unittest.TestCase):
    """Compiled for a mesh, they take and give whole arrays."""

    def test_on_a_mesh(self):
        given = np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 6)
        graph = layers(lambda values: None)
        want = graph.evaluate([given])[0]
        mesh = hone.mesh(batch=2)
        said = hone.shard(graph, x=("batch", None), mesh=mesh)
        for model in (
            hone.compile(graph, mesh=mesh),
            hone.compile(graph, mesh="a=2,b=2", shard={"x": ("a", None), "h": ("a", "b")}),
            hone.compile(said, mesh=mesh),
            hone.compile(said, shard={"h": ("batch", None)}),
        ):
            np.testing.assert_allclose(model(given), want, rtol=1e-5, atol=1e-6)

    def test_take_sharded_arrays(self):
        given = np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 6)
        mesh = hone.mesh(batch=2)
        model = hone.compile(layers(lambda values: None), mesh=mesh)
        parts = hone.shard(given, "batch", None, mesh=mesh)
        np.testing.assert_array_equal(model(parts), model(given))
        with self.assertRaisesRegex(hone.Error, "not an array"):
            model(given, out=hone.shard(model(given), "batch", None, mesh=mesh))

    def test_within_a_memory(self):
        graph, mesh = layers(lambda values: None), hone.mesh(x=2)
        model = hone.compile(graph, mesh=mesh, memory="1MiB", budget=5)
        np.testing.assert_allclose(
            model(np.ones((8, 6), np.float32)),
            graph.evaluate([np.ones((8, 6), np.float32)])[0], rtol=1e-5)
        with self.assertRaisesRegex(hone.LimitError, "within 64 B"):
            hone.compile(graph, mesh=mesh, memory=64)
        for words, given in [("no number|not a number", {"memory": "much"}),
                             ("no time", {"budget": 0})]:
            with self.assertRaisesRegex(hone.UsageError, words):
                hone.compile(graph, mesh=mesh, **given)
        with self.assertRaisesRegex(hone.UsageError, "that a mesh divides"):
            hone.compile(graph, memory="1MiB")
        with self.assertRaisesRegex(hone.UsageError, "chosen by price"):
            hone.compile(graph, mesh=mesh, shard={"x": ("x", None)}, budget=1)

    def test_by_a_plan(self):
        graph = layers(lambda values: None)
        given = np.ones((8, 6), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "two.shard")
            with open(plan, "w", encoding="utf-8") as file:
                file.write("mesh x=2\nshard %h = [-, x]\n")
            model = hone.compile(graph, shard=plan)
            with self.assertRaisesRegex(hone.Error, "mesh x=2 .* fits"):
                hone.compile(graph, mesh=hone.mesh(x=4), shard=plan)
        np.testing.assert_allclose(model(given), graph.evaluate([given])[0], rtol=1e-5)

    def test_say_what_is_wrong(self):
        graph = layers(lambda values: None)
        with self.assertRaisesRegex(hone.UsageError, "needs a mesh"):
            hone.compile(graph, shard="auto")
        for words, given in [("shard is 'auto'.* type int", {"shard": 5}),
                             ("mesh is .* type int", {"mesh": 5}),
                             ("no sharding", {"shard": {"x": "x"}, "mesh": "x=2"}),
                             ("name the axes",
                              {"shard": {"x": (hone.Shard(0),)}, "mesh": hone.mesh(x=2)})]:
            with self.assertRaisesRegex(hone.UsageError, words):
                hone.compile(graph, **given)
        with self.assertRaisesRegex(hone.UsageError, "batch alone"):
            hone.compile(graph, mesh=hone.mesh(x=2), devices=2)
        with self.assertRaisesRegex(hone.UsageError, "plan is of one device"):
            hone.compile(graph, mesh=hone.mesh(x=2), plan=hone.compile(graph).plan)
        with self.assertRaisesRegex(hone.Error, "no value 'z'"):
            hone.compile(graph, mesh=hone.mesh(x=2), shard={"z": ("x", None)})
        model = hone.compile(graph, mesh=hone.mesh(x=2))
        with self.assertRaisesRegex(hone.Error, "hone compile MODEL --mesh"):
            model.save("two.honec")


if __name__ == "__main__":
    unittest.main()
