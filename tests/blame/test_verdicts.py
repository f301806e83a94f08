from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tests.blame.graphs import network
from tests.blame.tables import measures, row, side, table, tensor
from tipcheck.blame import budget
from tipcheck.blame.doubt import without_contradictions
from tipcheck.blame.outputs import judge_outputs, same_bits, worst
from tipcheck.blame.table import Introduced, OpRow, Probe, TableCoverage
from tipcheck.blame.verdicts import annotate, blame, overall, row_status, sentence, worse
from tipcheck.compare import Rules
from tipcheck.compare.verdict import Status

FLOAT, BFLOAT = budget.format_of("float32"), budget.format_of("bfloat16")
COVERED = TableCoverage(3, 3, 3, 3, 3, 100, 1)
FINE = Probe(unchanged=True)


def introducing(index: int, db: float, status: Status = Status.FAIL) -> OpRow:
    made = Introduced(status, measures(sqnr_db=db), "float64", 118.0, reason=f"{db} dB")
    return row(index, status, introduced=made)


def test_the_coarsest_format_decides() -> None:
    assert budget.format_of("float32", "bfloat16").precision == "bfloat16"
    assert budget.format_of("uint8", "float32").precision == "int8"
    assert budget.format_of("", "bool").precision == "float32"


def test_noise_grows_with_the_logarithm_of_roundings() -> None:
    assert budget.expected_db(FLOAT, 1) == 123.0
    assert budget.expected_db(FLOAT, 10) == pytest.approx(113.0)
    assert budget.judge_db(120.0, 118.0) is Status.PASS
    assert budget.judge_db(110.0, 118.0) is Status.SUSPECT
    assert budget.judge_db(100.0, 118.0) is Status.FAIL


def test_the_culprit_introduces_and_does_not_inherit() -> None:
    inherits = row(2, propagated=measures(mismatched=9, sqnr_db=20.0))
    found = blame([row(0), introducing(1, 46.0), inherits])
    assert [item.row for item in found] == [1]
    assert found[0].excess_db == pytest.approx(72.0)


def test_nan_comes_before_all_and_then_the_larger_excess() -> None:
    broken = measures(actual=side(-1.0, 1.0, nan=4))
    nan = replace(introducing(3, 0.0), introduced=Introduced(Status.FAIL, broken, "float64", 118.0))
    found = blame([introducing(1, 80.0), introducing(2, 46.0), nan])
    assert [item.row for item in found] == [2, 1, 0]
    assert found[0].excess_db == math.inf


def test_who_is_only_suspect_is_not_blamed() -> None:
    assert blame([introducing(1, 110.0, Status.SUSPECT)]) == ()


def test_rows_say_who_inherits_and_where_nan_comes_first() -> None:
    nan = measures(mismatched=4, actual=side(-1.0, 1.0, nan=4))
    rows = [
        row(0),
        row(1, propagated=measures(mismatched=9)),
        row(2, propagated=nan),
        row(3, propagated=nan),
    ]
    notes = [item.note for item in annotate(rows, half=False)]
    assert notes[0] == ""
    assert notes[1] == "inherits its error"
    assert "first tensor with NaN" in notes[2]
    assert "first" not in notes[3]


def test_headroom_is_said_where_float16_is_near_its_limit() -> None:
    big = row(0, propagated=measures(actual=side(-30000.0, 12.0)))
    assert "headroom only 2.2x" in annotate([big], half=True)[0].note
    assert annotate([big], half=False)[0].note == ""
    assert annotate([row(1)], half=True)[0].note == ""


def test_a_row_that_was_not_replayed_is_judged_by_its_distance() -> None:
    assert row_status(None, measures(), FLOAT) is Status.PASS
    assert row_status(None, measures(mismatched=1, sqnr_db=20.0), FLOAT) is Status.FAIL
    assert row_status(None, measures(mismatched=1, sqnr_db=90.0), FLOAT) is Status.SUSPECT
    assert row_status(None, measures(mismatched=1, sqnr_db=36.0), BFLOAT) is Status.PASS
    assert row_status(None, None, FLOAT) is Status.UNSUPPORTED
    unknown = Introduced(Status.UNSUPPORTED, reason="no kernel")
    assert row_status(unknown, measures(), FLOAT) is Status.PASS


def test_of_two_samples_the_worse_row_stays() -> None:
    good, bad = row(1), replace(introducing(1, 46.0), sample=1)
    assert worse(good, bad) is bad
    assert worse(bad, good) is bad


@pytest.mark.parametrize(
    ("outputs", "rows", "probe", "coverage", "expected"),
    [
        (Status.PASS, [row(0)], FINE, COVERED, Status.PASS),
        (Status.FAIL, [row(0)], FINE, COVERED, Status.FAIL),
        (Status.SUSPECT, [row(0)], FINE, COVERED, Status.SUSPECT),
        (Status.PASS, [introducing(0, 46.0)], FINE, COVERED, Status.SUSPECT),
        (Status.PASS, [row(0)], Probe(unchanged=False), COVERED, Status.SUSPECT),
        (Status.PASS, [], FINE, TableCoverage(3, 0, 0, 0, 0, 0, 1), Status.FAIL),
    ],
)
def test_the_verdict_on_everything(
    outputs: Status, rows: list[OpRow], probe: Probe, coverage: TableCoverage, expected: Status
) -> None:
    assert overall(outputs, rows, probe, coverage) is expected


def test_the_sentence_says_what_and_where() -> None:
    whole = table()
    told = sentence(whole.outputs, Status.FAIL, whole.culprits, FINE, COVERED)
    assert "output y is not what the baseline gives" in told
    assert "onednn_op.fused_conv2d in /Net/Conv2D/ introduces an error" in told
    withheld = sentence(
        whole.outputs, Status.FAIL, (), Probe(unchanged=False, reason="so"), COVERED
    )
    assert "nobody is blamed, because looking changed the answers: so" in withheld
    nothing = sentence((), Status.FAIL, (), FINE, TableCoverage(0, 0, 0, 0, 0, 0, 0))
    assert nothing == "nothing was compared, which is a failure"
    right = sentence((), Status.PASS, (), FINE, COVERED)
    assert "no op makes more error than its format explains" in right
    blind = sentence(whole.outputs, Status.FAIL, (), FINE, replace(COVERED, replayed=0))
    assert "introduced errors were not computed" in blind


RANDOM = np.random.default_rng(3)
TRUTH = RANDOM.standard_normal(4000)


def outputs_of(noise: float, truth_noise: float = 0.0) -> tuple[Status, str]:
    expected = (TRUTH + truth_noise * RANDOM.standard_normal(4000)).astype(np.float32)
    actual = (TRUTH + noise * RANDOM.standard_normal(4000)).astype(np.float32)
    referee = (lambda _: TRUTH) if truth_noise else None
    found = judge_outputs({"y": expected}, {"z": actual}, Rules(), FLOAT, referee)
    return found[0].status, found[0].reason


def test_outputs_within_tolerance_pass() -> None:
    assert outputs_of(1e-6)[0] is Status.PASS


def test_an_output_as_near_to_float64_as_its_baseline_passes() -> None:
    status, reason = outputs_of(1e-3, truth_noise=1e-3)
    assert status is Status.PASS
    assert "from float64" in reason


def test_an_output_much_further_from_float64_does_not() -> None:
    status, reason = outputs_of(1e-2, truth_noise=1e-5)
    assert status is Status.FAIL
    assert "from float64" in reason


def test_without_a_referee_the_format_decides() -> None:
    assert outputs_of(8e-5)[0] is Status.SUSPECT
    assert outputs_of(1e-1)[0] is Status.FAIL


@pytest.mark.parametrize(
    "actual",
    [
        {"y": np.full(3, np.nan, np.float32)},
        {},
        {"y": np.zeros(4, np.float32)},
        {"y": np.zeros(3, np.float64)},
        {"y": np.zeros(3, np.float32), "more": np.zeros(3, np.float32)},
    ],
)
def test_what_is_missing_misshapen_or_nan_fails(actual: dict[str, npt.NDArray[np.float32]]) -> None:
    expected = {"y": np.zeros(3, np.float32)}
    found = judge_outputs(expected, actual, Rules(), FLOAT, lambda _: np.zeros(3))
    assert worst(found) is Status.FAIL


def test_no_outputs_at_all_is_a_failure() -> None:
    assert worst(()) is Status.FAIL


def test_sameness_is_of_bits() -> None:
    nan = np.array([np.nan, 1.0], np.float32)
    assert same_bits({"a": nan}, {"b": nan.copy()})
    assert not same_bits({"a": nan}, {"a": -nan})
    assert not same_bits({"a": nan}, {})


def chain(*ratios: float, guilty: int) -> list[OpRow]:
    """Rows for t3, t4 and t5 of the small network, with their distances from the baseline."""
    return [
        replace(
            introducing(at, 20.0) if at == guilty else row(at),
            tensor=tensor(at, value=at + 3),
            propagated=measures(mismatched=1, sqnr_db=ratio),
        )
        for at, ratio in enumerate(ratios)
    ]


def test_a_culprit_passes_its_error_on() -> None:
    found = without_contradictions(chain(130.0, 20.0, 21.0, guilty=1), network())
    assert [item.row for item in blame(found)] == [1]


def test_a_tensor_whose_consumers_are_right_was_matched_with_another_value() -> None:
    found = without_contradictions(chain(130.0, -18.0, 125.0, guilty=1), network())
    assert blame(found) == ()
    assert found[1].status is Status.UNSUPPORTED
    assert found[1].introduced is not None
    assert "another value" in found[1].introduced.reason


def test_an_op_whose_output_is_right_has_introduced_nothing() -> None:
    found = without_contradictions(chain(-18.0, 125.0, 125.0, guilty=1), network())
    assert blame(found) == ()
    assert found[1].status is Status.PASS


def test_the_last_op_has_nobody_after_it_to_contradict() -> None:
    found = without_contradictions(chain(130.0, 130.0, 20.0, guilty=2), network())
    assert [item.row for item in blame(found)] == [2]


def test_a_scale_that_was_folded_moves_over_the_addition_behind_it_too() -> None:
    rows = chain(-18.0, -20.0, 125.0, guilty=0)
    rows[1] = replace(rows[1], tensor=replace(rows[1].tensor, op_type="elementwise_add"))
    assert blame(without_contradictions(rows, network())) == ()
    rows[1] = replace(rows[1], tensor=replace(rows[1].tensor, op_type="pd_op.conv2d"))
    assert [item.row for item in blame(without_contradictions(rows, network()))] == [0]
