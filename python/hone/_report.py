"""Reports: one page that shows a model's speed, and what decides it."""

from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._compile import Source, request
from ._progress import Progress, hearing

if TYPE_CHECKING:
    from ._tune import Cost

HEIGHT = 800  # of the frame in a notebook, in pixels


class Report(NamedTuple):
    """A page of its own, which loads nothing. A notebook shows it in a frame."""

    html: str
    failures: Tuple[str, ...]  # what could not be done; the page says so, too

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        with open(path, "w", encoding="utf8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        # The frame keeps styles and scripts of the page and of the notebook apart.
        return (
            f'<iframe title="hone report" sandbox="allow-scripts" srcdoc="{html.escape(self.html)}"'
            f' style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failures" if self.failures else ""
        return f"<hone.Report of {len(self.html)} bytes{failed}>"


def report(
    source: Source,
    *,
    seconds: float = 2,
    rival: bool = False,
    sizes: Optional[Mapping[str, int]] = None,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    threads: Optional[int] = None,
    plan: Optional[str] = None,
    cost: Union[Cost, str, None] = None,
    isa: Optional[str] = None,
    cache: Any = True,
    log: Any = True,
    output: Union[str, os.PathLike[str], None] = None,
    progress: Union[Callable[[Progress], None], bool, None] = None,
) -> Report:
    """Runs and measures a model, and shows its speed and what decides it ('hone report').

    seconds  of each measurement
    cost     by which the planner chooses and the report prices, as in compile()
    rival    whether ONNX Runtime is measured, too, if node or Python has it
    output   a file .html to write, too

    What fails once the model is read stands in the report. The other arguments are those of
    compile(); all sizes have to be numbers.
    """
    from . import _compiler

    given = request(source, sizes, shapes, threads, isa, cache, log)
    if given["log"] is not None and not os.path.exists(given["log"]):
        given["log"] = None
    is_named = isinstance(given["source"], str)
    name = given["source"] if is_named else getattr(source, "name", "a model in memory")
    command = f"hone.report({name!r})" if is_named else "hone.report(...)"
    given.update(plan=plan, cost=cost, seconds=seconds, rival=rival, name=name, command=command)
    with hearing(progress) as hears:
        said = _compiler.report(given, hears)
    made = Report(said["html"], tuple(said["failures"]))
    if output is not None:
        made.save(output)
    return made
