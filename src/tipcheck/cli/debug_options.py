"""The options of ``tipcheck debug``, and the question they make."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from tipcheck.backends.tracing.run_modes import ModeSettings
    from tipcheck.blame.choice import Choice
    from tipcheck.blame.question import Question, Sample

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([kmg]?)i?b?$", re.IGNORECASE)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all of them, in groups."""
    parser.add_argument(
        "model", nargs="?", type=Path, metavar="MODEL", help="the exported .json or .pdmodel file"
    )
    parser.add_argument("--model_file", "--model-file", type=Path, help="the same, by name")
    parser.add_argument(
        "--params_file", "--params-file", type=Path, help="its parameters, where they lie elsewhere"
    )
    parser.add_argument(
        "--run-mode",
        "--run_mode",
        default="onednn_fp32",
        metavar="MODE",
        help="how to run it, such as onednn_bf16 or trt_fp16 (default: onednn_fp32)",
    )
    _add_baseline(parser.add_argument_group("the baseline"))
    _add_inputs(parser.add_argument_group("inputs"))
    _add_choice(parser.add_argument_group("which tensors"))
    _add_output(parser.add_argument_group("what comes out"))
    _add_tensorrt(parser.add_argument_group("TensorRT"))


def _add_baseline(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--baseline",
        default="",
        metavar="MODE|FILE.npz",
        help="another run mode, or a golden file (default: no optimisation, float32, same device)",
    )
    group.add_argument(
        "--baseline-model", type=Path, metavar="PATH", help="another export of the model"
    )
    group.add_argument("--baseline-params", type=Path, metavar="PATH", help="its parameters")
    group.add_argument(
        "--save-golden",
        type=Path,
        metavar="FILE.npz",
        help="record the baseline's tensors, for other versions and machines",
    )


def _add_inputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--input",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="an .npz file, a picture, or a folder of them; may be repeated",
    )
    group.add_argument(
        "--samples", type=int, default=0, metavar="N", help="how many samples (default: 1 drawn)"
    )
    group.add_argument("--seed", type=int, default=0, help="of drawn inputs")
    group.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=2,3,224,224",
        help="shape of a drawn input; may be repeated",
    )
    group.add_argument(
        "--preprocess", metavar="MODULE:FUNCTION", help="makes an array out of a picture's path"
    )


def _add_choice(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tensors",
        default="all",
        metavar="all|fused|FILE",
        help="all, only outputs of fused ops, or those named in a file (engine_info_*.json too)",
    )
    group.add_argument(
        "--between", nargs=2, metavar=("FIRST", "LAST"), help="from one tensor to another"
    )
    group.add_argument("--op-type", action="append", default=[], metavar="TYPE", help="by op type")
    group.add_argument("--layer", action="append", default=[], metavar="PATH", help="by layer path")
    group.add_argument(
        "--pattern", action="append", default=[], metavar="GLOB", help="by name of the tensor"
    )
    group.add_argument(
        "--every", type=int, default=1, metavar="K", help="every k-th, then those before a bad one"
    )
    group.add_argument(
        "--memory",
        default="",
        metavar="SIZE",
        help="for tensors on their way, beside the executions; such as 2GB",
    )
    group.add_argument(
        "--no-replay", action="store_true", help="do not compute introduced errors (blames nobody)"
    )
    group.add_argument(
        "--check", default="", metavar="MODULE:FUNCTION", help="your own check of every pair"
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--xlsx", type=Path, metavar="FILE", help="(default: output.xlsx when no file is asked for)"
    )
    group.add_argument("--json", type=Path, metavar="FILE", help="everything, with a schema")
    group.add_argument("--csv", type=Path, metavar="FILE", help="the rows of the spreadsheet")
    group.add_argument(
        "--rows", choices=["all", "bad", "none"], default="all", help="on the terminal"
    )
    group.add_argument("--rtol", type=float, help="tolerance of a row (default: by dtype)")
    group.add_argument("--atol", type=float, help="tolerance of a row (default: by dtype)")
    group.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=["suspect"],
        help="exit 0 on this verdict too",
    )


def _add_tensorrt(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--calibration", default="", metavar="PATH", help="samples for trt_int8 without scales"
    )
    group.add_argument("--shape-file", default="", metavar="FILE", help="collected shapes")
    group.add_argument(
        "--mark", action="append", default=[], metavar="NAME", help="a tensor to keep visible"
    )


def question_of(options: argparse.Namespace, folder: Path) -> Question:
    """Return the question that the options ask; files that have to be made go into a folder."""
    from tipcheck.backends.inputs.samples import load_function
    from tipcheck.backends.tracing.run_modes import DYGRAPH, check_mode
    from tipcheck.blame.question import Question
    from tipcheck.compare import Rules

    model = _model(options)
    check_mode(options.run_mode)
    golden = options.baseline.endswith(".npz")
    layer = options.baseline == DYGRAPH
    if layer and options.baseline_model is None:
        hint = "give --baseline-model FILE.py:NAME, a function that returns it"
        raise UsageError("which layer?", where="--baseline dygraph", hint=hint)
    if options.baseline and not golden:
        check_mode(options.baseline)
    return Question(
        model=model,
        run_mode=options.run_mode,
        samples=() if golden else samples_of(options, model, folder),
        baseline="" if golden else options.baseline,
        baseline_model=options.baseline_model
        if layer
        else _checked(options.baseline_model, options.baseline_params),
        settings=settings_of(options),
        baseline_settings=_baseline_settings(options),
        choice=choice_of(options),
        memory=size_of(options.memory),
        replay=not options.no_replay,
        rules=Rules(rtol=options.rtol, atol=options.atol),
        check=load_function(options.check) if options.check else None,
        golden=Path(options.baseline) if golden else None,
    )


def _model(options: argparse.Namespace) -> Path:
    if options.model and options.model_file:
        raise UsageError("the model was given twice", hint="give MODEL or --model_file")
    model: Path | None = options.model or options.model_file
    if model is None:
        raise UsageError("which model?", hint="type `tipcheck debug MODEL.json`")
    found = _checked(model, options.params_file)
    assert found is not None  # noqa: S101 - it was given
    return found


def _checked(model: Path | None, params: Path | None) -> Path | None:
    """Return an exported model that is there and whole, as far as its files show."""
    from tipcheck.backends.exports.parameters import check_export

    if model is None:
        return None
    if model.is_dir():
        inside = [model / "inference.json", model / "inference.pdmodel"]
        model = next((file for file in inside if file.is_file()), model)
    if not model.suffix and not model.is_file():
        beside = [model.with_suffix(".json"), model.with_suffix(".pdmodel")]
        model = next((file for file in beside if file.is_file()), model)
    if model.suffix == ".onnx":
        return model
    check_export(model, params)
    return model


def samples_of(options: argparse.Namespace, model: Path, folder: Path) -> tuple[Sample, ...]:
    """Return the samples: the user's, or drawn ones."""
    from tipcheck.backends.exports.program import read_program
    from tipcheck.backends.inputs.samples import drawn, given, load_function
    from tipcheck.blame.question import Sample

    specs = read_program(model).inputs
    if options.samples < 0:
        raise UsageError(f"--samples {options.samples} is not a count", hint="give 1 or more")
    if options.input:
        prepare = load_function(options.preprocess) if options.preprocess else None
        found = given(options.input, specs, folder, prepare=prepare, limit=options.samples)
        return tuple(Sample(name, file) for name, file in found)
    shapes = dict(_shape(text) for text in options.shape)
    files = drawn(specs, folder, count=options.samples or 1, seed=options.seed, shapes=shapes)
    return tuple(Sample(f"seed {options.seed + at}", file) for at, file in enumerate(files))


def _shape(text: str) -> tuple[str, list[int]]:
    name, _, lengths = text.rpartition("=")
    try:
        return name, [int(length) for length in lengths.split(",")]
    except ValueError:
        raise UsageError(
            f"--shape {text} is no shape", hint="write it as --shape NAME=2,3,224,224"
        ) from None


def settings_of(options: argparse.Namespace) -> ModeSettings:
    """Return what the run mode is told."""
    from tipcheck.backends.tracing.run_modes import ModeSettings

    return ModeSettings(
        params=str(options.params_file.absolute()) if options.params_file else "",
        calibration=_from_here(options.calibration),
        shape_file=_from_here(options.shape_file),
        marked=tuple(options.mark),
    )


def _from_here(path: str) -> str:
    """Return a path as workers can use it, which stand in folders of their own."""
    return str(Path(path).absolute()) if path else ""


def _baseline_settings(options: argparse.Namespace) -> ModeSettings:
    from tipcheck.backends.tracing.run_modes import ModeSettings

    params = options.baseline_params
    if params is None and options.baseline_model is None:
        params = options.params_file
    return ModeSettings(params=str(params.absolute()) if params else "")


def choice_of(options: argparse.Namespace) -> Choice:
    """Return which tensors to look at."""
    from tipcheck.blame.choice import Choice, read_names

    names: tuple[str, ...] = ()
    if options.tensors not in ("all", "fused"):
        path = Path(options.tensors)
        try:
            names = read_names(path.read_text(encoding="utf-8"), engine=path.suffix == ".json")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            told = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot be read as names of tensors ({told})",
                where=str(path),
                hint="give all, fused, or a file with one name a line",
            ) from None
        if not names:
            raise UsageError("names no tensor", where=str(path), hint="one name a line")
    return Choice(
        fused=options.tensors == "fused",
        between=tuple(options.between) if options.between else None,
        op_types=tuple(options.op_type),
        layers=tuple(options.layer),
        patterns=tuple(options.pattern),
        names=names,
        every=options.every,
    )


def size_of(text: str) -> int:
    """Return bytes; 0 when nothing was said."""
    if not text:
        return 0
    found = _SIZE.match(text.strip())
    if not found:
        raise UsageError(f"--memory {text} is no size", hint="write it as 2GB or 500MB")
    return int(float(found[1]) * _UNITS[found[2].lower()])
