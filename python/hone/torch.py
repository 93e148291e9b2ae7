"""Modules of PyTorch, compiled by hone.

    import hone.torch

    model = hone.torch.compile(module, (x,))          # or load(torch.export.export(module, (x,)))
    y = model(x)                                      # tensors in, tensors out

    fast = torch.compile(module, backend="hone")      # graph breaks, training, open sizes

What hone does not take is left to PyTorch: ops without a row, types that hone lacks, other devices.
`eager` says what then happens. True: nothing is said. False: it is refused. A function is called
with the name of each such op and the reason.
"""

from __future__ import annotations

import functools
import io
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _compile
from ._errors import Unsupported, UsageError

try:
    import torch
except ImportError:
    raise UsageError("hone.torch needs the package torch", hint="pip install torch") from None

import numpy
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ._aten_blocks import ROWS
from ._fx import BITS, Input, Lowered, Output, lower, op_name, symbol_sources

__all__ = ["ExportedModel", "backend", "compile", "load"]

Eager = Union[bool, Callable[[str, str], None]]


class _Part:
    """One graph that hone runs: tensors and sizes in, tensors out, in the order of the FX graph."""

    def __init__(
        self, module: torch.fx.GraphModule, lowered: Lowered, options: Mapping[str, Any]
    ) -> None:
        self.model = _compile.compile(lowered.graph, **options)
        self._run = self.model._core.run
        self._inputs: List[Input] = lowered.inputs
        self._outputs: List[Output] = lowered.outputs
        self._sources = symbol_sources(module)
        self._symbols = list(self._sources)
        self._sizes = functools.lru_cache(maxsize=256)(self._evaluated)

    def __call__(self, *args: Any) -> List[Any]:
        given = [_lent(args[one.place], one.is_size) for one in self._inputs]
        made = self._run(given, None)
        return [self._result(one, made, args) for one in self._outputs]

    def _result(self, one: Output, made: Sequence[Any], args: Sequence[Any]) -> Any:
        if one.kind == "out":
            return _taken(made[one.what], one.dtype, one.order)
        if one.kind == "argument":
            return args[one.what]
        if one.kind == "size":
            values = []
            for place, dim in self._sources.values():
                values.append(int(args[place] if dim is None else args[place].shape[dim]))
            return self._sizes(one.what, tuple(values))
        return one.what

    def _evaluated(self, expression: Any, values: Tuple[int, ...]) -> int:
        return int(expression.subs(dict(zip(self._symbols, values))))


def _lent(argument: Any, is_size: bool) -> Any:
    """The memory of a tensor as an array: nothing is copied."""
    if is_size:
        return numpy.empty(int(argument), numpy.uint8)
    tensor = argument.detach() if argument.requires_grad else argument
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    bits = BITS.get(tensor.dtype)
    return (tensor.view(bits) if bits is not None else tensor).numpy()


def _taken(
    array: Any, dtype: Optional[torch.dtype], order: Optional[Sequence[int]]
) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    tensor = tensor if tensor.dtype == dtype else tensor.view(dtype)
    if order is None:
        return tensor
    return tensor.permute([order.index(dim) for dim in range(len(order))])


class _Fused(torch.nn.Module):
    """Stands in a graph for the nodes that hone computes."""

    def __init__(self, part: _Part, result: Any) -> None:
        super().__init__()
        self.part = part
        self.is_single = isinstance(result, torch.fx.Node)

    def forward(self, *args: Any) -> Any:
        made = self.part(*args)
        return made[0] if self.is_single else tuple(made)


class _Good(OperatorSupportBase):
    def __init__(self, refused: Mapping[torch.fx.Node, str]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        if node.op != "call_function" or node in self._refused:
            return False
        if op_name(node) == "getitem":
            source = node.args[0]
            return isinstance(source, torch.fx.Node) and self.is_node_supported(submodules, source)
        known = node.meta.get("val")
        several = known if isinstance(known, (list, tuple)) else [known]
        return any(isinstance(one, torch.Tensor) for one in several)


# What costs PyTorch nothing: a part of such ops alone stays with it.
_VIEWS = {
    "alias", "detach", "expand", "getitem", "permute", "reshape", "select.int", "slice.Tensor",
    "split_with_sizes", "squeeze", "squeeze.dim", "squeeze.dims", "t", "transpose.int",
    "unsqueeze", "view", "_unsafe_view", "full", "empty.memory_format", "scalar_tensor",
}  # fmt: skip


class _Compiler:
    """Compiles FX graphs of ATen ops, and says what it leaves to PyTorch."""

    def __init__(self, eager: Eager, options: Mapping[str, Any]) -> None:
        self._eager = eager
        self._options = {"progress": False, **options}
        self.left: Dict[str, str] = {}  # by name of an op: the reason

    def run(self, module: torch.fx.GraphModule) -> Callable[..., Sequence[Any]]:
        lowered = lower(module, ROWS)
        if lowered.graph is not None:
            return _Part(module, lowered, self._options)
        for node, reason in lowered.refused.items():
            self._leave(op_name(node), reason)
        return self._mixed(module, lowered) if lowered.refused else module

    def _leave(self, name: str, reason: str) -> None:
        if self._eager is False:
            hint = "eager=True leaves such ops to PyTorch"
            raise Unsupported(f"hone does not take {name} of PyTorch: {reason}", hint=hint)
        if callable(self._eager) and name not in self.left:
            self._eager(name, reason)
        self.left.setdefault(name, reason)

    def _mixed(
        self, module: torch.fx.GraphModule, lowered: Lowered
    ) -> Callable[..., Sequence[Any]]:
        """hone computes the parts that it takes, PyTorch what is between them."""
        good = _Good(lowered.refused)
        partitioner = CapabilityBasedPartitioner(module, good, allows_single_node_partition=True)
        parts = partitioner.propose_partitions()
        parts = [one for one in parts if any(op_name(node) not in _VIEWS for node in one.nodes)]
        fused = partitioner.fuse_partitions(parts, prefix="hone_part_")
        for name, inner in list(fused.named_children()):
            if not name.startswith("hone_part_"):
                continue
            again = lower(inner, ROWS)
            for node, reason in again.refused.items():
                self._leave(op_name(node), reason)
            if again.graph is None:
                continue
            result = next(iter(inner.graph.find_nodes(op="output"))).args[0]
            part = _Part(inner, again, self._options)
            fused.set_submodule(name, _Fused(part, result))
        fused.recompile()
        return fused


@functools.lru_cache(maxsize=None)
def _decompositions(is_export: bool) -> Dict[Any, Any]:
    """How ops without a row are spelled out in others."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    aten = torch.ops.aten
    table = torch.export.default_decompositions() if is_export else core_aten_decompositions()
    table = dict(table.items())
    table.update(get_decompositions([
        aten._native_batch_norm_legit, aten._native_batch_norm_legit_functional,
        aten.native_batch_norm, aten._batch_norm_with_update_functional,
        aten.batch_norm_backward, aten.std.correction, aten.std_mean.correction,
        aten.upsample_trilinear3d, aten.grid_sampler_2d, aten.nll_loss2d_forward,
    ]))  # fmt: skip
    for op in list(table):
        name = str(op)
        name = name[len("aten.") :] if name.startswith("aten.") else name
        name = name[: -len(".default")] if name.endswith(".default") else name
        if name in ROWS or name == "native_dropout":
            del table[op]
    return table


# ---- torch.export ------------------------------------------------------------------------------


class ExportedModel:
    """An exported module that hone runs: tensors in the trees that the module takes and gives."""

    def __init__(self, exported: Any, eager: Eager, options: Mapping[str, Any]) -> None:
        from torch.export.graph_signature import InputKind, OutputKind

        program = exported.run_decompositions(_decompositions(True))
        self._program = program
        compiler = _Compiler(eager, options)
        module = program.graph_module
        self._call = compiler.run(module)
        self.eager: Dict[str, str] = compiler.left
        signature = program.graph_signature
        self._given: List[Optional[torch.Tensor]] = []
        for one in signature.input_specs:
            held = None
            if one.kind != InputKind.USER_INPUT:
                held = program.state_dict.get(one.target)
                held = program.constants.get(one.target) if held is None else held
                if not isinstance(held, torch.Tensor):
                    raise Unsupported(f"the input {one.target} of the program is no tensor")
                held = held.detach()
            self._given.append(held)
        self._changed: List[Tuple[int, str]] = []
        self._results: List[int] = []
        targets = {one.target: i for i, one in enumerate(signature.input_specs)}
        names = {getattr(one.arg, "name", None): i for i, one in enumerate(signature.input_specs)}
        for i, one in enumerate(signature.output_specs):
            if one.kind == OutputKind.USER_OUTPUT:
                self._results.append(i)
            elif one.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
                place = targets.get(one.target)
                place = names.get(one.target) if place is None else place
                self._changed.append((i, place))
        self._tree = program.call_spec.out_spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module. Buffers and arguments that it changes are changed."""
        flat = self._flat(args, kwargs)
        left = iter(flat)
        given = [next(left) if one is None else one for one in self._given]
        with torch.no_grad():
            made = self._call(*given)
            for i, place in self._changed:
                given[place].copy_(made[i])
        return torch.utils._pytree.tree_unflatten([made[i] for i in self._results], self._tree)

    def _flat(self, args: Any, kwargs: Any) -> List[Any]:
        spec = self._program.call_spec.in_spec
        named = self._ordered(kwargs)
        flat, tree = torch.utils._pytree.tree_flatten((args, named))
        if tree != spec:
            raise UsageError(f"the arguments form another tree than those of the example: {tree}",
                             hint=f"it was {spec}")  # fmt: skip
        return flat

    def _ordered(self, kwargs: Dict[str, Any]) -> Dict[str, Any]:
        known = self._program.call_spec.in_spec.children()[1].context
        if known and set(known) == set(kwargs):
            return {name: kwargs[name] for name in known}
        return kwargs

    @property
    def model(self) -> Any:
        """The compiled model, whose first inputs are the weights: to save it, to see its plan."""
        if not isinstance(self._call, _Part):
            ops = ", ".join(sorted(self.eager)) or "all of it"
            raise UsageError(f"PyTorch computes a part of the module: {ops}")
        return self._call.model


def load(
    exported: Union[torch.export.ExportedProgram, str, "os.PathLike[str]", bytes],
    *,
    eager: Eager = True,
    **options: Any,
) -> ExportedModel:
    """An exported program (torch.export), or the path or the bytes of a .pt2 file, ready to run.

    eager    what becomes of ops that hone does not take (see above); `.eager` names them
    options  those of hone.compile()

    Weights and buffers are read where they lie. Sizes that are open in the program stay open.
    """
    if isinstance(exported, bytes):
        exported = torch.export.load(io.BytesIO(exported))
    elif isinstance(exported, (str, os.PathLike)):
        exported = torch.export.load(os.fspath(exported))
    if not isinstance(exported, torch.export.ExportedProgram):
        hint = "hone.torch.compile(module, arguments) exports a module"
        raise UsageError(f"a {type(exported).__name__} is no exported program", hint=hint)
    return ExportedModel(exported, eager, options)


def compile(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Optional[Mapping[str, Any]] = None,
    *,
    dynamic_shapes: Any = None,
    eager: Eager = True,
    **options: Any,
) -> ExportedModel:
    """A module of PyTorch, exported for arguments like these, ready to run.

    args, kwargs    examples of the arguments
    dynamic_shapes  the sizes that stay open, as of torch.export.export()
    eager, options  those of load()
    """
    if not isinstance(args, (tuple, list)):
        raise UsageError("the examples of the arguments are a tuple", hint="compile(module, (x,))")
    exported = torch.export.export(
        module, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes
    )
    return ExportedModel(exported, eager, options)


# ---- torch.compile -----------------------------------------------------------------------------


def backend(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
) -> Callable[..., Any]:
    """What torch.compile(module, backend="hone", options={...}) calls.

    options: `eager` as of load(), and those of hone.compile(). Derivatives are those of PyTorch:
    hone compiles the graph that computes them, too.
    """
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    given = dict(options or {})
    compiler = _Compiler(given.pop("eager", True), given)

    def compiled(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
        return make_boxed_func(compiler.run(graph))

    made = aot_autograd(fw_compiler=compiled, decompositions=_decompositions(False))
    return made(module, inputs)


def _register() -> None:
    from torch._dynamo.backends import registry

    # If the package's entry point is what loads this module, PyTorch registers it by itself.
    if "hone" not in registry._BACKENDS and "hone" not in registry._COMPILER_FNS:
        registry.register_backend(backend, name="hone")


_register()
