"""``tipcheck verify --each PATTERN -- COMMAND``: every config of a repo, exported and verified."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.backends.capture.command import Watch
from tipcheck.cli.run import EXIT_INTERRUPTED
from tipcheck.cli.run_options import default_jobs
from tipcheck.cli.verify_forms import (
    KINDS,
    allowed,
    ladder_settings,
    state_folder,
    watch_of,
    write_json,
)
from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, ToolError, UsageError
from tipcheck.stage_ladder.settings import Settings
from tipcheck.stage_ladder.verify_exports import SharedLinks

if TYPE_CHECKING:
    import argparse

    from tipcheck.config_plans import Plan
    from tipcheck.stage_ladder.exports import EachConfig, EachReport, ExportsReport
    from tipcheck.step_runner.contract import End, Job
    from tipcheck.step_runner.settings import Ran

_CONFIGS = (".yaml", ".yml")
_RESULT = "exports.json"


def run_each(options: argparse.Namespace, command: list[str]) -> int:
    """Run the command for every config, verify each, report; return the exit code."""
    from tipcheck import wire
    from tipcheck.report.each_table import show_each
    from tipcheck.report.exports_junit import write_junit
    from tipcheck.report.terminal import terminal

    configs = find_configs(options.each)
    if not any("{}" in word or "{name}" in word for word in command):
        raise UsageError(
            "the command has no {} where the config belongs",
            hint="such as: -- python tools/export_model.py -c {}",
        )
    typed = shlex.join(command)
    given: Path | None = options.output
    output = (
        Path(os.path.normpath(given.absolute()))
        if given
        else state_folder(f"{options.each}\0{typed}")
    )
    settings = ladder_settings(options, each=True)
    with SharedLinks() as links:
        links.warm_up()
        each = _Each(
            command=command,
            output=output,
            watch=watch_of(options, wait=True),
            settings=settings,
            allow=allowed(options),
            links=links,
        )
        plans = [each.plan(config) for config in configs]
        ran = _run(each, plans, options)
    report = _report(ran, each, typed)
    (output / "results.json").write_text(wire.dumps(report) + "\n", encoding="utf-8")
    show_each(report, terminal())  # before any file of the user's: one may not be writable
    log = options.log or output / f"check_{Path.cwd().name}.log"
    write_status(report, log)
    print(f"status lines: {log}\neverything else: {output}")
    if options.junit:
        write_junit([*_whole(report)], options.junit)
    if options.json:
        write_json(report, options.json)
    if report.interrupted_by:
        return EXIT_INTERRUPTED
    return EXIT_GOOD if report.good else EXIT_CHECK_FAILED


def find_configs(pattern: str) -> list[str]:
    """Return the configs that a pattern or a folder stands for, sorted.

    Raises:
        UsageError: there is none.
    """
    if Path(pattern).is_dir():
        files = sorted(
            str(Path(base, name))
            for base, _, names in os.walk(pattern, followlinks=True)
            for name in names
            if not name.startswith(".")
        )
        found = [file for file in files if file.endswith(_CONFIGS)] or files
    else:
        names = glob.glob(pattern, recursive=True)  # noqa: PTH207 - as the user wrote it
        found = sorted(name for name in names if os.path.isfile(name))  # noqa: PTH113
    if not found:
        raise UsageError(
            "no config matches", where=pattern, hint="put the pattern in quotes, ** for any depth"
        )
    return list(dict.fromkeys(os.path.normpath(name) for name in found))


@dataclass
class _Each:
    """What all configs have in common, and what goes before and after each."""

    command: Sequence[str]
    output: Path
    watch: Watch
    settings: Settings
    allow: frozenset[str]
    links: SharedLinks

    def __post_init__(self) -> None:
        self._configs: dict[str, str] = {}
        self._folders: dict[str, Path] = {}
        self._lock = threading.Lock()

    def plan(self, config: str) -> Plan:
        """Return the plan of one config: one step."""
        from tipcheck.config_plans import Plan, Step

        name = _safe(config)
        log = self.output / "logs" / f"{name}.log"
        self._configs[str(log)] = config
        stem = Path(config).stem
        argv = tuple(word.replace("{name}", stem).replace("{}", config) for word in self.command)
        step = Step(id="export", stage="export", argv=argv, log=str(log))
        mode = self._mode()
        return Plan(config=config, mode=mode, profile="each", model_name=config, steps=(step,))

    def _mode(self) -> str:
        """Return how configs are verified, in words: what was verified otherwise is not resumed."""
        settings, usual = self.settings, Settings(state=False, referee=False)
        ways = ",".join(settings.stages) or "all stages"
        tolerance = f"{settings.rtol or ''}/{settings.atol or ''}".strip("/")
        words = ["verify", ways, tolerance, *sorted(self.allow)]
        words += [f"seed {self.watch.seed}"] if self.watch.seed else []
        words += [",".join(self.watch.kinds)] if self.watch.kinds != KINDS else []
        for name in ("state", "referee", "full", "calibration", "threads"):
            if getattr(settings, name) != getattr(usual, name):
                words.append(f"{name} {getattr(settings, name)}")
        for precision, budget in sorted(settings.budgets.items()):
            words.append(f"{precision}={budget.warn_db:g},{budget.fail_db:g}")
        return " ".join(filter(None, words))

    def folder(self, config: str) -> Path:
        """Return where everything about a config's exports is."""
        return self.output / "exports" / _safe(config)

    def before(self, job: Job) -> Job:
        """Give a job an empty folder for what it saves."""
        from tipcheck.backends.capture.command import environment

        folder = self.folder(self._configs[job.log])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        locks = self.output / "locks"
        locks.mkdir(exist_ok=True)
        watch = replace(self.watch, locks=str(locks))
        return replace(job, env=environment(job.env, folder, watch))

    def after(self, job: Job, end: End) -> End:
        """Verify what a job has exported; say so in its end."""
        from tipcheck import wire
        from tipcheck.backends.capture.command import wait_for_answers
        from tipcheck.stage_ladder.exports import sum_up_exports
        from tipcheck.stage_ladder.verify_exports import verify_exports
        from tipcheck.step_runner.followed import with_trouble

        config = self._configs[job.log]
        folder = self.folder(config)
        typed = shlex.join(job.argv)
        begin = time.monotonic()
        wait_for_answers(folder, self.watch.limit)
        exports = verify_exports(folder, typed, self.settings, self.links)
        report = sum_up_exports(typed, 0, exports, allow=self.allow, config=config)
        report = replace(report, seconds=round(time.monotonic() - begin, 3))
        (folder / _RESULT).write_text(wire.dumps(report) + "\n", encoding="utf-8")
        if report.good:
            for copy in folder.glob("*/exported"):
                shutil.rmtree(copy, ignore_errors=True)
        return with_trouble(end, "" if report.good else report.sentence)

    def read(self, config: str) -> ExportsReport | None:
        """Return what is known about a config's exports, from this run or an earlier one."""
        from tipcheck import wire
        from tipcheck.stage_ladder.exports import ExportsReport

        file = self.folder(config) / _RESULT
        try:
            return wire.loads(file.read_bytes(), ExportsReport, source=str(file))
        except (OSError, UsageError):
            return None


def _safe(config: str) -> str:
    """Return a config's path as one name."""
    return re.sub(r"[^\w.-]+", "-", config.replace("-", "--").replace(os.sep, "-")).strip("-")


def _run(each: _Each, plans: Sequence[Plan], options: argparse.Namespace) -> Ran:
    from tipcheck.report.run_lines import PlainLines
    from tipcheck.step_runner.followed import FollowedEngine
    from tipcheck.step_runner.runner import make_local, make_warm, run_plans
    from tipcheck.step_runner.settings import ALL_STAGES
    from tipcheck.step_runner.settings import Settings as RunSettings

    jobs = options.jobs if options.jobs is not None else default_jobs(os.cpu_count() or 1)
    if jobs < 1:
        raise UsageError(f"--jobs is {jobs}", hint="give a number of 1 or more")
    settings = RunSettings(
        root=Path.cwd(),
        output=each.output,
        jobs=jobs,
        limits={ALL_STAGES: options.timeout} if options.timeout else {},
        resume=options.resume,
    )
    make = make_warm if options.engine == "warm" else make_local

    def engine(journal: Path, descriptor: int) -> FollowedEngine:
        # Not the run's own journal: what ended in there would count although it was not verified.
        inner = make(journal.with_name("exports.jsonl"), descriptor)
        return FollowedEngine(inner, each.before, each.after, jobs)

    return run_plans(plans, settings, PlainLines(sys.stderr), engine)


def _report(ran: Ran, each: _Each, typed: str) -> EachReport:
    from tipcheck.stage_ladder.exports import EachConfig, EachReport, worst_of

    configs: list[EachConfig] = []
    counts: dict[str, int] = {}
    for task, result in zip(ran.tasks, ran.results, strict=True):
        config = task.plan.config
        known = each.read(config) if result is not None else None
        verdict = worst_of(known.exports) if known else ""
        word = verdict or ("no export" if result is not None else "not run")
        counts[word] = counts.get(word, 0) + 1
        configs.append(
            EachConfig(
                config=config,
                outcome=result.outcome.value if result else "not run",
                verdict=verdict,
                reason=result.reason if result and not result.outcome.is_good else "",
                seconds=round(result.seconds, 3) if result else 0.0,
                verify_seconds=known.seconds if known else 0.0,
                log=str(task.log),
                report=known,
            )
        )
    good = all(result is not None and result.outcome.is_good for result in ran.results)
    return EachReport(
        run=ran.run,
        good=good,
        command=typed,
        seconds=round(ran.seconds, 3),
        counts=counts,
        configs=tuple(configs),
        interrupted_by=ran.interrupted_by,
    )


def write_status(report: EachReport, path: Path) -> None:
    """Write one line for each config that ended; older lines of other configs stay.

    Raises:
        ToolError: the file cannot be written.
    """
    from tipcheck.report.run_status import FORMATS

    ended = [one for one in report.configs if one.outcome != "not run"]
    lines = {
        one.config: FORMATS["2021"].format(
            how="successfully" if one.outcome in ("passed", "skipped") else "failed",
            command=one.config,
        )
        for one in ended
    }
    known = {
        FORMATS["2021"].format(how=how, command=config)
        for config in lines
        for how in ("successfully", "failed")
    }
    try:
        text = path.read_text("utf-8", errors="replace") if path.exists() else ""
        old = [line for line in text.splitlines() if line not in known]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in [*old, *lines.values()]), "utf-8")
    except OSError as error:
        raise ToolError(f"cannot be written: {error.strerror}", where=str(path)) from None


def _whole(report: EachReport) -> Sequence[ExportsReport]:
    """Return a report for every config, those that exported nothing too."""
    from tipcheck.stage_ladder.exports import ExportsReport

    return [
        one.report
        or ExportsReport(
            command=json.dumps(one.config),
            exit_code=1,
            good=False,
            sentence=one.reason or one.outcome,
            exports=(),
            config=one.config,
        )
        for one in report.configs
    ]
