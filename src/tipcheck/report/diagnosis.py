"""What ``tipcheck doctor`` found: the machine first, then each way of running a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tipcheck.report.fitting import print_fitting
from tipcheck.report.terminal import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.backends.doctor.diagnosis import Diagnosis, WayStatus


def show_diagnosis(diagnosis: Diagnosis, console: Console | None = None) -> None:
    """Print a diagnosis."""
    console = console or terminal()
    console.print(_machine(diagnosis))
    for title, ways in (
        ("stages of verify", diagnosis.stages),
        ("run modes of debug", diagnosis.run_modes),
    ):
        print_fitting(console, _ways(title, ways), ("what it is",))
    console.print(_last_line(diagnosis))


def _machine(diagnosis: Diagnosis) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="quiet")
    table.add_column(overflow="fold")
    table.add_row("Python", f"{diagnosis.python} on {diagnosis.platform}")
    paddle = diagnosis.paddle
    if paddle is None:
        table.add_row("Paddle", Text(diagnosis.problem, "bad"))
    else:
        kind = f"CUDA {paddle.cuda}" if paddle.cuda else "CPU build"
        extra = f", TensorRT {paddle.tensorrt}" if paddle.tensorrt else ""
        table.add_row("Paddle", f"{paddle.version} ({kind}{extra}, commit {paddle.commit[:10]})")
        table.add_row("run_check", Text(paddle.check, "good" if paddle.works else "bad"))
    cpu = diagnosis.cpu
    table.add_row("CPU", f"{cpu.model}, {cpu.cores} cores for this process")
    features = Text()
    for name, there in cpu.features.items():
        features.append(("✓ " if there else "✗ ") + name + "  ", "good" if there else "quiet")
    table.add_row("", features)
    table.add_row("GPUs", ", ".join(diagnosis.gpus) or "none that the driver lists")
    others = [f"{name} {version}" for name, version in diagnosis.packages.items() if version]
    table.add_row("packages", ", ".join(others))
    return table


def _ways(title: str, ways: tuple[WayStatus, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.add_column("")
    table.add_column("name", style="name", no_wrap=True)
    table.add_column("what it is")
    table.add_column("formats", no_wrap=True)
    table.add_column("how that is known, or what is missing", overflow="fold")
    before = Text()
    for way in ways:
        mark = Text("✓ available", "good") if way.available else Text("✗ not here", "warn")
        told = Text(way.how, "quiet") if way.available else Text(f"because {way.because}")
        if way.get:
            told.append(f"; to get it: {way.get}", "quiet")
        same = Text("the same", "quiet") if told == before and way.get else told
        table.add_row(mark, way.name, way.what, " ".join(way.formats), same)
        before = told
    return table


def _last_line(diagnosis: Diagnosis) -> Text:
    there = sum(way.available for way in diagnosis.stages)
    counted = f"{there} of {len(diagnosis.stages)} stages are available here"
    if diagnosis.paddle is None or not diagnosis.paddle.works:
        return Text(f"{counted}; without a working Paddle no model can be run", "bad")
    return Text(counted, "good")
