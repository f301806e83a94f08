"""The final outputs of a debug run: judged, and used to tell whether looking changed anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.graph import Graph
from tipcheck.backends.replay.replaying import Order, Replayer
from tipcheck.backends.tracing.execution import Execution
from tipcheck.backends.tracing.plain import UnsupportedError, run_plain
from tipcheck.backends.tracing.run_modes import by_predictor
from tipcheck.blame.outputs import judge_outputs, same_bits, worst
from tipcheck.blame.question import Question
from tipcheck.blame.table import Probe
from tipcheck.compare.budget import Budget
from tipcheck.compare.verdict import Status, TensorVerdict
from tipcheck.errors import TipcheckError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from tipcheck.blame.lockstep import Lockstep
    from tipcheck.blame.question import Sample

    Array = npt.NDArray[Any]
    Outputs = dict[str, Array]

Say = Callable[[str], None]


@dataclass
class Finals:
    """What is known of the final outputs, over all samples.

    Attributes:
        question: what was asked.
        baseline: the baseline's graph.
        form: the format the candidate computes in.
        folder: to write into.
        say: takes what is going on.
        replayer: computes outputs in float64; None where nothing can.
        verdicts: by the output's name, the worst over the samples.
        probe: whether looking changed the answers.
        notes: what else a reader has to know.
    """

    question: Question
    baseline: Graph
    form: Budget
    folder: Path
    say: Say
    replayer: Replayer | None = None
    verdicts: dict[str, TensorVerdict] = field(default_factory=dict)
    probe: Probe = field(default_factory=lambda: Probe(unchanged=True, reason="not run"))
    notes: list[str] = field(default_factory=list)

    def take(
        self,
        sample: Sample,
        plain: tuple[Outputs, Outputs],
        step: Lockstep,
        inputs: Mapping[int, Path],
    ) -> None:
        """Judge the final outputs of one sample, and whether looking has changed them.

        Args:
            sample: which.
            plain: the outputs of the baseline and of the candidate, both unobserved.
            step: the observed run.
            inputs: files of the model's inputs, by their values in the baseline's graph.
        """
        first = not self.verdicts
        expected, unobserved = plain
        referee = self._referee(inputs)
        for verdict in judge_outputs(expected, unobserved, self.question.rules, self.form, referee):
            old = self.verdicts.get(verdict.name)
            if old is None or _badness(verdict) > _badness(old):
                told = f" (sample {sample.name})" if len(self.question.samples) > 1 else ""
                self.verdicts[verdict.name] = replace(verdict, reason=verdict.reason + told)
        if step.complete and (first or self.probe.unchanged):
            reuse = self.probe.memory_reuse
            observed = {name: pair[1] for name, pair in step.outputs.items()}
            self.probe = replace(self._probed(unobserved, observed), memory_reuse=reuse)
        if first and step.complete and self._wants_memory_run():
            reuse = self._with_reuse(sample, expected, referee)
            self.probe = replace(self.probe, memory_reuse=reuse)

    @property
    def status(self) -> Status:
        """The worst verdict; nothing compared is a failure."""
        return worst(tuple(self.verdicts.values()))

    def _wants_memory_run(self) -> bool:
        """Whether a run with memory reuse can tell anything: it costs the start of a process."""
        if not self.question.memory_run or not by_predictor(self.question.run_mode):
            return False
        # No release of Paddle 3 so far can reuse memory for a .json: asked only in case of doubt.
        return self.status is not Status.PASS or self.question.model.suffix == ".pdmodel"

    def _probed(self, unobserved: Outputs, observed: Outputs) -> Probe:
        renamed = dict(zip(unobserved, observed.values(), strict=False))
        if len(observed) != len(unobserved):
            return Probe(unchanged=False, reason="observed, the model gave other outputs")
        if same_bits(unobserved, renamed):
            return Probe(unchanged=True, reason="final outputs are the same to the last bit")
        verdicts = judge_outputs(unobserved, renamed, self.question.rules, self.form)
        if worst(verdicts) is Status.PASS:
            reason = "final outputs with and without observation agree within tolerance"
            return Probe(unchanged=True, reason=reason)
        return Probe(unchanged=False, reason=verdicts[0].reason)

    def _with_reuse(
        self, sample: Sample, expected: Outputs, referee: Callable[[int], Array | None] | None
    ) -> Status:
        """Run the candidate as users do, with memory reuse, and judge its outputs."""
        self.say("running with memory reuse on")
        question = self.question
        execution = Execution(question.model, question.run_mode, question.settings)
        try:
            outputs = run_plain(execution, sample.file, self.folder)
        except UnsupportedError as error:
            told = "no predictor of this Paddle reuses memory for this model"
            self.notes.append(f"not tried with memory reuse: {told} ({error.what[:80]})")
            return Status.UNSUPPORTED
        except TipcheckError as error:
            self.notes.append(f"with memory reuse on it does not run: {error}")
            return Status.CRASH
        return worst(judge_outputs(expected, outputs, question.rules, self.form, referee))

    def _referee(self, inputs: Mapping[int, Path]) -> Callable[[int], Array | None] | None:
        """Return what computes a final output in float64, from the inputs."""
        replayer = self.replayer
        if replayer is None:
            return None
        given = {value: str(file) for value, file in inputs.items()}
        out = self.folder / "referee.npy"

        def referee(place: int) -> Array | None:
            if place >= len(self.baseline.outputs):
                return None
            answer = replayer.replay(Order(-1, self.baseline.outputs[place], given, str(out)))
            if answer.error:
                return None
            made: Array = np.load(out)
            return made

        return referee


def _badness(verdict: TensorVerdict) -> tuple[bool, bool, float]:
    """Return what sorts verdicts on one output of several samples."""
    ratio = verdict.measures.sqnr_db if verdict.measures else None
    suspect = verdict.status is Status.SUSPECT
    return not suspect and verdict.status is not Status.PASS, suspect, -(ratio or math.inf)
