"""What a debug run is asked: two executions, inputs, and how closely to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.trace import TracedTensor
from tipcheck.backends.tracing.run_modes import ModeSettings
from tipcheck.blame.choice import Choice
from tipcheck.compare.judge import Rules

if TYPE_CHECKING:
    import numpy.typing as npt


Check = Callable[[TracedTensor, TracedTensor, "npt.NDArray[Any]", "npt.NDArray[Any]"], object]
"""Takes the candidate's tensor, the baseline's, and the values of both."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One set of inputs: what people call it, and its ``.npz`` file."""

    name: str
    file: Path


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that decides what is run and what comes out.

    Attributes:
        model: the exported model to judge.
        run_mode: how to run it.
        baseline: the run mode it is compared with; empty for no optimisation on the same device.
        samples: the inputs.
        baseline_model: another export to compare with; None for the same one.
        settings: what the run mode is told; the parameters of the model among it.
        baseline_settings: likewise, for the baseline.
        choice: which tensors to look at.
        memory: bytes that tensors on their way may take; 0 for the default.
        replay: whether to compute introduced errors.
        rules: the tolerance of the rows.
        check: the user's own check: sees each pair of tensors, what it returns stands in the row.
        golden: a recorded baseline; its inputs take the place of the samples.
        narrowing: after looking at every k-th tensor, look at those before the first bad one.
        memory_run: whether to run once more with memory reuse on.
    """

    model: Path
    run_mode: str
    samples: tuple[Sample, ...]
    baseline: str = ""
    baseline_model: Path | None = None
    settings: ModeSettings = field(default_factory=ModeSettings)
    baseline_settings: ModeSettings = field(default_factory=ModeSettings)
    choice: Choice = field(default_factory=Choice)
    memory: int = 0
    replay: bool = True
    rules: Rules = field(default_factory=Rules)
    check: Check | None = None
    golden: Path | None = None
    narrowing: bool = True
    memory_run: bool = True

    @property
    def reference(self) -> Path:
        """The model whose ops say what is right."""
        return self.baseline_model or self.model


def params_of(model: Path, settings: ModeSettings) -> Path:
    """Return the file with the parameters of a model."""
    return Path(settings.params) if settings.params else model.with_suffix(".pdiparams")
