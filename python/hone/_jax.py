"""Functions of JAX, compiled by hone through their StableHLO."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._compile import compile
from ._errors import Unsupported, UsageError
from ._model import Model


def _as_list(given: Any, kind: type) -> List[Any]:
    if given is None:
        return []
    return [given] if isinstance(given, kind) else list(given)


class JaxFunction:
    """What hone.jax() makes: the function, compiled for each kind of arguments that it meets."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: Union[int, Sequence[int], None],
        static_argnames: Union[str, Sequence[str], None],
        options: Mapping[str, Any],
    ) -> None:
        try:
            import jax as library
        except ImportError:
            hint = "pip install jax"
            raise UsageError("hone.jax needs the package jax", hint=hint) from None
        self._jax = library
        self._options = dict(options)
        numbers = _as_list(static_argnums, int)
        names = _as_list(static_argnames, str)
        # As jax.jit does: a number says the name of its argument, and the other way round.
        self._names = set(names)
        self._numbers = list(numbers)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional = [one.name for one in parameters if one.kind in by_position]
        self._numbers += [positional.index(name) for name in names if name in positional]
        for number in numbers:
            if -len(positional) <= number < len(positional):
                self._names.add(positional[number])
        # Arguments that the function does not read stay: hone gets all of them.
        self._jitted = library.jit(
            function, static_argnums=static_argnums, static_argnames=static_argnames,
            keep_unused=True,
        )  # fmt: skip
        # The quickest way into arrays of JAX: a call of jit takes a fifth of the time of asarray.
        self._arrays = library.jit(lambda *arrays: arrays)
        self._compiled: Dict[Any, Tuple[Model, Any, List[Tuple[Any, Optional[str]]]]] = {}
        self._lock = threading.Lock()
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function: arrays, numbers and trees of them in, arrays of JAX in trees out."""
        leaves, key = self._key(args, kwargs)
        model, tree, results = self._made(key, args, kwargs)
        outputs = model._run([self._given(leaf) for leaf in leaves], None)
        typed = [
            one if one.dtype == dtype else one.view(dtype)
            for one, (dtype, _) in zip(outputs, results)
        ]
        made = [
            # JAX has no public name for the generator of a type of keys; keys themselves have one.
            one if generator is None else self._jax.random.wrap_key_data(one, impl=generator)
            for one, (_, generator) in zip(self._arrays(*typed), results)
        ]
        return self._jax.tree_util.tree_unflatten(tree, made)

    def model(self, *args: Any, **kwargs: Any) -> Model:
        """The compiled model for arguments of this kind: to save it, or to look at its plan."""
        return self._made(self._key(args, kwargs)[1], args, kwargs)[0]

    def text(self, *args: Any, **kwargs: Any) -> str:
        """The StableHLO that JAX makes of the function for arguments of this kind."""
        return str(self._jitted.lower(*args, **kwargs).as_text())

    # ---- Arguments -----------------------------------------------------------------------------

    def _key(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[List[Any], Any]:
        if not self._numbers and not self._names:
            leaves, tree = self._jax.tree_util.tree_flatten((args, kwargs))
            return leaves, (tree, tuple([self._kind(leaf) for leaf in leaves]))
        numbers = {n + len(args) if n < 0 else n for n in self._numbers}
        dynamic = tuple(one for i, one in enumerate(args) if i not in numbers)
        named = {name: one for name, one in kwargs.items() if name not in self._names}
        static = (
            tuple((i, one) for i, one in enumerate(args) if i in numbers),
            tuple(sorted((name, one) for name, one in kwargs.items() if name in self._names)),
        )
        leaves, tree = self._jax.tree_util.tree_flatten((dynamic, named))
        return leaves, (static, tree, tuple(self._kind(leaf) for leaf in leaves))

    def _kind(self, leaf: Any) -> Tuple[Any, ...]:
        if isinstance(leaf, self._jax.core.Tracer):
            hint = "transform the function first: hone.jax(jax.grad(f))"
            raise UsageError("a function of hone.jax cannot be traced by JAX", hint=hint)
        if isinstance(leaf, (bool, int, float, complex)):
            return (type(leaf),)
        if not hasattr(leaf, "dtype") or not hasattr(leaf, "shape"):
            raise UsageError(f"an argument is no array: it is a {type(leaf).__name__}")
        return (leaf.shape, leaf.dtype, bool(getattr(leaf, "weak_type", False)))

    def _given(self, leaf: Any) -> Any:
        """What hone reads: the array itself, if it can."""
        import numpy

        jax = self._jax
        if isinstance(leaf, jax.Array) and getattr(leaf.dtype, "kind", "V") != "V":
            return numpy.asarray(leaf)
        if isinstance(leaf, (bool, int, float, complex)):
            return numpy.asarray(leaf, jax.dtypes.canonicalize_dtype(numpy.asarray(leaf).dtype))
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return numpy.asarray(jax.random.key_data(leaf))
        array = numpy.asarray(leaf)
        array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
        # The bits of a type that numpy does not have by itself.
        return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "V" else array

    # ---- Models --------------------------------------------------------------------------------

    def _result(self, info: Any) -> Tuple[Any, Optional[str]]:
        """The type of a result, and the generator if it is a key."""
        dtypes = self._jax.dtypes
        if dtypes.issubdtype(info.dtype, dtypes.prng_key):
            return "uint32", info.dtype._impl.name
        return info.dtype, None

    def _made(
        self, key: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]
    ) -> Tuple[Model, Any, List[Tuple[Any, Optional[str]]]]:
        with self._lock:
            found = self._compiled.get(key)
        if found is not None:
            return found
        lowered = self._jitted.lower(*args, **kwargs)
        results = [self._result(one) for one in self._jax.tree_util.tree_leaves(lowered.out_info)]
        model = compile(lowered.as_text().encode(), **self._options)
        if len(model.outputs) != len(results):
            raise Unsupported(f"JAX has {len(results)} results, its text {len(model.outputs)}")
        made = (model, lowered.out_tree, results)
        with self._lock:
            return self._compiled.setdefault(key, made)


def jax(
    function: Callable[..., Any],
    *,
    static_argnums: Union[int, Sequence[int], None] = None,
    static_argnames: Union[str, Sequence[str], None] = None,
    **options: Any,
) -> JaxFunction:
    """A function of JAX that hone runs: hone.jax(f)(*args) is what jax.jit(f)(*args) is.

    static_argnums, static_argnames  arguments that are no arrays, as of jax.jit
    options                          those of hone.compile()

    Each kind of arguments (shapes, types, static values) is compiled once. Derivatives are taken
    first: hone.jax(jax.grad(f)). hone itself does not need jax; this function does.
    """
    return JaxFunction(function, static_argnums, static_argnames, options)
