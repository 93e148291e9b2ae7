"""Graphs, written in Python.

    import hone, hone.graph as hg

    b = hg.Builder("mlp")
    n = b.symbol("N", 1, 64)                      # an open size
    x = b.parameter("x", "f32", [n, 784])
    h = hg.relu(x @ w + bias)                     # w, bias: arrays of numpy become constants
    graph = b.finish(h.named("h"))
    model = hone.compile(graph)

Every op of docs/ops.md is a function here: operands in order, attributes by name. Those of words of
Python end in an underscore: not_, and_, or_. Operands are values, arrays of numpy (constants) or
numbers; elementwise ops broadcast as numpy does.
"""

from __future__ import annotations

import inspect
import keyword
from typing import Any, Callable, List, Tuple, Union

from ._compiler import (
    FEATURES,
    Builder,
    Graph,
    Value,
    apply,
    if_else,
    ops,
    parse_graph as parse,
    read_graph as load,
    scan,
    while_loop,
)

__all__ = ["FEATURES", "Builder", "Graph", "Value"]
__all__ += ["if_else", "load", "parse", "scan", "while_loop"]


def _function(name: str, operands: str, summary: str, attrs: List[Tuple[str, str, str]]) -> Any:
    def op(*operands: Any, **attributes: Any) -> Union[Value, Tuple[Value, ...]]:
        results = apply(name, operands, attributes)
        return results[0] if len(results) == 1 else tuple(results)

    op.__name__ = name + "_" if keyword.iskeyword(name) else name
    op.__qualname__ = op.__name__
    about = "".join(f"\n    {one}  {doc} Default: {fall or 'none'}" for one, fall, doc in attrs)
    op.__doc__ = f"{name}({operands}): {summary}\n{about}"
    parameters = [inspect.Parameter("operands", inspect.Parameter.VAR_POSITIONAL)]
    keyword_only, required = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    parameters += [
        inspect.Parameter(one, keyword_only, default=fall or required) for one, fall, _ in attrs
    ]
    op.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return op


for _row in ops():
    _made: Callable[..., Any] = _function(*_row)
    globals()[_made.__name__] = _made
    __all__.append(_made.__name__)
