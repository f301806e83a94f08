"""Stages judged without Paddle: from files of answers to rungs, statuses and the sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck.backends.catalogue import STAGES
from tipcheck.backends.outputs import apart
from tipcheck.backends.stages import StageKind, register, stage_kinds
from tipcheck.backends.subject import InputSet, InputSpec, Subject
from tipcheck.backends.told import told
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.answers import StageRun
from tipcheck.stage_ladder.flips import count_flips
from tipcheck.stage_ladder.lineup import Lined
from tipcheck.stage_ladder.noise import NoiseFloor, Shaken, distance, measure_noise, measure_shaken
from tipcheck.stage_ladder.rung import LadderResult
from tipcheck.stage_ladder.settings import Settings
from tipcheck.stage_ladder.summing import LadderParts, sum_up

NAMES = ("executor", "inference", "inference_ir", "onednn", "onednn_bf16")
EPS = 2.0**-24


class Ladder:
    """Answers of some stages in a folder, made from one right answer."""

    def __init__(self, folder: Path, truth: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        random = np.random.default_rng(5)
        scores = random.standard_normal((40, 12))
        self.truth = dict(truth) if truth else {"output_0": scores, "output_1": scores > 0}
        self.runs: dict[str, StageRun] = {}
        np.savez(folder / "inputs.npz", x=np.ones(3, np.float32))
        for number, name in enumerate(("referee", *NAMES)):
            self.put(name, self.rounded(number))

    def rounded(self, number: int) -> dict[str, Any]:
        noise = np.random.default_rng(number)
        made: dict[str, Any] = {}
        for name, array in self.truth.items():
            if array.dtype != np.float64:
                made[name] = array
                continue
            size = 0.0 if number == 0 else (0.003 if number == 5 else 8 * EPS)
            added: Any = noise.standard_normal(array.shape)
            made[name] = array + size * added
            if number:
                made[name] = made[name].astype(np.float32)
        return made

    def put(self, stage: str, outputs: Mapping[str, Any], **more: Any) -> None:
        path = self.folder / f"{stage}.npz"
        np.savez(path, **outputs)
        self.runs[stage] = StageRun(stage, {0: path}, **more)

    def change(self, stage: str, name: str, change: Any) -> None:
        with np.load(self.folder / f"{stage}.npz") as arrays:
            outputs = {key: arrays[key].copy() for key in arrays.files}
        outputs[name] = change(outputs[name])
        self.put(stage, outputs)

    def climbed(
        self,
        settings: Settings | None = None,
        *,
        referee: bool = True,
        bfloat16: frozenset[str] = frozenset(),
    ) -> LadderResult:
        kinds = stage_kinds()
        lined = [Lined(way, kinds[way.name], way.what) for way in STAGES if way.name in NAMES]
        full = [self.runs[name] for name in NAMES[:-1] if self.runs[name].answered]
        noise = measure_noise(self.runs["referee"], full, bfloat16, "there")
        subject = Subject(
            "net",
            "",
            (InputSpec("x", (3,), "float32"),),
            (InputSet("given", str(self.folder / "inputs.npz"), "given"),),
        )
        runs = {name: self.runs[name] for name in NAMES}
        found = noise if referee else NoiseFloor(referee="none")
        parts = LadderParts(subject, lined, runs, found, {}, bfloat16, None)
        return sum_up(parts, [str(self.folder / "inputs.npz")], settings or Settings())


@pytest.fixture
def ladder(tmp_path: Path) -> Ladder:
    return Ladder(tmp_path)


def statuses(result: LadderResult) -> dict[str, Status]:
    return {rung.stage: rung.status for rung in result.rungs}


def test_rounding_raises_no_alarm(ladder: Ladder) -> None:
    result = ladder.climbed()
    assert result.status is Status.PASS, result.sentence
    assert set(statuses(result).values()) == {Status.PASS}
    assert result.first_break is None
    assert result.compared == 5
    assert result.resolution is not None
    assert result.resolution < 1e-5
    assert result.rungs[0].bottom is None
    assert result.rungs[1].bottom is result.rungs[1].below


def test_a_fault_within_the_tolerance_is_seen_above_the_noise(ladder: Ladder) -> None:
    """1e-4 would let it pass; the model's own rounding does not explain it."""
    ladder.change("onednn", "output_0", lambda array: array * np.float32(1 + 6e-6))
    result = ladder.climbed()
    assert result.status is Status.SUSPECT
    assert result.first_break == "onednn"
    assert "times the noise" in result.sentence
    assert result.good(frozenset({"suspect"}))
    assert not result.good()


def test_without_referee_the_budget_decides(ladder: Ladder) -> None:
    ladder.change("onednn", "output_0", lambda array: array * np.float32(1 + 2e-5))
    result = ladder.climbed(referee=False)
    assert statuses(result)["onednn"] is Status.SUSPECT
    assert "where float32 keeps 100" in result.sentence
    assert result.resolution == pytest.approx(1e-5)


def test_a_fault_that_stays_is_blamed_where_it_begins(ladder: Ladder) -> None:
    for stage in NAMES[1:]:
        ladder.change(stage, "output_0", lambda array: array * np.float32(1.05))
    result = ladder.climbed()
    assert result.status is Status.FAIL
    assert result.first_break == "inference"
    assert "when Paddle Inference runs the program" in result.sentence
    assert "inference_ir, onednn" in result.sentence
    assert result.rungs[2].reason == "as inference, whose answers differ already"


def test_a_small_fault_is_blamed_where_it_began_not_where_it_was_noticed(ladder: Ladder) -> None:
    """The rung it began on only just passes; one above, with rounding of its own, does not."""
    with np.load(ladder.folder / "executor.npz") as arrays:
        right = arrays["output_0"].astype(np.float64)
    added = np.random.default_rng(1).standard_normal(right.shape)
    for stage, size in (("inference", 50), ("inference_ir", 50), ("onednn", 75)):
        ladder.put(
            stage,
            {
                "output_0": (right + size * EPS * added).astype(np.float32),
                "output_1": ladder.truth["output_1"],
            },
        )
    result = ladder.climbed()
    assert statuses(result)["onednn"] is Status.SUSPECT
    assert result.first_break == "inference", result.sentence
    assert "times the noise already, and more at onednn" in result.sentence


def test_a_fault_of_one_rung_leaves_the_next_alone(ladder: Ladder) -> None:
    ladder.change("inference_ir", "output_0", lambda array: -array)
    result = ladder.climbed()
    found = statuses(result)
    assert (found["inference_ir"], found["onednn"]) == (Status.FAIL, Status.PASS)
    assert "when IR passes are switched on" in result.sentence
    assert "decisions flip" in result.sentence
    assert "onednn, onednn_bf16 are right again" in result.sentence
    assert "sides with executor against inference_ir" in result.sentence


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a: a[:-1], "shape"),
        (lambda a: a.astype(np.float64), "dtype"),
        (lambda a: np.where(a == a.max(), np.nan, a).astype(np.float32), "NaN"),
    ],
)
def test_structure_fails_whatever_the_numbers(ladder: Ladder, change: Any, told: str) -> None:
    ladder.change("inference", "output_0", change)
    result = ladder.climbed()
    assert statuses(result)["inference"] is Status.FAIL
    assert told in result.sentence


def test_integers_have_to_be_equal(ladder: Ladder) -> None:
    ladder.change("onednn", "output_1", lambda array: ~array)
    assert statuses(ladder.climbed())["onednn"] is Status.FAIL


def test_low_precision_may_turn_a_close_decision(ladder: Ladder) -> None:
    def one(array: Any) -> Any:
        array.reshape(-1)[0] ^= True
        return array

    ladder.change("onednn_bf16", "output_1", one)
    assert statuses(ladder.climbed())["onednn_bf16"] is Status.SUSPECT


def test_large_outputs_are_judged_by_their_scale(tmp_path: Path) -> None:
    """Elements near zero of an output of size 1e4 are off by more than 1e-4, and rightly so."""
    scores = 1e4 * np.random.default_rng(0).standard_normal((50, 20))
    noisy = {"output_0": scores}
    ladder = Ladder(tmp_path, noisy)
    spread = 1e4 * 8 * EPS * np.random.default_rng(9).standard_normal(scores.shape)
    for stage in NAMES[:-1]:
        ladder.put(stage, {"output_0": (scores + spread).astype(np.float32)})
        spread = spread[::-1]
    result = ladder.climbed()
    assert statuses(result)["onednn"] is Status.PASS
    given = ladder.climbed(Settings(atol=1e-4, rtol=1e-9))
    assert statuses(given)["inference"] is Status.FAIL


def test_tiny_outputs_do_not_hide_behind_the_tolerance(tmp_path: Path) -> None:
    ladder = Ladder(tmp_path, {"output_0": 1e-7 * np.random.default_rng(0).standard_normal((9, 9))})
    for number, stage in enumerate(NAMES):
        exact: Any = ladder.truth["output_0"]
        noise = 1 + EPS * np.random.default_rng(number).standard_normal(exact.shape)
        ladder.put(stage, {"output_0": (exact * noise).astype(np.float32)})
    ladder.put("onednn", {"output_0": np.zeros((9, 9), np.float32)})
    assert statuses(ladder.climbed())["onednn"] is Status.FAIL


def test_fewer_answers_are_a_crash_not_a_pass(ladder: Ladder) -> None:
    ladder.runs["onednn"] = replace(ladder.runs["onednn"], archives={}, problems={0: "no"})
    ladder.runs["inference"] = StageRun("inference", crash="died on SIGSEGV")
    result = ladder.climbed()
    assert result.status is Status.CRASH
    assert result.first_break == "inference"
    assert statuses(result)["onednn"] is Status.CRASH
    assert "inference died on SIGSEGV" in result.sentence


def test_an_answer_that_is_missing_is_blamed_on_nobody_else(ladder: Ladder) -> None:
    """The rungs below are as far from the bottom as noise goes; that is no fault of theirs."""
    for stage in NAMES[:3]:
        ladder.put(stage, ladder.rounded(7 if stage == "executor" else 8))
    inference_ir = ladder.runs["inference_ir"]
    ladder.put("inference_ir", {"output_0": ladder.rounded(8)["output_0"]})
    assert ladder.climbed().first_break == "inference_ir"
    ladder.runs["inference_ir"] = replace(inference_ir, spread=1.0)
    assert ladder.climbed().first_break == "inference_ir"


def test_a_stage_that_disagrees_with_itself_fails(ladder: Ladder) -> None:
    for spread, fresh in ((0.5, 0.0), (0.0, math.inf)):
        ladder.runs["onednn"] = replace(ladder.runs["onednn"], spread=spread, spread_fresh=fresh)
        result = ladder.climbed()
        assert statuses(result)["onednn"] is Status.FAIL
        assert "the same inputs give other answers" in result.sentence


def checks(name: str, **found: Any) -> tuple[dict[str, Any], ...]:
    return ({"check": name, **found},)


def test_state_is_judged_by_noise_and_by_what_the_model_does_anyway(ladder: Ladder) -> None:
    inference = ladder.runs["inference"]
    ladder.runs["inference"] = replace(inference, checks=checks("batch 1", worst=1e-7))
    assert ladder.climbed().status is Status.PASS
    ladder.runs["inference"] = replace(inference, checks=checks("batch 1", worst=0.1))
    ladder.runs["executor"] = replace(ladder.runs["executor"], checks=checks("batch 1", worst=0.0))
    result = ladder.climbed()
    assert statuses(result)["inference"] is Status.FAIL
    assert "a row alone gives another answer" in result.sentence
    ladder.runs["executor"] = replace(ladder.runs["executor"], checks=checks("batch 1", worst=0.1))
    mixed = ladder.climbed()
    assert mixed.status is Status.PASS
    assert mixed.rungs[1].state[0].status is Status.UNSUPPORTED
    ladder.runs["inference"] = replace(inference, checks=checks("run N", problem="gone"))
    assert "later runs give other answers than the first: gone" in ladder.climbed().sentence
    ladder.runs["inference"] = replace(inference, checks=checks("clone", why="no such thing"))
    assert ladder.climbed().status is Status.PASS


def test_nothing_compared_never_passes(ladder: Ladder) -> None:
    for name in NAMES:
        ladder.runs[name] = StageRun(name, unsupported="not here")
    assert ladder.climbed().status is Status.UNSUPPORTED
    ladder.put("onednn", ladder.rounded(4))
    assert ladder.climbed().status is Status.FAIL
    assert "nothing was compared" in ladder.climbed().sentence


def test_a_stage_asked_for_that_cannot_run_fails(ladder: Ladder) -> None:
    ladder.runs["onednn_bf16"] = StageRun("onednn_bf16", unsupported="no AVX-512")
    assert ladder.climbed().status is Status.PASS
    asked = ladder.climbed(Settings(stages=NAMES))
    assert asked.status is Status.UNSUPPORTED
    assert not asked.good(frozenset({"suspect"}))


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
def test_answers_that_say_nothing_show_nothing(tmp_path: Path, value: float) -> None:
    ladder = Ladder(tmp_path)
    for name in NAMES:
        ladder.put(name, {"output_0": np.full((4, 4), value, np.float32)})
    result = ladder.climbed()
    assert result.status is Status.FAIL
    assert "nothing was shown" in result.sentence


def test_inputs_of_zeros_say_nothing(ladder: Ladder) -> None:
    np.savez(ladder.folder / "inputs.npz", x=np.zeros(3, np.float32))
    result = ladder.climbed()
    assert result.status is Status.FAIL
    assert result.sets[0].note == "says nothing: all inputs are zero"


def test_flips_count_only_what_had_a_lead() -> None:
    scores = np.zeros((3, 12))
    scores[0, 4], scores[1, 5], scores[2, 6] = 1.0, 1.0, 1e-6
    other = scores.copy()
    other[1, 5], other[2, 6] = -1.0, -1e-6
    found = count_flips(scores, other, noise=1e-3)
    assert found is not None
    assert (found.decisions, found.flipped, found.flipped_clearly) == (3, 2, 1)
    assert count_flips(scores[0], other[0], 0.1) is None


def test_the_catalogue_and_the_registered_stages_agree() -> None:
    assert [*stage_kinds()] == [way.name for way in STAGES]
    kinds = stage_kinds()
    assert all(kind.onto in ("", *kinds) for kind in kinds.values())
    with pytest.raises(ValueError, match="two modules register"):
        register(kinds["onednn"])
    with pytest.raises(ValueError, match="no stage 'odd'"):
        register(StageKind("odd", kinds["onednn"].start))


class Sets:
    """Answers of some stages to several input sets, and of the referee."""

    def __init__(self, folder: Path, count: int = 8) -> None:
        self.folder, self.count = folder, count
        self.noise: dict[str, Shaken] = {}
        self.answers: dict[str, list[dict[str, Any]]] = {}
        noise = np.random.default_rng(3)
        for stage in ("referee", *NAMES[:4]):
            rows = np.random.default_rng(0).standard_normal((count, 40, 3))
            exact = stage == "referee"
            made = rows if exact else rows * (1 + EPS * noise.standard_normal(rows.shape))
            self.answers[stage] = [
                {
                    "output_0": one.astype(np.float64 if exact else np.float32),
                    "output_1": np.arange(40),
                }
                for one in made
            ]

    def climbed(self) -> LadderResult:
        runs = {}
        for stage, answers in self.answers.items():
            archives = {}
            for number, outputs in enumerate(answers):
                archives[number] = self.folder / f"{stage}_{number}.npz"
                np.savez(archives[number], **outputs)
            runs[stage] = StageRun(stage, archives)
        np.savez(self.folder / "x.npz", x=np.ones(3, np.float32))
        kinds = stage_kinds()
        lined = [Lined(way, kinds[way.name], way.what) for way in STAGES if way.name in runs]
        truth = runs.pop("referee")
        full = [run for run in runs.values() if run.stage != "onednn_bf16"]
        noise = replace(measure_noise(truth, full, frozenset(), "there"), shaken=self.noise)
        sets = tuple(InputSet(f"set {n}", "x.npz", "given") for n in range(self.count))
        subject = Subject("net", "", (InputSpec("x", (3,), "float32"),), sets)
        parts = LadderParts(subject, lined, runs, noise, {}, frozenset(), None)
        return sum_up(parts, [str(self.folder / "x.npz")] * self.count, Settings())


@pytest.fixture
def sets(tmp_path: Path) -> Sets:
    return Sets(tmp_path)


def test_what_exact_arithmetic_turns_for_every_stage_is_no_fault(sets: Sets) -> None:
    """Boxes in another order, another number of them, an overflow: scores were all but equal."""
    for stage, order in (("referee", [1, 0]), ("onednn", [2, 0])):
        sets.answers[stage][3]["output_1"] = np.array([*order, *range(2, 40)])
    sets.answers["referee"][4]["output_1"] = np.arange(39)
    sets.answers["onednn"][4]["output_1"] = np.arange(41)
    for stage in NAMES[:4]:
        sets.answers[stage][5]["output_0"][:2] = np.inf
    sets.answers["onednn"][5]["output_0"][2] = np.inf
    result = sets.climbed()
    assert result.status is Status.PASS, result.sentence
    notes = {note.name: note.note for note in result.sets}
    assert notes["set 3"] == notes["set 4"] == "rounding decides much of output_1"
    assert notes["set 5"] == "rounding decides much of output_0"


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        (3, "output_1", np.array([9, *range(1, 40)])),
        (3, "output_1", np.arange(41)),
        (3, "output_0", np.full((40, 3), np.inf, np.float32)),
    ],
)
def test_what_only_one_stage_turns_is_a_fault(
    sets: Sets, number: int, name: str, value: Any
) -> None:
    """Also where exact arithmetic turns something else, or sides with the stage."""
    sets.answers["referee"][5]["output_1"] = np.array([1, 0, *range(2, 40)])
    sets.answers["onednn"][number][name] = value
    result = sets.climbed()
    assert (result.status, result.first_break) == (Status.FAIL, "onednn")
    sets.answers["referee"][number][name] = value.astype(sets.answers["referee"][0][name].dtype)
    assert sets.climbed().first_break == "onednn"


def test_far_more_than_exact_arithmetic_turns_is_a_fault(sets: Sets) -> None:
    sets.answers["referee"][3]["output_1"] = np.array([1, 0, *range(2, 40)])
    sets.answers["onednn"][3]["output_1"] = np.arange(40)[::-1].copy()
    assert sets.climbed().first_break == "onednn"


def test_a_referee_that_is_always_elsewhere_explains_nothing(sets: Sets) -> None:
    for answers in sets.answers["referee"]:
        answers["output_1"] = np.arange(40)[::-1].copy()
        answers["output_0"] = -answers["output_0"]
    assert sets.climbed().status is Status.PASS
    sets.answers["onednn"][3]["output_1"] = np.array([1, 0, *range(2, 40)])
    assert sets.climbed().first_break == "onednn"
    sets.answers["onednn"][3] = sets.answers["inference"][3]
    sets.answers["inference"][2]["output_0"] = sets.answers["inference"][2]["output_0"] * 1.01
    assert sets.climbed().first_break == "inference"


def test_an_answer_that_is_all_rounding_is_no_fault(sets: Sets) -> None:
    """The norm of a picture of one colour: exact arithmetic gives zero, every stage its noise."""
    sets.answers["referee"][2]["output_0"] = np.zeros((40, 3))
    result = sets.climbed()
    assert result.status is Status.PASS
    sets.answers["onednn"][2]["output_0"] = -3 * sets.answers["onednn"][2]["output_0"]
    result = sets.climbed()
    assert result.status is Status.PASS, result.sentence
    assert result.sets[2].note == "rounding decides much of output_0"
    sets.answers["onednn"][1]["output_0"] = 1.01 * sets.answers["onednn"][1]["output_0"]
    assert sets.climbed().first_break == "onednn"


def test_an_output_without_elements_for_some_inputs_is_no_fault(sets: Sets) -> None:
    """A picture without objects gives no boxes."""
    for answers in sets.answers.values():
        answers[4]["output_1"] = np.zeros(0, np.int64)
    result = sets.climbed()
    assert result.status is Status.PASS, result.sentence
    assert result.rungs[1].bottom is not None
    assert result.rungs[1].bottom.elements == 8 * 120 + 7 * 40
    sets.answers["onednn"][4]["output_1"] = np.zeros(1, np.int64)
    assert sets.climbed().first_break == "onednn"


def test_an_output_that_never_has_elements_is_no_pass(sets: Sets) -> None:
    for stage in sets.answers.values():
        for answers in stage:
            answers["output_1"] = np.zeros(0, np.int64)
    result = sets.climbed()
    assert result.status is Status.FAIL
    assert result.sentence.startswith("nothing was compared in output_1: it has no elements")
    for stage in sets.answers.values():
        for answers in stage:
            del answers["output_0"]
    result = sets.climbed()
    assert result.status is Status.FAIL
    assert "the outputs have no elements" in result.sentence


def test_infinite_scores_and_huge_numbers_are_compared_in_silence() -> None:
    scores = np.full((2, 12), np.inf, np.float32)
    assert count_flips(scores, -scores, 1e-3) is not None
    huge = np.full((2, 3), 1e200)
    assert distance(huge, np.full((2, 3), np.inf)) is None
    assert apart(huge, huge * 2) == 0.0 or apart(huge, huge * 2) < math.inf


def test_complex_numbers_are_apart_by_both_parts() -> None:
    one = np.full((2, 3), 1 + 1j, np.complex64)
    assert apart(one, one + np.complex64(1j)) == pytest.approx(2**-0.5)


def test_of_an_error_of_openvino_the_cause_is_told() -> None:
    text = "Exception from core.cpp:132:\nCheck 'false' failed at report.cpp:151:\nFrontEnd API"
    text += " failed with OpConversionFailure:\nModel wasn't fully converted.\nSummary:\n"
    assert told(RuntimeError(f"{text}-- Conversion is failed for: Loop-16\n")).endswith("Loop-16")
    assert told(RuntimeError("Exception from core.cpp:132:\nno such op")).endswith(": no such op")


def test_rungs_that_are_not_there_are_not_blamed(ladder: Ladder) -> None:
    """With two rungs far apart the sentence names both, and no single change."""
    for stage in ("inference_ir", "onednn"):
        ladder.change(stage, "output_0", lambda array: array * np.float32(1.05))
    assert "change when IR passes are switched on" in ladder.climbed().sentence
    ladder.runs["inference"] = StageRun("inference", unsupported="not asked")
    assert "change between executor and inference_ir" in ladder.climbed().sentence


def test_a_stage_that_gives_another_type_for_bfloat16_is_a_fault(tmp_path: Path) -> None:
    """The export says bfloat16, which comes as bits; a stage may give numbers all the same."""
    bits = (np.arange(16000, 16480).reshape(40, 12)).astype(np.uint16)
    ladder = Ladder(tmp_path, {"output_0": bits})
    names = frozenset({"output_0"})
    assert ladder.climbed(bfloat16=names).status is Status.PASS
    ladder.change("onednn", "output_0", lambda array: array.astype(np.float32))
    result = ladder.climbed(bfloat16=names)
    assert (result.status, result.first_break) == (Status.FAIL, "onednn")
    assert "became float32" in result.sentence


class Low(Sets):
    """The same with a rung of bfloat16, and the executor's answers on inputs with noise."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        draw = np.random.default_rng(8)
        self.moved: list[list[dict[str, Any]]] = [[], []]
        self.answers["onednn_bf16"] = []
        for outputs in self.answers["executor"]:
            rows, order = outputs["output_0"], outputs["output_1"]
            for target in (self.answers["onednn_bf16"], *self.moved):
                noise = 1 + draw.uniform(-0.004, 0.004, rows.shape)
                numbers = (rows * noise).astype(np.float32)
                target.append({"output_0": numbers, "output_1": order.copy()})

    def shaken(self) -> Shaken:
        runs = []
        for again, answers in enumerate([self.answers["executor"], *self.moved]):
            archives = {}
            for number, outputs in enumerate(answers):
                archives[number] = self.folder / f"moved_{again}_{number}.npz"
                np.savez(archives[number], **outputs)
            runs.append(StageRun("executor" if not again else "shaken", archives))
        return measure_shaken(runs[0], runs[1:], frozenset(), 2)

    def judged(self) -> LadderResult:
        self.noise = {"bfloat16": self.shaken()}
        return self.climbed()


@pytest.fixture
def low(tmp_path: Path) -> Low:
    return Low(tmp_path)


def swapped(order: Any, pairs: int) -> Any:
    order = order.copy()
    order[: 2 * pairs] = order[: 2 * pairs].reshape(-1, 2)[:, ::-1].reshape(-1)
    return order


def test_lower_precision_may_turn_what_noise_of_the_inputs_turns(low: Low) -> None:
    bits = low.answers["onednn_bf16"]
    bits[3]["output_1"] = swapped(bits[3]["output_1"], 3)
    assert low.judged().first_break == "onednn_bf16"
    low.moved[1][3]["output_1"] = swapped(low.answers["executor"][3]["output_1"], 2)
    assert low.judged().status is Status.PASS
    bits[5]["output_1"] = swapped(bits[5]["output_1"], 1)  # one pair: drawn too few times
    assert low.judged().status is Status.PASS
    bits[3]["output_1"] = swapped(low.answers["executor"][3]["output_1"], 8)
    assert low.judged().first_break == "onednn_bf16"


def test_lower_precision_may_not_turn_everything(low: Low) -> None:
    """Also where noise turns everything on some inputs."""
    for outputs in low.moved[0]:
        outputs["output_1"] = outputs["output_1"][::-1].copy()
    bits = low.answers["onednn_bf16"]
    bits[3]["output_1"] = bits[3]["output_1"][::-1].copy()
    assert low.judged().first_break == "onednn_bf16"


def test_lower_precision_may_move_as_far_as_noise_moves_the_answers(low: Low) -> None:
    """Rows of boxes that change places are far apart, and right."""
    bits, moved = low.answers["onednn_bf16"], low.moved[0]
    bits[2]["output_0"] = bits[2]["output_0"][::-1].copy()
    assert low.judged().first_break == "onednn_bf16"
    moved[2]["output_0"] = moved[2]["output_0"][::-1].copy()
    assert low.judged().status is Status.PASS
    bits[4]["output_0"] = bits[4]["output_0"][::-1].copy()
    assert low.judged().first_break == "onednn_bf16"


def test_a_model_that_any_noise_turns_over_excuses_nothing(low: Low) -> None:
    for outputs in low.moved[0]:
        outputs["output_0"] = outputs["output_0"][::-1].copy()
    bits = low.answers["onednn_bf16"]
    bits[2]["output_0"] = bits[2]["output_0"][::-1].copy()
    assert low.judged().first_break == "onednn_bf16"
