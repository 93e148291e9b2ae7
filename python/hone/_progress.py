"""How far long work has come. Choices and steps that hone notes go to the logger "hone"."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union


class Progress(NamedTuple):
    label: str  # what is counted: "kernels", "seconds"
    done: int
    total: int  # 0: not known
    elapsed: float  # seconds
    now: str  # what is under way
    notes: Tuple[str, ...]  # lines that are new
    bar: str  # all of it as a line for terminals: "[#####.....] 214/400 trials"
    line: str  # and as text: "214/400 trials, 12.3/s, eta 15s"


Hears = Callable[[Dict[str, Any], List[str]], None]
PATIENCE = 1.0  # seconds; what takes less shows nothing


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    return current is not None and hasattr(current, "kernel")


class _Shown:
    """A line that is written again and again: on a terminal, or in a notebook's cell."""

    def __init__(self) -> None:
        self.width = 0
        self.handle: Any = None
        self.is_notebook = _in_notebook()

    def hear(self, state: Dict[str, Any], notes: List[str]) -> None:
        if notes:
            import logging

            for note in notes:
                logging.getLogger("hone").info(note)
        if state["elapsed"] < PATIENCE or not state["label"]:
            return
        if self.is_notebook:
            self.show(state["line"])
        elif sys.stderr.isatty():
            self.write(state["bar"])

    def show(self, text: str) -> None:
        from IPython.display import Pretty, display  # type: ignore[import-not-found]

        if self.handle is None:
            self.handle = display(Pretty(text), display_id=True)
        else:
            self.handle.update(Pretty(text))

    def write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def end(self) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


@contextmanager
def hearing(progress: Union[Callable[[Progress], None], bool, None]) -> Iterator[Optional[Hears]]:
    """What _compiler calls. None and True: a bar or line, if the work takes long."""
    if progress is False:
        yield None
    elif progress is None or progress is True:
        shown = _Shown()
        try:
            yield shown.hear
        finally:
            shown.end()
    else:
        call: Callable[[Progress], None] = progress

        def hear(state: Dict[str, Any], notes: List[str]) -> None:
            call(Progress(notes=tuple(notes), **state))

        yield hear
