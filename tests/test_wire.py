"""Every contract survives the way to JSON and back, and foreign JSON is refused."""

from __future__ import annotations

import json
import math

import pytest

import tipcheck
from tests.blame.tables import table
from tipcheck import wire
from tipcheck.backends import (
    Graph,
    GraphOp,
    GraphValue,
    PassRecord,
    StageOutputs,
    Trace,
    TracedTensor,
)
from tipcheck.backends.doctor.diagnosis import Cpu, Diagnosis, PaddleBuild, WayStatus
from tipcheck.backends.subject import InputSet, InputSpec, Recorded, Subject
from tipcheck.blame import Alignment, Bundle, Culprit, Match, Pairing
from tipcheck.blame.culprit import CulpritKind
from tipcheck.compare import Comparison, compare_arrays
from tipcheck.compare.verdict import Status
from tipcheck.config_plans import Correction, Plan, Step
from tipcheck.errors import UsageError
from tipcheck.quant import QuantScheme
from tipcheck.stage_ladder import Against, Flips, LadderResult, Rung, SetNote, StateCheck
from tipcheck.stage_ladder.selftest import FaultOutcome, SelftestResult
from tipcheck.step_runner import Outcome, StepResult

COMPARISON = compare_arrays({"y": [1.0, 2.0]}, {"y": [1.0, 2.0]})
CONTRACTS: list[wire.Contract] = [
    Plan(
        config="a.txt",
        mode="lite_train_lite_infer",
        profile="tutorial",
        model_name="net",
        steps=(
            Step(
                id="train",
                stage="train",
                argv=("python", "train.py", "--note=a b"),
                log="out/train.log",
                env={"CUDA_VISIBLE_DEVICES": None, "LANG": "C"},
                gpus=("0",),
                corrections=(Correction("epochs-lost", "2 instead of 90", 7),),
            ),
        ),
    ),
    StepResult("train", Outcome.CRASHED, signal="SIGSEGV", seconds=1.5, peak_memory_bytes=7),
    StageOutputs("onednn", 1, ("y",), "y.npz"),
    Trace("onednn", (TracedTensor(0, "pd_op.relu", "t", "/ReLU", "float32", "NCHW", (1, 2)),)),
    Graph(
        "net.json",
        "onednn_fp32",
        "pir",
        (GraphValue(0, "x", "float32", (-1, 2), -1), GraphValue(1, "", "float32", (-1, 2), 0)),
        (GraphOp(0, "pd_op.relu", (0,), (1,), {"is_inplace": False}, "/ReLU"),),
        {"x": 0},
        (1,),
        {},
        (PassRecord("fuse_pass", {"pd_op.relu": 1}, {"onednn_op.relu": 1}),),
    ),
    Alignment((Pairing(1, 3, Match.FUSED, covers=(0, 1), inputs=((0, 0),)),)),
    COMPARISON,
    LadderResult(
        "net",
        Status.SUSPECT,
        "more noise than float32 explains",
        (
            Rung(
                "onednn",
                "oneDNN kernels",
                Status.SUSPECT,
                bottom=Against(
                    "eager",
                    Status.SUSPECT,
                    "noise",
                    "10 times the noise",
                    sqnr_db=math.inf,
                    verdict=COMPARISON.tensors[0],
                    flips=Flips(4, 1, 0),
                ),
                state=(StateCheck("run N", Status.PASS, worst=0.0),),
                seconds={"load": 0.5},
            ),
        ),
        first_break="onednn",
        sets=(SetNote("zeros", speaks=False, note="all zeros"),),
        facts={"parameters": "abc"},
    ),
    SelftestResult(
        3,
        (FaultOutcome("scaled", "", 10.0, "onednn", True, True, Status.SUSPECT, "onednn"),),  # noqa: FBT003
        50,
        (),
    ),
    Subject(
        "net",
        "inference.json",
        (InputSpec("ids", (-1, 7), "int64", 30522),),
        (InputSet("normal", "inputs_0.npz"),),
        recorded=(Recorded("eager", ("eager_0.npz",), ("",), ("logits",), 0.1),),
        facts={"training": "False"},
    ),
    table(),
    Culprit(CulpritKind.SET, ("fc_pass", "fc_act_pass"), "right without both", repairs=True),
    Bundle("repro", "python run.py", ("run.py",)),
    QuantScheme(),
    Diagnosis(
        python="3.11.7",
        platform="Linux",
        packages={"numpy": "2.2.6", "openvino": None},
        cpu=Cpu("some", 2, {"avx2": True}),
        gpus=(),
        paddle=PaddleBuild("3.3.1", "abc", "", "", (), "works", works=True),
        problem="",
        stages=(WayStatus("eager", "the layer", available=True),),
        run_modes=(),
    ),
]
IDS = [type(contract).__name__ for contract in CONTRACTS]


@pytest.mark.parametrize("contract", CONTRACTS, ids=IDS)
def test_comes_back_as_it_was(contract: wire.Contract) -> None:
    text = wire.dumps(contract)
    assert json.loads(text)["schema"] == contract.schema
    assert wire.loads(text, type(contract)) == contract


@pytest.mark.parametrize("contract", CONTRACTS, ids=IDS)
def test_schema_names_every_field(contract: wire.Contract) -> None:
    schema = wire.json_schema(type(contract))
    body = schema["$defs"][type(contract).__name__]
    assert set(body["properties"]) == {"schema", "tipcheck", *contract.__dataclass_fields__}
    assert body["properties"]["schema"] == {"const": contract.schema}


def test_the_version_that_wrote_it_is_in_the_file() -> None:
    assert json.loads(wire.dumps(QuantScheme()))["tipcheck"] == tipcheck.__version__


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_number_for_is_written_as_a_word(value: float) -> None:
    text = wire.dumps(StepResult("a", Outcome.PASSED, seconds=value))
    assert json.loads(text)["seconds"] == str(value)
    back = wire.loads(text, StepResult).seconds
    assert back == value or (math.isnan(back) and math.isnan(value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not readable as JSON"),
        ("[]", "found None"),
        ("{}", "found None"),
        ('{"schema": "tipcheck.plan/999"}', "expected schema 'tipcheck.plan/1'"),
        ('{"schema": "tipcheck.plan/1", "config": 3}', "does not fit tipcheck.plan/1"),
    ],
)
def test_foreign_json_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"plan\.json: ") as refused:
        wire.loads(text, Plan, source="plan.json")
    assert message in str(refused.value)


def test_comparison_schema_accepts_words_for_numbers() -> None:
    schema = wire.json_schema(Comparison)
    sqnr = schema["$defs"]["Measures"]["properties"]["sqnr_db"]
    assert {"enum": ["nan", "inf", "-inf"]} in sqnr["anyOf"][0]["anyOf"]
