"""The block of numbers that AutoLog prints at the end of an inference log, as data.

Model repos measure their infer step with AutoLog; the test chain never read what it printed. A
block is a handful of log lines ``[date] logger INFO: [id] key: value``, in sections; of several
blocks in one log the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LINE = re.compile(
    r"^\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\]\s+\S+\s+INFO:\s*(?:\[[^\]]*\])?\s*(.*?)\s*$"
)
_SECTION = re.compile(r"^-{3,}\s*(\w+ info)\s*-{3,}$", re.IGNORECASE)
_ITEM = re.compile(
    r"([A-Za-z_][\w ]*(?:\((?:MB|ms|s)\))?): (.*?)(?=, [A-Za-z_][\w ]*(?:\(\w+\))?: |$)"
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class AutoLog:
    """What one inference step measured about itself.

    Attributes:
        model_name, precision, runtime_device: what ran.
        batch_size, data_num: how much of it.
        preprocess_ms, inference_ms, postprocess_ms: mean time per sample and stage.
        total_s: time of everything.
        cpu_rss_mb, gpu_rss_mb: memory.
        values: every key of the block with its text.
    """

    model_name: str = ""
    precision: str = ""
    runtime_device: str = ""
    batch_size: float | None = None
    data_num: float | None = None
    preprocess_ms: float | None = None
    inference_ms: float | None = None
    postprocess_ms: float | None = None
    total_s: float | None = None
    cpu_rss_mb: float | None = None
    gpu_rss_mb: float | None = None
    values: Mapping[str, str] = field(default_factory=dict)


_KEYS = {
    "batch_size": "batch_size",
    "data_num": "data_num",
    "preprocess_ms": "preprocess_time(ms)",
    "inference_ms": "inference_time(ms)",
    "postprocess_ms": "postprocess_time(ms)",
    "total_s": "total time spent(s)",
    "cpu_rss_mb": "cpu_rss(MB)",
    "gpu_rss_mb": "gpu_rss(MB)",
}


def parse_autolog(text: str) -> AutoLog | None:
    """Return the last AutoLog block of a log, or None when it holds none."""
    values: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        section = _SECTION.match(match[1])
        if section:
            if section[1].lower() == "env info":
                values = {}
            inside = True
        elif inside:
            values.update((item[1].strip(), item[2].strip()) for item in _ITEM.finditer(match[1]))
    if not any(key in values for key in _KEYS.values()):
        return None
    return AutoLog(
        model_name=values.get("model_name", ""),
        precision=values.get("precision", ""),
        runtime_device=values.get("runtime_device", ""),
        values=values,
        **{name: _number(values.get(key, "")) for name, key in _KEYS.items()},
    )


def _number(text: str) -> float | None:
    match = _NUMBER.match(text)
    return float(match[0]) if match else None
