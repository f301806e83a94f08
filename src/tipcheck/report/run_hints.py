"""Known causes of failed steps, as data: what the log says, what it means, what to type.

A hint is looked for in the step's reason first and then in the end of its log; the first of the
list that matches is shown. ``{0}`` in the advice stands for what the pattern's first group caught.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hint:
    """One known cause.

    Attributes:
        pattern: regular expression to look for, case ignored.
        cause: what it means.
        advice: what to type or do.
    """

    pattern: str
    cause: str
    advice: str

    def fill(self, match: re.Match[str]) -> str:
        """Return the hint in words, for one place where its pattern matched."""
        caught = [group or "" for group in match.groups()]
        return f"{self.cause}: {self.advice.format(*caught)}"


HINTS: tuple[Hint, ...] = (
    Hint(
        r"inference\.pdmodel\b.*(?:not exist|no such file|cannot open|not found)"
        r"|(?:no such file|cannot open|not found|failed to open)\b.*\.pdmodel\b",
        "Paddle 3 exports inference.json, the script wants inference.pdmodel",
        "add --legacy-ir",
    ),
    Hint(
        r"cannot start (python[\w.]*): command not found",
        "the config's interpreter is not installed here",
        "add --python python3 (or the path of another one)",
    ),
    Hint(
        r"cannot start ([^:\s]+): command not found",
        "the program is not on PATH",
        "install {0}, or give --env PATH=...",
    ),
    Hint(
        r"cannot start (\S*python[\w.]*): No such file or directory",
        "this interpreter does not exist",
        "give --python another path than {0}",
    ),
    Hint(
        r"cannot start ([^:]+): No such file or directory",
        "the program, or the interpreter in its first line, does not exist",
        "look at {0}, and at its first line",
    ),
    Hint(
        r"pyenv: ([\w.]+): command not found",
        "the config's interpreter is not installed here",
        "add --python python3 (or the path of another one)",
    ),
    Hint(
        r"not compiled with (?:CUDA|GPU)|CUDA (?:is )?not compiled in|compiled without CUDA"
        r"|cannot use GPU.*(?:not|CPU) (?:compiled|only)|only CPU version",
        "this PaddlePaddle has no CUDA",
        "add --device cpu",
    ),
    Hint(
        r"no CUDA-capable device|CUDA driver version is insufficient|cudaErrorNoDevice"
        r"|Failed to get device count|libcuda\.so",
        "no usable GPU on this machine",
        "add --device cpu",
    ),
    Hint(
        r"out of memory error on GPU|CUDA out of memory|ResourceExhausted|cudaErrorMemoryAlloc",
        "the GPU's memory does not suffice",
        "use a smaller batch size in the config, or --jobs 1",
    ),
    Hint(
        r"out-of-memory killer|MemoryError|cannot allocate memory|std::bad_alloc",
        "the machine's memory does not suffice",
        "run fewer steps at a time (--jobs 1), or use a smaller batch size in the config",
    ),
    Hint(
        r"No module named ['\"]?([\w.]+)",
        "a Python package is missing",
        "install what provides {0} for this interpreter, or choose another one with --python",
    ),
    Hint(
        r"only (?:0-dimensional|length-1|size-1) arrays can be converted to Python scalars",
        "NumPy 2.4 no longer turns a tensor of shape [1] into a number",
        'pip install "numpy<2.4"',
    ),
    Hint(
        r"unrecognized arguments?:? (\S+)",
        "the script does not know an option of the config",
        "look for {0} in the config: tipcheck lint CONFIG",
    ),
    Hint(
        r"No space left on device|disk full|Disk quota exceeded",
        "the disk is full",
        "make room and give the same command again; it goes on from here",
    ),
    Hint(
        r"Address already in use",
        "two distributed trainings want the same port",
        "add --jobs 1",
    ),
    Hint(
        r"ended after its time limit",
        "it was still running when its time was over",
        "allow more with --timeout STAGE=SECONDS, and see its log for what it was doing",
    ),
    Hint(
        r"died on SIGILL|illegal instruction",
        "this processor lacks an instruction that the program uses",
        "install a PaddlePaddle built for it (without AVX)",
    ),
    Hint(
        r"lib(?:cudnn|cublas|cudart|nvinfer)[\w.]*: cannot open shared object",
        "a CUDA library is missing",
        "install it, or add --device cpu",
    ),
    Hint(
        r"does not accept a command line this long",
        "an argument exceeds what Linux accepts",
        "shorten the value in the config, or put it into a file",
    ),
    Hint(
        r"cannot enter its working directory (\S+)",
        "the command is not run in the model repo",
        "run tipcheck in the repo's root, where {0} is",
    ),
    Hint(
        r"can't open file '?([^':]+)'?",
        "the script is not where the config says",
        "run tipcheck in the repo's root, and look for {0}",
    ),
    Hint(
        r"No such file or directory:? ?'?([^'\s]+)?",
        "a file is missing, often data or weights",
        "prepare the data as the repo says (its prepare.sh); missing: {0}",
    ),
    Hint(
        r"Exec format error",
        "the program is no executable for this machine, or a script without a first line #!",
        "name its interpreter in the config, such as: bash script.sh",
    ),
    Hint(
        r"permission denied",
        "a file may not be read, written or started",
        "look at its owner and mode",
    ),
)

_COMPILED = tuple((re.compile(hint.pattern, re.IGNORECASE), hint) for hint in HINTS)


def find_hint(reason: str, log_tail: str) -> str:
    """Return the hint for a failure, or an empty text when its cause is not known."""
    for text in (reason, log_tail):
        for pattern, hint in _COMPILED:
            match = pattern.search(text)
            if match:
                return hint.fill(match)
    return ""
