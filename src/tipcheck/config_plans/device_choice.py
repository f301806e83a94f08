"""What ``--device`` changes in a config: which devices train, and which inferences are left.

The lines of a config are written for the machine of whoever wrote it. Choosing a device gives those
lines that name devices other values, as if the file had been edited, and touches no other line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tipcheck.config_plans.reading import field_of, flag_meant
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans.profile import Profile
    from tipcheck.config_plans.text import Config

_GPUS = re.compile(r"gpu:(\d+(?:,\d+)*)")
_NO_GPU = "-1"
_MEANT = {"cpu": ("False", "cpu"), "gpu": ("True", "gpu")}


def device_values(config: Config, profile: Profile, device: str) -> dict[str, str]:
    """Return the values that lines of a config get when it is to run on a device.

    Args:
        config: the config.
        profile: the profile that reads it.
        device: ``cpu``, or ``gpu:`` and ids, as in ``gpu:0,1``.

    Raises:
        UsageError: the device is none of these.
    """
    gpus = _GPUS.fullmatch(device)
    if device != "cpu" and gpus is None:
        raise UsageError(
            f"--device {device!r} is no device",
            hint="write cpu, cpu:2 (processes), gpu:0 or gpu:0,1",
        )
    kind = "cpu" if gpus is None else "gpu"
    values = {}
    for spec in profile.lines.values():
        line = config.counted(spec.number)
        if line is None:
            continue
        if spec.name == "gpu_list":
            values[str(spec.number)] = _NO_GPU if gpus is None else gpus.group(1)
        elif spec.name in {"device", "use_gpu"}:
            chosen = _for_kind(field_of(line.text, spec, profile), kind, spec.name)
            if chosen:
                values[str(spec.number)] = chosen
    return values


def _for_kind(value: str, kind: str, name: str) -> str:
    """Return the value of a line that says where to run, for one kind of device.

    Of the inferences those of the other kind are dropped. A training has one value per entry of
    gpu_list, which is a single entry now. Values that name no device stay as they are.
    """
    items = [flag_meant(item) or item for item in value.split("|")]
    known = [item for item in items if item in {*_MEANT["cpu"], *_MEANT["gpu"]}]
    if not known:
        return ""
    kept = [item for item in known if item in _MEANT[kind]]
    words = _MEANT[kind][0 if known[0] in {"True", "False"} else 1]
    return "|".join(kept) if kept and name == "device" else words
