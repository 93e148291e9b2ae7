"""What hone raises."""

from __future__ import annotations


class Error(Exception):
    """A failure that hone reports.

    `code` is the exit code that the command line has for it, `where` a place such as
    "mlp.hone:3:12", and `hint` what to do; both may be empty.
    """

    code: int = 6

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.what} ({self.where})" if self.where else self.what
        return f"{text}\nhint: {self.hint}" if self.hint else text


class Mismatch(Error):
    """A comparison failed."""

    code = 1


class UsageError(Error, ValueError):
    """The call itself is wrong."""

    code = 2


class BadInput(Error, ValueError):
    """A file, a graph or an array is malformed, or does not fit."""

    code = 3


class Unsupported(Error):
    """It is valid, but outside of what hone handles."""

    code = 4


class LimitError(Error):
    """A bound of size, time or memory was reached, or a GPU failed."""

    code = 5


class InternalError(Error):
    """A fault of hone."""

    code = 6


class Interrupted(Error):
    """Somebody stopped it."""

    code = 130


_CLASSES = {kind.code: kind for kind in Error.__subclasses__()}


def of_code(code: int, what: str, where: str, hint: str) -> Error:
    return _CLASSES.get(code, InternalError)(what, where, hint)
