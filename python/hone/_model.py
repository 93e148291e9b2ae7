"""Models that are ready to run."""

from __future__ import annotations

import os
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _runtime
from ._errors import UsageError

if TYPE_CHECKING:
    import numpy

    from . import _compiler

    Array = numpy.ndarray[Any, Any]


class Port(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str  # hone's: "f32"
    dtype: str  # numpy's: "float32"; of a type that numpy lacks, that of its bits
    shape: Tuple[Union[int, str], ...]  # a text is a size that is open: "N"


class Bound:
    """A model with arrays that all its runs read and write: what Model.bind() makes.

    Whoever calls it changes the inputs in place before, and reads the outputs after. One thread at
    a time runs it.
    """

    def __init__(self, model: Model, binding: Any, inputs: Dict[str, Any]) -> None:
        self._run = binding.run
        results = binding.results
        self._results = results[0] if len(results) == 1 else results
        self.inputs = inputs
        self.outputs: Dict[str, Any] = dict(zip((one.name for one in model.outputs), results))

    def __call__(self) -> Any:
        """Runs the model; returns its output, or a tuple of all: the same arrays each time."""
        self._run()
        return self._results


class Model:
    """A model that is ready to run. Any number of threads may run it at once.

    model(x, y) and model(x=x, y=y) give the output, or a tuple of all outputs. Inputs are arrays of
    numpy, or of anything that speaks the buffer protocol or DLPack; they are read where they lie.
    A model on a GPU also takes arrays there, such as tensors of torch: all inputs or none. Then the
    outputs are arrays there, which others take by DLPack: torch.from_dlpack(y).
    """

    def __init__(self, name: str, core: Any, compiled: Optional[_compiler.Compiled] = None) -> None:
        self.name = name
        self._core = core
        self._compiled = compiled
        self._run = core.run
        self.inputs: List[Port] = [Port(*one) for one in core.inputs]
        self.outputs: List[Port] = [Port(*one) for one in core.outputs]
        # Of an ONNX file with strings. By input or output: the strings that its numbers stand for,
        # and the labels of its columns.
        self.strings: Dict[str, List[str]] = compiled.strings() if compiled else {}
        self.columns: Dict[str, List[Union[str, int]]] = compiled.columns() if compiled else {}

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        donate: Any = None,
        stream: Optional[int] = None,
        **named: Any,
    ) -> Any:
        """Runs the model.

        out     an array to write to, or all of them in order or by name; None among them: a new one
        donate  inputs that are given up: a name, several, or True for all that the model can
                change in place (donors); their outputs are returned in the same arrays
        stream  for arrays in memory of a GPU: the caller's stream, behind whose work the run
                comes, such as torch.cuda.current_stream().cuda_stream; None: the default stream
        """
        given = self._given(arrays, named)
        if out is not None and not isinstance(out, (dict, list, tuple)):
            out = (out,)
        results = self._run(given, out, donate, stream)
        return results[0] if len(results) == 1 else results

    def _given(self, arrays: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
        if named and arrays:
            names = [port.name for port in self.inputs]
            if len(arrays) > len(names):
                raise UsageError(f"the model has {len(names)} inputs, {len(arrays)} are given")
            for name, array in zip(names, arrays):
                if name in named:
                    raise UsageError(f"input '{name}' is given twice")
                named[name] = array
        return named if named else arrays

    def run(
        self,
        inputs: Union[Mapping[str, Any], Sequence[Any]],
        out: Any = None,
        donate: Any = None,
        stream: Optional[int] = None,
    ) -> Dict[str, Any]:
        """The outputs by name. For inputs whose names are no words of Python."""
        given = inputs if isinstance(inputs, (dict, list, tuple)) else dict(inputs)
        results = self._run(given, out, donate, stream)
        return {port.name: array for port, array in zip(self.outputs, results)}

    def bind(
        self,
        inputs: Union[Mapping[str, Any], Sequence[Any]],
        out: Any = None,
        donate: Any = None,
    ) -> Bound:
        """The model for these arrays, looked at once: calls of what it returns read the inputs and
        write the outputs where they lie. Outputs that `out` does not give are made here."""
        given = inputs if isinstance(inputs, (dict, list, tuple)) else dict(inputs)
        names = [port.name for port in self.inputs]
        binding = self._core.bind(given, out, donate)
        held = given if isinstance(given, dict) else dict(zip(names, given))
        return Bound(self, binding, {name: held[name] for name in names})

    def finish(self) -> None:
        """Waits until runs use the real code, where they began on quick code: compile() says when."""
        if self._compiled is not None:
            self._compiled.finish()

    def _stop(self) -> None:
        if self._compiled is not None:
            self._compiled.stop()

    @property
    def donors(self) -> Dict[str, str]:
        """The outputs that may lie in the memory of inputs that are donated, and these inputs."""
        return dict(self._core.donors)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a file, by its name: .honec is the compiled model, which loads in milliseconds and
        needs no compiler; .onnx and .hone are the model that was compiled."""
        if self._compiled is None:
            hint = "the file that it was loaded from can be copied"
            raise UsageError("only what was compiled here can be saved", hint=hint)
        self._compiled.save(os.fspath(path))

    @property
    def plan(self) -> str:
        """How it was compiled, as text (docs/plan.md)."""
        if self._compiled is None:
            raise UsageError("the model was loaded from a compiled file, which has no plan to give")
        return self._compiled.plan()

    def __repr__(self) -> str:
        def side(ports: List[Port]) -> str:
            return ", ".join(f"{p.name}: {p.type}[{', '.join(map(str, p.shape))}]" for p in ports)

        return f"<hone.Model {self.name}({side(self.inputs)}) -> ({side(self.outputs)})>"


def load_compiled(
    source: Union[str, bytes],
    threads: Optional[int] = None,
    verify: bool = False,
    device: Optional[str] = None,
    cache: Optional[str] = None,
) -> Model:
    load: Any = _runtime.parse if isinstance(source, bytes) else _runtime.load
    return Model(*load(source, threads, verify, device, cache))
