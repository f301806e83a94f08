"""What looking at every tensor costs, beside the two plain forward passes and the public script.

``python bench/debug.py [--size 224] [--batch 8] [--rounds 3]``: ResNet50 with oneDNN against the
baseline without optimisation. T is the time of the two plain forward passes, one after the other.
Memory is that of all processes together (proportional set size, so that shared pages count once).
The public script (``tensorrt_precision_debug.py``) is for GPUs; what it does is done here on the
CPU: hooks copy every tensor of the baseline into a dictionary, then every tensor of the candidate
is copied and compared with what has the same name, in one process. It is given the older export,
where names are stable; on a ``.json`` it would find hardly any tensor to compare.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.tracing.execution import Execution
from tipcheck.backends.tracing.run_modes import PLAIN
from tipcheck.blame.lockstep import SideBySide, side_by_side
from tipcheck.compare.judge import Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS = Path(__file__).with_name("debug_models.py")


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


def plain(run: SideBySide, inputs: Path) -> float:
    """Return the seconds of two plain forward passes."""
    return sum(run.time_plain(inputs))


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
    with tempfile.TemporaryDirectory() as name:
        folder, older = Path(name), Path(name, "older")
        export(folder, options.size, options.batch, older=False)
        export(older, options.size, options.batch, older=True)
        model, inputs = folder / "resnet50.json", folder / "resnet50.npz"
        plains, ours = [], []
        with side_by_side(Execution(model, PLAIN), Execution(model, "onednn_fp32")) as run:
            plain(run, inputs)
            with watched() as before:
                plains += [plain(run, inputs) for _ in range(options.rounds)]
            with watched() as during:
                for _ in range(options.rounds):
                    start = time.perf_counter()
                    result = run.compare(inputs, Rules())
                    ours.append(time.perf_counter() - start)
        with watched() as theirs:
            told = the_scripts_way(older / "resnet50.pdmodel", older / "resnet50.npz")
    best = min(plains)
    rows = [row for row in result.rows if row.verdict is not None]
    print(
        f"ResNet50, {options.batch} x 3 x {options.size} x {options.size}, best of {options.rounds}"
    )
    print(f"{'':34}{'seconds':>9}{'x T':>7}{'MB':>8}{'tensors':>9}")
    print(f"{'two plain forward passes (T)':34}{best:9.2f}{1.0:7.2f}{before.peak:8.0f}{'':>9}")
    table = ("tipcheck, every tensor", min(ours), during.peak, len(rows))
    other = ("the public script's way", told["seconds"], theirs.peak, told["compared"])
    for what, seconds, held, count in (table, other):
        print(f"{what:34}{seconds:9.2f}{seconds / best:7.2f}{held:8.0f}{count:>9}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
