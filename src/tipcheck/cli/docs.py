"""Write the documents of a test_tipc folder from its configs and the results of their last runs.

Makes test_tipc/README.md with the overview table, and one document for each kind of test in
test_tipc/docs. Every number comes from a results.json of `tipcheck run`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_GOOD, ToolError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from tipcheck.config_plans import Plan
    from tipcheck.config_plans.profile import Profile
    from tipcheck.config_plans.text import Config
    from tipcheck.report.run_result import RunReport


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck docs``."""
    parser.add_argument(
        "configs",
        type=Path,
        nargs="+",
        metavar="CONFIG",
        help="TIPC configs, folders or patterns of them",
    )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        metavar="FILE",
        help="results.json of a run; repeatable (default: every one below test_tipc/output)",
    )
    parser.add_argument(
        "--lang",
        choices=("zh", "en", "both"),
        default="zh",
        help="language (default: %(default)s); both: zh, and en in files that end in _en.md",
    )
    parser.add_argument("--profile", metavar="P", help="read the configs with this profile")
    parser.add_argument(
        "--force", action="store_true", help="replace documents that a person has written"
    )
    parser.add_argument("--dry-run", action="store_true", help="print them, write nothing")


def run(options: argparse.Namespace) -> int:
    """Write the documents."""
    from tipcheck.cli.config_files import config_files
    from tipcheck.config_plans.find import root_of

    configs = config_files(options.configs)
    roots = {root_of(config) for config in configs}
    if len(roots) > 1:
        raise UsageError(
            "the configs belong to several repos: " + ", ".join(sorted(map(str, roots))),
            hint="write the documents of one repo at a time",
        )
    root = roots.pop()
    texts = documents(
        root, configs, results=options.results, lang=options.lang, profile=options.profile
    )
    if options.dry_run:
        for path, text in texts.items():
            sys.stdout.write(f"==> {path} <==\n{text}\n")
        return EXIT_GOOD
    for path in write_documents(root, texts, force=options.force):
        sys.stdout.write(f"wrote {path}\n")
    return EXIT_GOOD


def documents(
    root: Path,
    configs: Sequence[Path],
    *,
    results: Sequence[Path] | None,
    lang: str,
    profile: str | None = None,
) -> dict[str, str]:
    """Return the documents about some configs of a repo, by their path in it.

    Args:
        root: the repo's folder.
        configs: its configs.
        results: the files with results; those below ``test_tipc/output`` if None.
        lang: ``zh``, ``en`` or ``both``.
        profile: name of the profile to read the configs with.

    Raises:
        UsageError: a config or a results file cannot be read.
    """
    from tipcheck.report.tipc_docs import chain_of, make_documents
    from tipcheck.report.tipc_docs_words import LANGUAGES

    if lang == "both":
        second = LANGUAGES["en"], "_en"
        lang = "zh"
    else:
        second = None
    runs = _runs(root, results)
    names = dict.fromkeys(_inside(root, config) for config in configs)
    chains = [chain_of(name, _plans(root / name, profile), runs, root) for name in names]
    made = make_documents(chains, LANGUAGES[lang])
    return made | make_documents(chains, *second) if second else made


def write_documents(root: Path, texts: Mapping[str, str], *, force: bool = False) -> list[str]:
    """Write documents and return their paths.

    Raises:
        UsageError: one of them was written by a person.
        ToolError: one cannot be written.
    """
    check_documents(root, texts, force=force)
    try:
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise ToolError(
            f"cannot be written ({error.strerror})", where=str(error.filename or root)
        ) from None
    return list(texts)


def check_documents(root: Path, paths: Iterable[str], *, force: bool = False) -> None:
    """Refuse to replace what a person has written.

    Raises:
        UsageError: one of the documents is not a generated one.
        ToolError: one cannot be read.
    """
    try:
        by_hand = [path for path in paths if not _is_generated(root / path)]
    except OSError as error:
        raise ToolError(
            f"cannot be read ({error.strerror})", where=str(error.filename or root)
        ) from None
    if by_hand and not force:
        raise UsageError(
            f"{', '.join(by_hand)}: written by a person, not by tipcheck docs",
            where=str(root),
            hint="nothing was written; add --force to replace, or --dry-run to look first",
        )


def _is_generated(path: Path) -> bool:
    from tipcheck.report.tipc_docs import MARK

    return not path.exists() or path.read_text("utf-8", "replace").startswith(MARK)


def _inside(root: Path, config: Path) -> str:
    import os

    path = Path(os.path.abspath(config))  # noqa: PTH100 - resolve() would follow links
    return path.relative_to(root).as_posix()


def _plans(config: Path, profile: str | None) -> dict[str, Plan]:
    """Return the plans of a config in every mode it has values for."""
    from tipcheck.config_plans.find import profile_for, root_of
    from tipcheck.config_plans.planner import modes_with_values, plan_config
    from tipcheck.config_plans.text import read

    text = read(config)
    chosen = profile_for(text, profile)
    root = root_of(config)
    plans: dict[str, Plan] = {}
    for modes in (modes_with_values(text, chosen), chosen.modes):
        found = {mode: plan for mode in modes if (plan := _plan(text, mode, chosen, root))}
        plans = plans or {mode: plan for mode, plan in found.items() if plan.steps}
    if not plans:
        plan_config(text, chosen.modes[0], chosen, root=root)  # says what is wrong, if it can
        raise UsageError(
            "has no step to run in any mode",
            where=str(config),
            hint="tipcheck lint says what is wrong",
        )
    return plans


def _plan(text: Config, mode: str, profile: Profile, root: Path) -> Plan | None:
    """Return the plan in one mode, None where the config cannot be run in it."""
    from tipcheck.config_plans.planner import plan_config

    try:
        return plan_config(text, mode, profile, root=root)
    except UsageError:
        return None


def _runs(root: Path, results: Sequence[Path] | None) -> list[RunReport]:
    from tipcheck.report.run_files import EVERY_RESULTS
    from tipcheck.report.tipc_docs_results import read_results

    if results is None:
        results = sorted((root / "test_tipc" / "output").rglob(EVERY_RESULTS))
    return [read_results(path) for path in results]
