"""The documents of a ``test_tipc`` folder: an overview, and one page for each kind of test.

They are made from plans and from the results of a run, so that what they print is what runs: the
commands come from the plans, every number from ``results.json``. The first line marks a document as
generated; one without it was written by a person and is not replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shlex import join, quote
from typing import TYPE_CHECKING

from tipcheck.config_plans import Plan
from tipcheck.report.run_result import RunReport, StepReport
from tipcheck.report.tipc_docs_results import steps_of

if TYPE_CHECKING:
    from tipcheck.report.tipc_docs_words import Words

MARK = "<!-- made by tipcheck docs -->"
FOLDER = "test_tipc"
STAGES = ("train", "eval", "export", "infer")
_KIND = re.compile(r"train_(?:(\w+)_)?infer_python")


@dataclass(frozen=True, slots=True)
class Chain:
    """One config as a document sees it.

    Attributes:
        config: its path relative to the repo, with slashes.
        plans: its plans by mode, the mode to show first.
        results: how its steps went, none if it was not run.
        started: when that run began.
    """

    config: str
    plans: Mapping[str, Plan]
    results: tuple[StepReport, ...] = ()
    started: str = ""

    @property
    def mode(self) -> str:
        """The mode that the document shows."""
        return next(iter(self.plans))

    @property
    def plan(self) -> Plan:
        """The plan of that mode."""
        return self.plans[self.mode]

    @property
    def kind(self) -> str:
        """What is tested, from the name of the config: ``amp``, or nothing for the normal one."""
        stem = PurePosixPath(self.config).stem
        match = _KIND.fullmatch(stem)
        return (match[1] or "") if match else stem

    @property
    def page(self) -> str:
        """The document it belongs to, relative to the folder of the documents."""
        return page_of(self.config)


def page_of(config: str) -> str:
    """Return the name of the document that a config belongs to."""
    stem = PurePosixPath(config).stem
    match = _KIND.fullmatch(stem)
    if not match:
        return f"test_{stem}.md"
    return f"test_train_{match[1] + '_' if match[1] else ''}inference_python.md"


def chain_of(
    config: str, plans: Mapping[str, Plan], runs: Sequence[RunReport], root: Path
) -> Chain:
    """Return a config with the results of its last run; the mode of that is the one to show."""
    ran = [(run.started, found) for run in runs if (found := steps_of(run, config, root))]
    started, steps = max(ran, key=lambda pair: pair[0], default=("", ()))
    mode = next((step.mode for step in steps if step.mode in plans), "")
    order = sorted(plans, key=lambda name: name != mode)
    return Chain(
        config,
        {name: plans[name] for name in order},
        tuple(step for step in steps if step.mode == mode),
        started if mode else "",
    )


def make_documents(chains: Sequence[Chain], words: Words, suffix: str = "") -> dict[str, str]:
    """Return the documents as texts by their path relative to the repo.

    Args:
        chains: what they are about.
        words: of their language.
        suffix: put behind every name, so that a second language can stand beside the first.
    """
    pages: dict[str, list[Chain]] = {}
    for chain in chains:
        pages.setdefault(chain.page, []).append(chain)
    texts = {f"{FOLDER}/{_named('README.md', suffix)}": _overview(chains, words, suffix)}
    for name, members in pages.items():
        texts[f"{FOLDER}/docs/{_named(name, suffix)}"] = _page(members, words)
    return texts


def _named(name: str, suffix: str) -> str:
    return f"{name.removesuffix('.md')}{suffix}.md"


def _overview(chains: Sequence[Chain], words: Words, suffix: str) -> str:
    rows = [
        [
            _cell(chain.plan.model_name),
            _cell(words.test.get(chain.kind, chain.kind)),
            *(_state(chain, stage, words) for stage in STAGES),
            f"[{words.document}](docs/{_named(chain.page, suffix)})",
        ]
        for chain in chains
    ]
    parts = [
        MARK,
        f"# {words.overview}",
        words.overview_about,
        f"## {words.overview_table}",
        _table(words.columns, rows),
        words.legend,
        _source(chains, words),
        f"## {words.how}",
        words.how_about,
        *(_commands(chain, chain.mode) for chain in chains),
        f"## {words.files}",
        "\n".join(words.item.format(name=name, about=about) for name, about in words.files_about),
    ]
    return _joined(parts)


def _page(chains: Sequence[Chain], words: Words) -> str:
    kind = chains[0].kind
    parts = [
        MARK,
        f"# {words.test.get(kind, kind)}",
        words.about.get(kind, words.overview_about),
        f"## 1. {words.summary}",
        _table(
            (words.columns[0], *words.columns[2:6]),
            [
                [_cell(chain.plan.model_name), *(_state(chain, s, words) for s in STAGES)]
                for chain in chains
            ],
        ),
        words.legend,
        _source(chains, words),
        f"## 2. {words.prepare}",
        words.prepare_about,
        *(_block([_prepare(chain, chain.mode)]) for chain in chains),
        f"## 3. {words.start}",
        words.how_about,
    ]
    for chain in chains:
        for mode in chain.plans:
            told = words.start_about.format(mode=mode, about=words.modes.get(mode, mode))
            parts += [told, _commands(chain, mode)]
    parts += [words.more, *(_block([_look(chain)]) for chain in chains), f"## 4. {words.steps}"]
    for chain in chains:
        parts += [words.steps_about.format(mode=chain.mode, config=chain.config)]
        parts += [_steps(chain, words)]
    parts += [f"## 5. {words.results}"]
    for chain in chains:
        parts += _measured(chain, words)
    return _joined(parts)


def _measured(chain: Chain, words: Words) -> list[str]:
    if not chain.results:
        return [words.results_missing.format(config=chain.config)]
    parts = [
        words.place.format(config=chain.config, mode=chain.mode, started=chain.started),
        _table(words.results_columns, [_row(step, words) for step in chain.results]),
    ]
    timed = [step for step in chain.results if step.autolog is not None]
    if timed:
        parts += [f"**{words.speed}**"]
        parts += [_table(words.speed_columns, [_speed(step, words) for step in timed])]
    bad = [step for step in chain.results if not _is_good(step)]
    if bad:
        lines = [f"- `{step.step}`: {_cell(step.reason) or words.none}" for step in bad]
        parts += [f"**{words.failures}**", "\n".join(lines)]
    return parts


def _row(step: StepReport, words: Words) -> list[str]:
    memory = step.peak_memory_bytes
    outcome = step.outcome.value if step.outcome else ""
    ran = outcome not in ("", "blocked", "skipped")
    return [
        _code(step.step),
        words.outcomes.get(outcome, outcome),
        f"{step.seconds:.1f}" if ran else words.none,
        words.none if memory is None else f"{memory / 1e6:.1f}",
        _code(step.log) if step.log else words.none,
    ]


def _speed(step: StepReport, words: Words) -> list[str]:
    log = step.autolog
    if log is None:
        return []
    numbers = (
        log.batch_size, log.preprocess_ms, log.inference_ms, log.postprocess_ms, log.cpu_rss_mb,
        log.gpu_rss_mb,
    )  # fmt: skip
    return [
        _code(step.step),
        _cell(log.runtime_device) or words.none,
        _cell(log.precision) or words.none,
        *(words.none if number is None else f"{number:g}" for number in numbers),
    ]


def _state(chain: Chain, stage: str, words: Words) -> str:
    planned = [step for step in chain.plan.steps if step.stage == stage]
    if not planned:
        return words.none
    ran = [step for step in chain.results if step.stage == stage]
    if not ran:
        return "⬜"
    good = sum(1 for step in ran if _is_good(step))
    total = max(len(planned), len(ran))
    return f"{'✅' if good == total else '❌'} {good}/{total}"


def _is_good(step: StepReport) -> bool:
    return step.outcome is not None and step.outcome.is_good


def _steps(chain: Chain, words: Words) -> str:
    rows = [
        [
            _code(step.id),
            words.stages.get(step.stage, step.stage),
            _code(join(step.argv)),
            _code(step.log),
        ]
        for step in chain.plan.steps
    ]
    return _table(words.step_columns, rows)


def _prepare(chain: Chain, mode: str) -> str:
    return f"bash {FOLDER}/prepare.sh {quote(chain.config)} {mode}"


def _look(chain: Chain) -> str:
    return f"tipcheck plan {quote(chain.config)} --mode {chain.mode}"


def _commands(chain: Chain, mode: str) -> str:
    config = quote(chain.config)
    run = f"bash {FOLDER}/test_train_inference_python.sh {config} {mode}"
    return _block([_prepare(chain, mode), run])


def _source(chains: Sequence[Chain], words: Words) -> str:
    started = max(chain.started for chain in chains)
    return words.from_results.format(started=started) if started else words.not_run


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["```bash", *lines, "```"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Return a text that cannot end its cell or become markup."""
    flat = " ".join(text.split())
    return re.sub(r"([\\|<>`*_\[\]])", r"\\\1", flat)


def _code(text: str) -> str:
    """Return a text as code inside a table."""
    flat = " ".join(text.split()).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    pad = " " if "`" in flat else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"
