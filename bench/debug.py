"""What looking at every tensor costs, beside the two plain forward passes and the public script.

``python bench/run.py debug``, or ``python bench/debug.py [--size 224] [--batch 8] [--rounds 3]``:
ResNet50 with oneDNN against the baseline without optimisation, every tensor. T is the time of the
two plain forward passes, one after the other. Memory is that of all processes together
(proportional set size, so that shared pages count once). The public script
(``tensorrt_precision_debug.py``) is for GPUs; what it does is done here on the CPU: hooks copy
every tensor of the baseline into a dictionary, then every tensor of the candidate is copied and
compared with what has the same name, in one process. It is given the older export, where names are
stable; on a ``.json`` it would find hardly any tensor to compare.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ratios import Row, Table, interleaved, markdown
from tipcheck.backends.tracing.execution import Execution
from tipcheck.backends.tracing.run_modes import PLAIN
from tipcheck.blame.debugging import Inquiry
from tipcheck.blame.lockstep import SideBySide, side_by_side
from tipcheck.blame.question import Question, Sample
from tipcheck.compare.judge import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "Looking at every tensor"
HOW = (
    "ResNet50, {batch} x 3 x {size} x {size}, `tipcheck debug` with oneDNN against the run without "
    "optimisation, all {count} tensors. T is the time of these two forward passes, one after the "
    "other, unobserved; times are medians of {rounds} rounds, one way after the other in each. "
    "Memory is the peak of all processes together; the plain run is the two predictors alone. The "
    "public script's way copies every tensor, holds those of the baseline, and compares by name."
)
MODELS = Path(__file__).with_name("debug_models.py")
ONE, MOST, FACTOR, EXTRA = 1.5, 4.0, 1.3, 300.0


class PeakMemory:
    """The most memory that this process and all it has started hold together, in MB."""

    def __init__(self) -> None:
        self.peak = 0.0
        self._stop = threading.Event()

    def watch(self) -> None:
        """Look until told to stop."""
        while not self._stop.wait(0.05):
            self.peak = max(self.peak, sum(map(_held, _family())))

    def stop(self) -> None:
        """Stop looking."""
        self._stop.set()


@contextlib.contextmanager
def watched() -> Iterator[PeakMemory]:
    """Watch memory while something runs."""
    memory = PeakMemory()
    thread = threading.Thread(target=memory.watch)
    thread.start()
    try:
        yield memory
    finally:
        memory.stop()
        thread.join()


def _family() -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text("utf-8")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    family = [os.getpid()]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _held(process: int) -> float:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8")
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line[:4] == "Pss:") / 1024


def export(folder: Path, size: int, batch: int, *, older: bool) -> None:
    """Write ResNet50 in one of the two formats."""
    flags = {"FLAGS_enable_pir_api": "0"} if older else {}
    command = [sys.executable, "-W", "ignore", str(MODELS), str(folder), "resnet50"]
    subprocess.run(
        [*command, "--size", str(size), "--batch", str(batch)],
        env={**os.environ, **flags},
        check=True,
        capture_output=True,
    )


def the_scripts_way(model: Path, inputs: Path) -> dict[str, Any]:
    """Run the public script's method in a process of its own and return what it tells."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--script", str(model), str(inputs)],
        check=True,
        capture_output=True,
        text=True,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def script(model: Path, inputs: Path) -> None:
    """Do what the public script does, on the CPU."""
    import numpy as np  # noqa: PLC0415 - only in the process that does this
    from paddle import inference  # noqa: PLC0415

    def predictor(*, onednn: bool) -> Any:
        config = inference.Config(str(model), str(model.with_suffix(".pdiparams")))
        config.disable_glog_info()
        # The script leaves memory reuse on, which spoils what hooks see; here it is off.
        for name, on in (("switch_ir_optim", onednn), ("enable_memory_optim", False)):
            getattr(config, name)(on)
        config.enable_onednn() if onednn else config.disable_onednn()
        return inference.create_predictor(config)

    def run(one: Any) -> float:
        with np.load(inputs) as arrays:
            for name in one.get_input_names():
                one.get_input_handle(name).copy_from_cpu(arrays[name])
        start = time.perf_counter()
        one.run()
        return time.perf_counter() - start

    saved: dict[str, Any] = {}
    compared: list[float] = []

    def save(op: str, name: str, tensor: Any) -> None:  # noqa: ARG001
        saved[name] = np.array(tensor).astype(float)

    def check(op: str, name: str, tensor: Any) -> None:  # noqa: ARG001
        values = np.array(tensor).astype(float)
        if name in saved and saved[name].shape == values.shape:
            base = saved[name]
            off = np.abs(values - base)
            wrong = np.count_nonzero(off > 1e-4 + 1e-4 * np.abs(base))
            relative = (off / np.maximum(np.abs(base), 1e-12)).max()
            extremes = (values.min(), base.min(), values.max(), base.max())
            compared.append(float(wrong + relative + off.max() + sum(extremes)))

    baseline, candidate = predictor(onednn=False), predictor(onednn=True)
    run(baseline), run(candidate)
    baseline.register_output_hook(save)
    candidate.register_output_hook(check)
    seconds = run(baseline) + run(candidate)
    print(json.dumps({"seconds": seconds, "compared": len(compared)}))


@dataclass
class Measured:
    """Median seconds and peaks in MB by way, and how much was looked at."""

    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    tensors: int = 0
    replayed: int = 0
    script: dict[str, Any] = field(default_factory=dict)


def measure(size: int = 224, batch: int = 8, rounds: int = 3) -> Table:
    """Measure in turn, and return the ratios."""
    found = Measured()
    with tempfile.TemporaryDirectory() as name:
        folder, older = Path(name), Path(name, "older")
        export(folder, size, batch, older=False)
        export(older, size, batch, older=True)
        model, inputs = folder / "resnet50.json", folder / "resnet50.npz"
        with side_by_side(Execution(model, PLAIN), Execution(model, "onednn_fp32")) as run:
            _look(run, model, inputs, rounds, found)
        found.script = the_scripts_way(older / "resnet50.pdmodel", older / "resnet50.npz")
        found.peaks["script"] = peak_of(
            lambda: found.script.update(
                compared=the_scripts_way(older / "resnet50.pdmodel", older / "resnet50.npz")[
                    "compared"
                ]
            )
        )
    how = HOW.format(batch=batch, size=size, count=found.tensors, rounds=rounds)
    return Table(how, _rows(found))


def _look(run: SideBySide, model: Path, inputs: Path, rounds: int, found: Measured) -> None:
    """Take the times first; looking at memory while something runs would slow it down."""
    sample = Sample("drawn", inputs)
    question = Question(model, "onednn_fp32", (sample,), memory_run=False)
    with tempfile.TemporaryDirectory() as name:
        inquiry = Inquiry(question, run, Path(name), lambda _: None, baseline_mode=PLAIN)

        def plainly() -> None:
            run.time_plain(inputs)

        def look() -> None:
            result = run.compare(inputs, Rules())
            found.tensors = sum(row.verdict is not None for row in result.rows)

        def replay() -> None:
            _, introduced = inquiry.compare(sample)
            found.replayed = sum(one.measures is not None for one in introduced.values())

        plainly()
        for what, work in (("plain", plainly), ("looking", look)):
            found.peaks[what] = peak_of(work)
        with inquiry.make_replayer() as inquiry.replayer:
            found.peaks["replaying"] = peak_of(replay)
            ways = {"plain": plainly, "looking": look, "replaying": replay}
            found.seconds = interleaved(ways, rounds)


def peak_of(work: Callable[[], None]) -> float:
    """Return the highest memory of all processes while something runs, in MB."""
    with watched() as memory:
        work()
    return memory.peak


def _rows(found: Measured) -> tuple[Row, ...]:
    one = found.seconds["plain"]
    beyond = {
        what: found.peaks[what] - FACTOR * found.peaks["plain"] for what in ("looking", "replaying")
    }
    script = found.script
    return (
        Row("two plain forward passes, T", one, "s"),
        Row(
            "the table without replay",
            found.seconds["looking"] / one,
            "T",
            f"at most {ONE}",
        ),
        Row(
            f"with introduced errors ({found.replayed} of {found.tensors} ops)",
            found.seconds["replaying"] / one,
            "T",
            f"at most {MOST}",
        ),
        Row(f"the public script's way, {script['compared']} tensors", script["seconds"] / one, "T"),
        Row("memory of the plain run", found.peaks["plain"], "MB"),
        Row("the table, beyond 1.3 x that", beyond["looking"], "MB", f"at most {EXTRA:.0f}"),
        Row(
            "with introduced errors, beyond 1.3 x that",
            beyond["replaying"],
            "MB",
            f"at most {EXTRA:.0f}",
        ),
        Row("the public script's way, all of it", found.peaks["script"], "MB"),
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--script", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.script:
        script(*options.script)
        return 0
    found = measure(options.size, options.batch, options.rounds)
    print(markdown(found))
    return 0 if all(row.holds for row in found.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
