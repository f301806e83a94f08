"""Make the test_tipc folder of a model repo: configs, scripts and documents.

Looks at the repo first (its scripts are read, never run) and says what it found. Asks where
standard input is a terminal; else, and with --yes, it goes by the flags and by what it found.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, TipcheckError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from tipcheck.config_plans.scaffold.lines import Configs
    from tipcheck.config_plans.scaffold.look import Repo, Wishes
    from tipcheck.config_plans.scaffold.tree import Tree

_TEXTS = {
    "model-name": ("NAME", "name of the model (default: the folder's)"),
    "train": ("COMMAND", "training script, with arguments if it needs any"),
    "eval": ("COMMAND", "evaluation command, null for none"),
    "export": ("COMMAND", "export command, null for none"),
    "infer": ("COMMAND", "inference command, null for none"),
    "python": ("PYTHON", "interpreter in the configs (default: python3)"),
    "gpu-list": ("LIST", "such as 0|0,1, or -1 for the CPU (default: what this machine has)"),
    "epochs": ("N", "epochs of the small run, or MODE=N|MODE=N"),
    "batch-size": ("N", "batch size of the small run, or MODE=N|MODE=N"),
    "weight-name": ("FILE", "weights that the training leaves in its output folder"),
    "data-path": ("DIR", "folder of the data (default: ./lite_data)"),
    "images": ("PATH", "input of the inference"),
    "amp-args": ("ARGS", "what turns on mixed precision, such as --amp_level=O2"),
    "pact-args": ("ARGS", "what turns on PACT quantisation, such as --pact_quant"),
}
_QUESTIONS = {
    "model_name": "name of the model",
    "train": "training script, with its arguments",
    "eval": "evaluation command, null for none",
    "export": "export command, null for none",
    "infer": "inference command, null for none",
    "python": "interpreter",
    "gpu_list": "GPUs, -1 for the CPU",
    "data_path": "folder of the small data set",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck init``."""
    parser.add_argument(
        "repo", type=Path, nargs="?", default=Path(), metavar="REPO", help="(default: this folder)"
    )
    for name, (metavar, about) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=about)
    parser.add_argument(
        "--configs",
        metavar="LIST",
        default="",
        help="which of normal,amp,pact (default: all that the training script has options for)",
    )
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="ROLE=OPTION",
        help="name of an option that was not seen, such as epochs=--max_epoch; repeatable",
    )
    parser.add_argument(
        "--lang",
        choices=("zh", "en"),
        default="zh",
        help="language of the documents (default: %(default)s)",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--force", action="store_true", help="overwrite files that differ")
    parser.add_argument("--dry-run", action="store_true", help="show the files, write nothing")


def run(options: argparse.Namespace) -> int:
    """Lay down the folder."""
    from tipcheck.cli.docs import check_documents
    from tipcheck.config_plans.scaffold.lines import write_configs
    from tipcheck.config_plans.scaffold.look import look
    from tipcheck.config_plans.scaffold.tree import make_tree

    root = options.repo.absolute()
    repo = look(root, _wishes(options))
    if sys.stdin.isatty() and not options.yes:
        _tell(repo.notes)
        repo = look(root, _ask(repo, _wishes(options)))
    configs = write_configs(repo)
    _tell((*repo.notes, *configs.notes))
    tree = make_tree(repo, configs)
    pages = _pages(configs)
    if options.dry_run:
        return _show(tree, configs, pages)
    check_documents(root, pages, force=options.force)
    for path in tree.write(force=options.force):
        sys.stdout.write(f"wrote {path}\n")
    _write_documents(repo, options)
    return _lint(repo, configs)


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        sys.stdout.write(f"{note if note.startswith('!') else '  ' + note}\n")


def _wishes(options: argparse.Namespace) -> Wishes:
    from tipcheck.config_plans.scaffold.look import Wishes

    keys = {}
    for text in options.key:
        role, equals, flag = text.partition("=")
        if not equals or not flag:
            raise UsageError(f"--key {text!r} names no option", hint="write --key ROLE=OPTION")
        keys[role] = flag
    texts = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in _TEXTS}
    kinds = tuple(kind.strip() for kind in options.configs.split(",") if kind.strip())
    return Wishes(configs=kinds, keys=keys).with_texts(texts)


def _ask(repo: Repo, wishes: Wishes) -> Wishes:
    """Ask for what was not given by a flag, with what was found as the answer to Enter."""
    from tipcheck.config_plans.scaffold.look import look

    found = {
        "model_name": repo.model_name,
        "train": repo.command("train"),
        "export": repo.command("export"),
        "infer": repo.command("infer"),
        "python": "python3",
        "gpu_list": repo.gpu_list,
        "data_path": repo.data_path,
    }
    answers = {
        name: _answer(_QUESTIONS[name], value)
        for name, value in found.items()
        if getattr(wishes, name) is None
    }
    wishes = wishes.with_texts(answers)
    if wishes.eval is None:  # follows from the answers
        command = look(repo.root, wishes).command("eval")
        wishes = wishes.with_texts({"eval": _answer(_QUESTIONS["eval"], command)})
    return wishes


def _answer(about: str, found: str) -> str:
    try:
        return input(f"{about} [{found}]: ").strip() or found
    except EOFError:
        return found


def _pages(configs: Configs) -> list[str]:
    """Return the documents that will be written about the configs."""
    from tipcheck.report.tipc_docs import page_of

    return ["test_tipc/README.md", *(f"test_tipc/docs/{page_of(name)}" for name in configs.texts)]


def _show(tree: Tree, configs: Configs, pages: list[str]) -> int:
    different, new = tree.different(), tree.new()
    for path, text in tree.texts.items():
        state = "differs" if path in different else ("new" if path in new else "same")
        sys.stdout.write(f"{state}: {path}\n")
        if Path(path).name in configs.texts:
            sys.stdout.write("".join(f"    {line}\n" for line in text.splitlines()))
    for path in pages:
        sys.stdout.write(f"made from the configs: {path}\n")
    sys.stdout.write("nothing was written\n")
    return EXIT_GOOD


def _write_documents(repo: Repo, options: argparse.Namespace) -> None:
    """Write the documents about every config of the repo that can be read."""
    from tipcheck.cli.docs import documents, write_documents

    found = sorted(
        (repo.root / "test_tipc" / "configs").glob("*/train*infer_python.txt"),
        key=lambda path: (path.parent.name, len(path.name), path.name),  # the normal one first
    )
    configs = [path for path in found if _is_readable(repo.root, path)]
    if not configs:
        return
    texts = documents(repo.root, configs, results=None, lang=options.lang)
    for path in write_documents(repo.root, texts, force=options.force):
        sys.stdout.write(f"wrote {path}\n")


def _is_readable(root: Path, config: Path) -> bool:
    """Whether a config makes a plan; says why not."""
    from tipcheck.cli.docs import documents

    try:
        documents(root, [config], results=[], lang="en")
    except TipcheckError as error:
        sys.stdout.write(f"! not in the documents: {error}\n")
        return False
    return True


def _lint(repo: Repo, configs: Configs) -> int:
    """Say whether what was written is sound, and what comes next."""
    from tipcheck.config_plans.lint import lint

    folder = repo.root / "test_tipc" / "configs" / repo.model_name
    errors = 0
    for name in configs.texts:
        for finding in lint(folder / name):
            if finding.level == "error":
                errors += 1
                sys.stdout.write(f"! {name}:{finding.line or ''} {finding.message}\n")
    if errors:
        return EXIT_CHECK_FAILED
    first = f"test_tipc/configs/{repo.model_name}/{next(iter(configs.texts))}"
    data = configs.data_path.rstrip("/")
    if data != "null" and not (repo.root / data).exists():
        sys.stdout.write(
            f"the data is not there yet: tipcheck lite-data SOURCE {data} --train 16 --val 16\n"
        )
    sys.stdout.write(f"next: bash test_tipc/prepare.sh {first} lite_train_lite_infer\n")
    return EXIT_GOOD
