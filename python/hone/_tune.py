"""Looking for faster plans by measuring, and prices and searches that are written in Python."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

from ._compile import Source, request
from ._progress import Progress, hearing

if TYPE_CHECKING:
    from ._compiler import Kernel, Schedule, SearchRun


class Cost:
    """A price for kernels, by which the planner chooses. Derive from it, and write price().

    Methods copy(bytes) and command() may price what is no kernel, in seconds; without them that has
    the analytic price.
    """

    def price(self, kernel: Kernel, schedules: List[Schedule], threads: int) -> Sequence[float]:
        """Seconds of one launch of the kernel by each of the schedules, on so many threads."""
        raise NotImplementedError


class Search:
    """A way to look through a space of schedules. Derive from it, and write look()."""

    def look(self, run: SearchRun) -> None:
        """Prices points until run.price() says that the budget is spent, or there are no more."""
        raise NotImplementedError


class Tuned(NamedTuple):
    """What tuning has found."""

    plan: str  # as text; hone.compile takes it. The default plan, unless another is surely faster
    default_plan: str
    gain: float  # the default plan's time for one of this
    seconds: float  # that it took
    trials: int  # schedules that were looked at
    measured: int
    text: str  # what 'hone tune' prints

    def __str__(self) -> str:
        return self.text


def tune(
    source: Source,
    *,
    seconds: float = 180,
    search: Union[str, Search] = "evolutionary",
    cost: Union[Cost, str, None] = None,
    only: Optional[str] = None,
    seed: int = 0,
    sizes: Optional[Mapping[str, int]] = None,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    threads: Optional[int] = None,
    cache: Any = True,
    log: Any = True,
    progress: Union[Callable[[Progress], None], bool, None] = None,
) -> Tuned:
    """Looks for a faster plan of the model by measuring. All sizes have to be numbers.

    seconds  that it may take
    search   of schedules: a name that 'hone tune --search' takes, or a Search
    cost     by which it chooses what to measure, as in compile()
    only     sorts of decisions: "schedules", "layouts,groups"
    log      a file that keeps what is measured; True: the user's own, None: none

    What it finds is in the log, from where load() and compile() take it. Ctrl-C ends it; the log
    keeps what was measured. The other arguments are those of compile().
    """
    from . import _compiler

    given = request(source, sizes, shapes, threads, None, cache, log)
    given["tune_log"], given["log"] = given["log"], None
    given.update(seconds=seconds, search=search, cost=cost, only=only, seed=seed)
    with hearing(progress) as hears:
        return Tuned(**_compiler.tune(given, hears))
