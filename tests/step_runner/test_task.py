from __future__ import annotations

from pathlib import Path

import pytest

from tipcheck.config_plans import Plan, Step
from tipcheck.errors import UsageError
from tipcheck.step_runner.task import make_tasks, select, with_python

ROOT = Path("/repo")


def step(name: str, stage: str = "train", **more: object) -> Step:
    fields: dict[str, object] = {
        "id": name,
        "stage": stage,
        "argv": ("python3.7", f"{name}.py"),
        "log": f"logs/{name}.log",
        **more,
    }
    return Step(**fields)  # type: ignore[arg-type]


def plan(*steps: Step, config: str = "c.txt") -> Plan:
    return Plan(config, "lite", "test", "model", steps)


def test_paths_are_placed_below_the_root() -> None:
    [a, b] = make_tasks(
        [plan(step("a", cwd="deploy"), step("b", needs=("a",), log="/elsewhere/b.log"))], ROOT
    )
    assert (a.log, a.cwd) == (Path("/repo/logs/a.log"), Path("/repo/deploy"))
    assert (b.log, b.cwd, b.needs) == (Path("/elsewhere/b.log"), ROOT, (0,))
    assert (b.number, b.where, b.name) == (1, ("c.txt lite", "b"), "model: b")


def test_steps_of_one_log_get_their_own() -> None:
    plans = [
        plan(step("a", log="x/infer.log"), step("b", log="x/./infer.log")),
        plan(step("a", log="x/infer.log"), config="d.txt"),
    ]
    assert [task.log.name for task in make_tasks(plans, ROOT)] == [
        "infer.log",
        "infer_2.log",
        "infer_3.log",
    ]


def test_needs_count_within_their_plan() -> None:
    tasks = make_tasks(
        [plan(step("a")), plan(step("a"), step("b", needs=("a",)), config="d")], ROOT
    )
    assert tasks[2].needs == (1,)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((step("a"), step("a")), "c.txt: two steps have the id 'a'"),
        ((step("a", needs=("z",)),), "c.txt, step a: needs 'z', which is no step of the plan"),
        ((step("a", argv=()),), "c.txt, step a: has no command"),
        ((step("a", log=""),), "c.txt, step a: has no log"),
        (
            (step("a", log="x\0y"),),
            "c.txt, step a: holds characters that no path can have: 'x\\x00y'",
        ),
        (
            (step("a", "\udcff"),),
            "c.txt, step a: holds characters that no path can have: '\\udcff'",
        ),
        (
            (step("a", needs=("b",)), step("b", needs=("a",)), step("c", needs=("b",))),
            "c.txt: steps need each other: a -> b -> a",
        ),
    ],
)
def test_a_plan_that_cannot_be_run(steps: tuple[Step, ...], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_tasks([plan(step("first"), config="other"), plan(*steps)], ROOT)
    assert str(caught.value) == words


def test_one_config_given_twice() -> None:
    with pytest.raises(UsageError, match="given twice in mode lite"):
        make_tasks([plan(step("a")), plan(step("b"))], ROOT)


def test_stages_are_chosen_and_what_they_need_of_others_is_dropped() -> None:
    whole = plan(step("t"), step("e", "export", needs=("t",)), step("i", "infer", needs=("e", "t")))
    [chosen] = select([whole], only=["export", "infer"])
    assert [(each.id, each.needs) for each in chosen.steps] == [("e", ()), ("i", ("e",))]
    [chosen] = select([whole], skip=["export"])
    assert [(each.id, each.needs) for each in chosen.steps] == [("t", ()), ("i", ("t",))]


def test_a_stage_that_nobody_has() -> None:
    with pytest.raises(UsageError, match="no step has the stage 'inference'; there are: train"):
        select([plan(step("a"))], only=["inference"])
    with pytest.raises(UsageError, match="no step is left to run; the stages are: train"):
        select([plan(step("a"))], skip=["train"])
    assert select([plan()]) == [plan()]


def test_another_interpreter() -> None:
    whole = plan(step("a"), step("b", argv=("bash", "x.sh")), step("c", argv=("/usr/bin/python",)))
    chosen = with_python(whole, "/opt/python3")
    assert [each.argv for each in chosen.steps] == [
        ("/opt/python3", "a.py"),
        ("bash", "x.sh"),
        ("/opt/python3",),
    ]
