"""Climbs the ladder for everything a command has exported."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.backends.capture.collect import collect
from tipcheck.backends.server.link import StageLink
from tipcheck.backends.subject import load_subject
from tipcheck.compare.verdict import Status
from tipcheck.errors import TipcheckError
from tipcheck.stage_ladder.climb import climb, environment_for
from tipcheck.stage_ladder.exports import ExportVerdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tipcheck.backends.capture.collect import Captured
    from tipcheck.stage_ladder.settings import Settings


class SharedLinks:
    """Stage servers that many ladders share: each kind of server imports Paddle once."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._links: dict[tuple[tuple[str, str], ...], StageLink] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> SharedLinks:  # noqa: PYI034 - typing.Self needs Python 3.11
        """Make a folder for the servers; each starts when it is first asked for."""
        name = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tipcheck-stages-"))
        self._folder = Path(name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all servers, one that is just starting too."""
        with self._lock:
            self._stack.close()

    def warm_up(self) -> None:
        """Begin to start the server that most models need, and return at once."""

        def start() -> None:
            with contextlib.suppress(TipcheckError):  # who needs it will be told why
                self.link_for(None)

        threading.Thread(target=start, daemon=True).start()

    def link_for(self, model: Path | None) -> StageLink:
        """Return the server that a model needs; it stays when the model is done."""
        env = environment_for(model)
        key = tuple(sorted(env.items()))
        with self._lock:
            if key not in self._links:
                folder = self._folder / str(len(self._links))
                folder.mkdir()
                self._links[key] = self._stack.enter_context(StageLink(folder, env))
            return self._links[key]


def verify_exports(
    folder: Path,
    command: str,
    settings: Settings,
    links: SharedLinks,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[ExportVerdict, ...]:
    """Verify what a command's saves left in a folder.

    Args:
        folder: where the captures are.
        command: as it was typed.
        settings: how; stages named there are run besides the layer itself.
        links: where stages run.
        say: told what goes on.

    Raises:
        ToolError: Paddle does not start.
    """
    return tuple(_verify(one, settings, links, say) for one in collect(folder, command))


def _verify(
    one: Captured, settings: Settings, links: SharedLinks, say: Callable[[str], None]
) -> ExportVerdict:
    if one.folder is None:
        status = Status.CRASH if one.crashed else Status.FAIL
        return ExportVerdict(one.name, status, one.problem, one.notes, one.last_lines)
    subject = load_subject(one.folder)
    if settings.stages:
        recorded = tuple(item.stage for item in subject.recorded)
        stages = tuple(dict.fromkeys((*recorded, *settings.stages)))
        settings = replace(settings, stages=stages)
    begin = time.monotonic()
    try:
        ladder = climb(
            subject,
            one.folder,
            settings,
            link=links.link_for((one.folder / subject.model).absolute()),
            say=lambda stage: say(f"{one.name}: {stage}"),
        )
    except TipcheckError as error:
        if error.exit_code != 2:
            raise
        return ExportVerdict(one.name, Status.FAIL, str(error), one.notes)
    seconds = round(time.monotonic() - begin, 3)
    sentence = ladder.sentence
    return ExportVerdict(one.name, ladder.status, sentence, one.notes, (), ladder, seconds)
