"""What this machine can run: the contract between ``backends``, which asks, and ``report``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor. ``features`` says of each that matters here whether it is there."""

    model: str
    cores: int
    features: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class PaddleBuild:
    """The installed PaddlePaddle, as it describes itself.

    Attributes:
        version: its version.
        commit: the commit it was built from.
        cuda: CUDA version it was built for, empty for a CPU build.
        tensorrt: TensorRT version it was built with, empty without.
        gpus: names of the GPUs it sees.
        check: the last line that ``paddle.utils.run_check`` printed, or why it could not.
        works: whether that check succeeded.
    """

    version: str
    commit: str
    cuda: str
    tensorrt: str
    gpus: tuple[str, ...]
    check: str
    works: bool


@dataclass(frozen=True, slots=True)
class WayStatus:
    """Whether one way of running a model is there.

    Attributes:
        name: stage or run mode.
        what: what it is.
        available: whether it can be used here.
        formats: the export formats it was seen to run, ``json`` (PIR) and ``pdmodel``.
        how: how that was found out.
        because: why not, where it is not available.
        get: what to do to get it.
    """

    name: str
    what: str
    available: bool
    formats: tuple[str, ...] = ()
    how: str = ""
    because: str = ""
    get: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything ``tipcheck doctor`` found.

    Attributes:
        python: version of this Python.
        platform: operating system and architecture.
        packages: version of each package that matters; None where it is not installed.
        cpu: the processor.
        gpus: GPUs that the driver lists, whether Paddle can use them or not.
        paddle: the installed PaddlePaddle, None without one that starts.
        problem: why Paddle could not be asked, empty when it could.
        stages: the stages of ``verify``.
        run_modes: the run modes of ``debug``.
    """

    schema: ClassVar[str] = "tipcheck.diagnosis/1"

    python: str
    platform: str
    packages: Mapping[str, str | None]
    cpu: Cpu
    gpus: tuple[str, ...]
    paddle: PaddleBuild | None
    problem: str
    stages: tuple[WayStatus, ...]
    run_modes: tuple[WayStatus, ...]
