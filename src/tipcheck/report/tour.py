"""What ``tipcheck demo`` shows while it goes: one line per stage, and what to make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tipcheck.compare.verdict import Status
from tipcheck.report.terminal import STYLES, decibels, short, terminal

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tipcheck.backends.outputs import StageOutputs
    from tipcheck.compare.verdict import Comparison

_BAR_FULL_DB = 150.0
_WIDE = 108
"""Columns from which on a line has room for a long bar and for whole words."""


class Tour:
    """Prints the demo as it happens."""

    def __init__(self, folder: Path, console: Console | None = None) -> None:
        self._folder = folder
        self._console = console or terminal()
        wide = self._console.width >= _WIDE
        self._bar, self._worst = (30, "worst element off by") if wide else (16, "worst")
        self._failed: list[str] = []

    def begin(self) -> None:
        """Say what is about to happen."""
        self._console.print(
            "MobileNetV3-small, 4 random images; each stage in a process of its own, "
            "compared with the layer itself.\n"
        )

    def ran(self, outputs: StageOutputs) -> None:
        """Show the stage that is the reference."""
        line = Text.assemble((f"  {outputs.stage:<13}", "name"), "reference".ljust(8))
        line.append(f"{outputs.seconds * 1000:>{self._bar + 5}.0f} ms", "quiet")
        self._console.print(line)

    def did_not_run(self, outputs: StageOutputs) -> None:
        """Show a stage that gave no answers, and why."""
        why = outputs.signal or " / ".join(outputs.last_lines[-1:]) or "no answer"
        self._console.print(
            Text.assemble((f"  {outputs.stage:<13}", "name"), ("not here  ", "quiet"), why)
        )

    def compared(self, outputs: StageOutputs, comparison: Comparison) -> None:
        """Show a stage with a bar as long as its answers are close."""
        status = comparison.status
        tensor = comparison.tensors[0]
        sqnr = tensor.measures.sqnr_db if tensor.measures else None
        share = 0.0 if sqnr is None else max(0.0, min(1.0, sqnr / _BAR_FULL_DB))
        bar = ("█" * round(share * self._bar)).ljust(self._bar, "░")
        self._console.print(
            Text.assemble(
                (f"  {outputs.stage:<13}", "name"),
                (f"{status.value:<6}", STYLES[status.value]),
                (bar, STYLES[status.value]),
                f" {outputs.seconds * 1000:>4.0f} ms  {_closeness(sqnr)}, {self._worst} "
                f"{short(tensor.measures.max_abs_over_rms if tensor.measures else None)} x rms",
            )
        )
        if status is not Status.PASS:
            self._failed.append(outputs.stage)

    def end(self) -> None:
        """Say what to make of it and what to type next."""
        self._console.print(
            "\nThe bar is the distance from the layer's answers in dB: longer is closer."
        )
        if "onednn_bf16" in self._failed:
            self._console.print(
                "bfloat16 keeps 8 significant bits, so it cannot pass with float32's tolerance;"
                " look closer:"
            )
        stage = self._failed[0] if self._failed else "onednn"
        one, other = self._folder / "eager.npz", self._folder / f"{stage}.npz"
        self._console.print(Text(f"  tipcheck compare {one} {other}", "name"))


def _closeness(sqnr: float | None) -> str:
    text = decibels(sqnr)
    return text if text in ("equal", "-") else f"{text} dB"
