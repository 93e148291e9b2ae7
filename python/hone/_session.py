"""The names that ONNX Runtime's Python package has, where they mean the same.

    import hone as ort
"""

from __future__ import annotations

import enum
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from ._compile import load
from ._errors import BadInput, UsageError
from ._model import Model, Port

_TYPES = {
    "f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "i4": "int4",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "u4": "uint4",
    "bool": "bool", "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz",
    "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz",
}  # fmt: skip


class NodeArg(NamedTuple):
    """An input or output: `type` is as "tensor(float)", and a text in `shape` is an open size."""

    name: str
    type: str
    shape: List[Union[int, str]]


class GraphOptimizationLevel(enum.IntEnum):
    """hone has one level."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """Threads count; other attributes may be set, and mean nothing to hone."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0  # 0: all cores
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.log_severity_level = 2


class RunOptions:
    """Attributes may be set, and mean nothing to hone."""


def get_available_providers() -> List[str]:
    return ["CPUExecutionProvider"]


def get_device() -> str:
    return "CPU"


def _numbers(strings: Any, table: List[str]) -> Any:
    """Places in the table, -1 for strings that it lacks."""
    import numpy

    places = {text: place for place, text in enumerate(table)}
    given = numpy.asarray(strings)
    flat = [places.get(str(one), -1) for one in given.ravel()]
    return numpy.array(flat, dtype=numpy.int64).reshape(given.shape)


def _texts(places: Any, table: List[str]) -> Any:
    """An array of str, as ONNX Runtime has it."""
    import numpy

    places = numpy.asarray(places)
    is_there = (places >= 0) & (places < len(table))
    return numpy.array([*table, ""], dtype=object)[numpy.where(is_there, places, len(table))]


def _maps(rows: Any, keys: List[Union[str, int]]) -> List[Dict[Union[str, int], float]]:
    """What a ZipMap makes: a dict for each row."""
    return [dict(zip(keys, row)) for row in rows.tolist()]


class InferenceSession:
    """A model that runs as a session of ONNX Runtime does.

    `providers` may name others, as scripts do that fall back: hone computes on the processor.
    """

    def __init__(
        self,
        path_or_bytes: Union[str, bytes, os.PathLike[str]],
        sess_options: Optional[SessionOptions] = None,
        providers: Optional[Sequence[Any]] = None,
        provider_options: Optional[Sequence[Any]] = None,
        **options: Any,
    ) -> None:
        if sess_options is not None and sess_options.intra_op_num_threads > 0:
            threads = sess_options.intra_op_num_threads
            options.setdefault("threads", min(threads, len(os.sched_getaffinity(0))))
        self.model: Model = load(path_or_bytes, **options)
        self._run = self.model._core.run
        self._names = [port.name for port in self.model.outputs]
        self._has_labels = bool(self.model.strings or self.model.columns)

    def run(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Dict[str, Any],
        run_options: Optional[RunOptions] = None,
        *,
        out: Any = None,
        donate: Any = None,
    ) -> List[Any]:
        """The outputs of these names, or all of them. ONNX Runtime has no `out` and no `donate`:
        they are those of hone.Model."""
        if self._has_labels and (out is not None or donate is not None):
            raise UsageError("a model of strings makes its outputs anew; out and donate do not go")
        if self._has_labels:
            results = self._run_labelled(input_feed)
        else:
            results = self._run(input_feed, out, donate)
        if not output_names:
            return list(results)
        by_name = dict(zip(self._names, results))
        for name in output_names:
            if name not in by_name:
                hint = f"the model has {', '.join(self._names)}"
                raise BadInput(f"there is no output '{name}'", hint=hint)
        return [by_name[name] for name in output_names]

    def _run_labelled(self, input_feed: Dict[str, Any]) -> List[Any]:
        """Strings in and out, and maps for probabilities with labels."""
        strings, columns = self.model.strings, self.model.columns
        feed = {
            name: _numbers(array, strings[name]) if name in strings else array
            for name, array in input_feed.items()
        }
        results = list(self._run(feed, None))
        for i, name in enumerate(self._names):
            if name in strings:
                results[i] = _texts(results[i], strings[name])
            if name in columns:
                results[i] = _maps(results[i], columns[name])
        return results

    def _node_arg(self, port: Port) -> NodeArg:
        kind = f"tensor({_TYPES.get(port.type, port.type)})"
        if port.name in self.model.strings:
            kind = "tensor(string)"
        elif port.name in self.model.columns:
            key = "int64" if isinstance(self.model.columns[port.name][0], int) else "string"
            return NodeArg(port.name, f"seq(map({key},{kind}))", [])
        return NodeArg(port.name, kind, list(port.shape))

    def get_inputs(self) -> List[NodeArg]:
        return [self._node_arg(port) for port in self.model.inputs]

    def get_outputs(self) -> List[NodeArg]:
        return [self._node_arg(port) for port in self.model.outputs]

    def get_providers(self) -> List[str]:
        return get_available_providers()
