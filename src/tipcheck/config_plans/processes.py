"""Several processes for a training on the CPU: what ``--device cpu:2`` makes of a plan.

The chains know several devices only as a list of GPUs. On the CPU the same script is started by the
same launch module, which joins the processes with the gloo backend.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans.plan import Plan, Step

_DEVICE = re.compile(r"cpu:([1-9]\d{0,2})")
_LAUNCH = ("-m", "paddle.distributed.launch")
_ENV: dict[str, str | None] = {
    "PADDLE_DISTRI_BACKEND": "gloo",
    "PADDLE_LOG_OVERWRITE": "1",  # else the ranks' logs go on below those of the run before
    "CUDA_VISIBLE_DEVICES": None,
}


def device_and_processes(device: str | None) -> tuple[str | None, int]:
    """Return a device without its number of processes, and that number."""
    match = _DEVICE.fullmatch(device or "")
    return ("cpu", int(match[1])) if match else (device, 1)


def with_processes(plan: Plan, processes: int) -> Plan:
    """Return a plan whose trainings are several processes on the CPU.

    Raises:
        UsageError: a training that the launch module cannot start.
    """
    if processes == 1:
        return plan
    steps = tuple(
        _launched(step, processes, plan.config) if step.stage == "train" else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def _launched(step: Step, processes: int, config: str) -> Step:
    place = next((n for n, word in enumerate(step.argv) if word.endswith(".py")), 0)
    before = step.argv[1:place]
    if not place or any(word not in {"-u", "-B"} for word in before):
        raise UsageError(
            f"cannot be started as {processes} processes: {' '.join(step.argv[:4])}",
            where=f"{config}, step {step.id}",
            hint="give --device cpu, without a number of processes",
        )
    logs = posixpath.splitext(step.log)[0] + "_workers"
    launch = (*_LAUNCH, f"--nproc_per_node={processes}", f"--log_dir={logs}")
    argv = (step.argv[0], *before, *launch, *step.argv[place:])
    moved = len(launch)
    patterns = tuple(at + moved if at >= place else at for at in step.patterns)
    return replace(step, argv=argv, env={**step.env, **_ENV}, patterns=patterns)
