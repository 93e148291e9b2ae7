"""Makes the files of this folder: models of scikit-learn, and what ONNX Runtime computes.

    pip install scikit-learn skl2onnx onnxruntime pandas; python3 make.py

NAME.onnx is the model, NAME_in.npz its inputs, NAME_out.npz its outputs. Strings are places in the
table that docs/onnx.md describes; maps are rows of their values.
"""

import warnings

import numpy as np
import onnx
import onnxruntime
import pandas
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

warnings.filterwarnings("ignore")
random = np.random.RandomState(0)
centers = np.array([[0, 0, 1], [2, 1, 0], [0, 3, 2]])
classes = np.repeat([0, 1, 2], 16)
points = (centers[classes] + random.normal(size=(48, 3))).astype(np.float32)
names = np.array(["oak", "birch", "pine"])[classes]
yes = np.array(["no", "yes"])[(classes == 1).astype(int)]
holed = points.copy()
holed[random.rand(*points.shape) < 0.15] = np.nan
people = pandas.DataFrame(
    {
        "age": (random.rand(48) * 60).astype(np.float32),
        "fare": (random.rand(48) * 9).astype(np.float32),
        "sex": np.array(["m", "f"])[random.randint(0, 2, 48)],
        "town": np.array(["Cork", "Quay, old", "Sund"])[random.randint(0, 3, 48)],
    }
)
codes = np.c_[points[:, :2], random.randint(0, 3, (48, 1))].astype(np.float32)


def by_columns(numbers, categories, encoder):
    return ColumnTransformer([("n", StandardScaler(), numbers), ("c", encoder, categories)])


models = {
    "logistic": (LogisticRegression(), points, names),
    "logistic_numbers": (LogisticRegression(), points, 10 * classes),
    "logistic_two": (LogisticRegression(), points, yes),
    "logistic_raw": (LogisticRegression(), points, names),
    "pipeline": (make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()), holed, names),
    "codes": (
        make_pipeline(by_columns([0, 1], [2], OneHotEncoder()), LogisticRegression()), codes, names
    ),
    "people": (
        make_pipeline(
            by_columns(["age", "fare"], ["sex", "town"], OneHotEncoder(handle_unknown="ignore")),
            LogisticRegression(),
        ),
        people,
        yes,
    ),
    "people_forest": (
        make_pipeline(
            by_columns(["age", "fare"], ["sex", "town"], OrdinalEncoder()),
            RandomForestClassifier(3, max_depth=3, random_state=0),
        ),
        people,
        names,
    ),
    "tree": (DecisionTreeClassifier(max_depth=3, random_state=0), points, names),
    "forest": (RandomForestClassifier(5, max_depth=3, random_state=0), points, names),
    "boosted": (GradientBoostingClassifier(n_estimators=3, random_state=0), points, names),
    "neighbors": (KNeighborsClassifier(3), points, names),
    "neighbors_by_distance": (KNeighborsClassifier(4, weights="distance"), points, classes),
    "network": (MLPClassifier((5,), max_iter=60, random_state=0), points, names),
    "bayes": (GaussianNB(), points, names),
    "svc": (SVC(probability=True, random_state=0), points, names),
    "svc_two": (SVC(kernel="linear", probability=True, random_state=0), points, yes),
    "svc_votes": (SVC(kernel="poly", degree=3), points, names),
    "svc_sigmoid": (SVC(kernel="sigmoid"), points, yes),
    "linear_svc": (LinearSVC(), points, names),
    "svr": (SVR(), points[:, 1:], points[:, 0]),
    "one_class": (OneClassSVM(), points, classes),
    "voting": (
        VotingClassifier(
            [("a", LogisticRegression()), ("b", GaussianNB())], voting="soft", flatten_transform=False
        ),
        points,
        names,
    ),
    "labels": (LabelEncoder(), names, None),
}


def table_of(graph):
    """Labels of classes first, then tensors, then the attributes of nodes."""
    first = [one.strings for n in graph.node for one in n.attribute
             if one.name == "classlabels_strings"]
    tensors = [t.string_data for t in graph.initializer]
    wanted = ("cats_strings", "keys_strings", "values_strings")
    others = [one.strings for n in graph.node for one in n.attribute if one.name in wanted]
    return list(dict.fromkeys(text.decode() for part in first + tensors + others for text in part))


def as_numbers(value, table):
    if isinstance(value, list):
        return np.array([list(row.values()) for row in value], np.float32)
    if value.dtype == object or value.dtype.kind == "U":
        flat = [table.index(text) if text in table else -1 for text in value.ravel()]
        return np.array(flat, np.int64).reshape(value.shape)
    return value


for name, (model, x, y) in models.items():
    model.fit(x) if y is None else model.fit(x, y)
    if name == "labels":
        made = convert_sklearn(model, initial_types=[("X", StringTensorType([None]))])
    else:
        options = {id(model): {"zipmap": False}} if name == "logistic_raw" else None
        made = to_onnx(model, x[:1], options=options)
    onnx.save(made, f"{name}.onnx")
    session = onnxruntime.InferenceSession(made.SerializeToString())
    x = x[::3]
    feed = {c: x[[c]].values.copy() for c in x.columns} if hasattr(x, "columns") else {
        session.get_inputs()[0].name: x
    }
    if "town" in feed:
        feed["town"][0] = "nowhere" if name == "people" else feed["town"][0]
    table = table_of(made.graph)
    inputs = {key: as_numbers(value, table) for key, value in feed.items()}
    results = zip((one.name for one in session.get_outputs()), session.run(None, feed))
    np.savez(f"{name}_in.npz", **inputs)
    np.savez(f"{name}_out.npz", **{key: as_numbers(value, table) for key, value in results})
