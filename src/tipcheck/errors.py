"""The three ways tipcheck ends other than 'all good', as exceptions that carry their exit code.

Every message says what happened, where, and what to type next; the command line prints it on one
line and exits with ``exit_code``. Nothing a user can cause reaches them as a traceback.
"""

from __future__ import annotations

EXIT_GOOD = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3


class TipcheckError(Exception):
    """Base of every error tipcheck raises on purpose."""

    exit_code = EXIT_ENVIRONMENT

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        """Describe the error.

        Args:
            what: what happened, in one clause.
            where: file, line, stage or op that it happened in.
            hint: what to type or do next.
        """
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.what}{advice}"


class UsageError(TipcheckError):
    """What the user gave (arguments, a config, a file) cannot be used as it is."""

    exit_code = EXIT_USAGE


class ToolError(TipcheckError):
    """The tool itself, or the machine under it, could not do its work."""

    exit_code = EXIT_ENVIRONMENT
