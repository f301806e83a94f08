"""What every engine promises: jobs go in, ends come out, and nothing stays behind.

The scheduler decides *when* a step runs; an engine knows only *how*. ``local`` starts a process for
each job, ``warm`` forks one that has imported paddle already, a cluster engine sends the job
elsewhere. All of them give the same ends and the same logs for the same jobs, which is what the
contract test checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

DEFAULT_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""

DEFAULT_LOG_LIMIT = 100 * 1024 * 1024
"""Bytes of output that one log keeps."""


@dataclass(frozen=True, slots=True)
class Job:
    """One step, ready to be started: nothing is left to look up.

    Attributes:
        key: the caller's name for it; it comes back in the ``End``.
        argv: program and arguments, exactly as the process receives them.
        env: the whole environment of the process.
        cwd: absolute working directory.
        log: absolute path of the log; its folder is made when missing.
        limit: seconds it may run, or None.
        grace: seconds between SIGTERM and SIGKILL when it is ended.
        log_limit: bytes of output that its log keeps.
        attempt: number of the ledger's attempt, so that an end whose tool was killed is not lost.
        chain: jobs with the same word here work on the same files.
        gpus: GPU slots it uses.
        quantised: whether the model that it exports has to have a quantised op.
    """

    key: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    log: str
    limit: float | None = None
    grace: float = DEFAULT_GRACE
    log_limit: int = DEFAULT_LOG_LIMIT
    attempt: int = 0
    chain: str = ""
    gpus: tuple[str, ...] = ()
    quantised: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """How one job ended, as the operating system tells it.

    Attributes:
        key: of the job.
        attempt: of the job.
        exit_code: what the process returned, or None when it died on a signal or never started.
        signal: number of the signal it died on, or None.
        trouble: why nothing is known of the process: it could not be started, or its watcher died.
        cut: why it was ended from outside: ``""``, ``"timeout"`` or ``"stopped"``.
        seconds: wall time of its main process.
        peak_memory_bytes: of all its processes together, or None when nothing was measured.
        hollow: why it tested nothing of what it was for, in its own words; empty when it did.
        left_behind: processes it left running, which were ended.
        log_note: what is special about its log (cut to its limit, disk full), or an empty text.
        last_words: the end of its output, where a full disk kept it from the log.
    """

    key: str
    attempt: int = 0
    exit_code: int | None = None
    signal: int | None = None
    trouble: str = ""
    cut: str = ""
    seconds: float = 0.0
    peak_memory_bytes: int | None = None
    hollow: str = ""
    left_behind: int = 0
    log_note: str = ""
    last_words: str = ""

    @property
    def interrupted(self) -> bool:
        """Whether it was ended because the run stops: it has no outcome and runs again."""
        return self.cut == "stopped"


class Engine(Protocol):
    """Starts jobs and tells how they ended.

    Whoever makes an engine gives it as a context manager. Leaving it ends every job that still
    runs, at once, together with everything those jobs have started.
    """

    @property
    def name(self) -> str:
        """The word that ``--engine`` takes."""
        ...

    def start(self, job: Job) -> None:
        """Begin a job; returns before the job ends."""
        ...

    def wait(self, timeout: float) -> Sequence[End]:
        """Return the jobs that have ended, after at most ``timeout`` seconds."""
        ...

    def stop(self) -> None:
        """Ask every running job to end: SIGTERM, then SIGKILL after the job's grace period."""
        ...
