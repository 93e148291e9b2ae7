"""Models of scikit-learn from Python: strings and maps, as ONNX Runtime has them."""

import os
import unittest

import numpy as np

import hone

FOLDER = os.path.join(os.environ["ROOT"], "tests", "front", "sklearn")


def path(name):
    return os.path.join(FOLDER, name)


def loaded(name):
    return hone.load(path(name + ".onnx"), cache=None, log=None, progress=False)


class Sklearn(unittest.TestCase):
    def test_labels_are_places(self):
        model = loaded("logistic")
        self.assertEqual(model.strings["output_label"][:3], ["birch", "oak", "pine"])
        self.assertEqual(model.columns, {"output_probability": ["birch", "oak", "pine"]})
        x, wanted = np.load(path("logistic_in.npz")), np.load(path("logistic_out.npz"))
        label, probability = model(x["X"])
        np.testing.assert_array_equal(label, wanted["output_label"])
        np.testing.assert_allclose(probability, wanted["output_probability"], rtol=1e-5)

    def test_models_without_strings_have_none(self):
        model = loaded("svr")
        self.assertEqual((model.strings, model.columns), ({}, {}))

    def test_sessions_have_strings_and_maps(self):
        session = hone.InferenceSession(
            path("people.onnx"), cache=None, log=None, progress=False
        )
        types = [one.type for one in session.get_inputs()]
        self.assertEqual(types[2:], ["tensor(string)", "tensor(string)"])
        label, probability = session.get_outputs()
        self.assertEqual(label.type, "tensor(string)")
        self.assertEqual(probability.type, "seq(map(string,tensor(float)))")
        given, wanted = np.load(path("people_in.npz")), np.load(path("people_out.npz"))
        table = np.array(session.model.strings["sex"] + ["nowhere"], dtype=object)
        feed = {name: given[name] for name in ("age", "fare")}
        feed.update({name: table[given[name]] for name in ("sex", "town")})
        labels, maps = session.run(None, feed)
        self.assertEqual(labels.dtype, object)
        names = np.array(["no", "yes"], dtype=object)
        np.testing.assert_array_equal(labels, names[wanted["output_label"]])
        self.assertEqual(list(maps[0]), ["no", "yes"])
        self.assertIsInstance(maps[0]["no"], float)
        rows = [list(one.values()) for one in maps]
        np.testing.assert_allclose(rows, wanted["output_probability"], rtol=1e-5)
        (only,) = session.run(["output_label"], feed)
        np.testing.assert_array_equal(only, labels)

    def test_maps_of_numbers_have_numbers(self):
        session = hone.InferenceSession(
            path("logistic_numbers.onnx"), cache=None, log=None, progress=False
        )
        x = np.load(path("logistic_numbers_in.npz"))["X"]
        labels, maps = session.run(None, {"X": x})
        self.assertEqual(list(maps[0]), [0, 10, 20])
        self.assertEqual(labels.dtype, np.int64)
        self.assertEqual(session.get_outputs()[1].type, "seq(map(int64,tensor(float)))")


if __name__ == "__main__":
    unittest.main()
