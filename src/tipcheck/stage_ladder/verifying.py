"""From what a user names to the verdict on it: one export, or one layer that a worker can make."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.backends.server.link import StageLink
from tipcheck.errors import UsageError
from tipcheck.stage_ladder.climb import climb, environment_for
from tipcheck.stage_ladder.lineup import check_names
from tipcheck.stage_ladder.request import (
    InputRequest,
    find_export,
    is_source,
    subject_in_folder,
    subject_of_export,
    subject_of_source,
)
from tipcheck.stage_ladder.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tipcheck.stage_ladder.rung import LadderResult


def verify_target(
    target: str,
    request: InputRequest | None = None,
    settings: Settings | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
) -> LadderResult:
    """Verify an exported model, a layer by ``module:factory``, or a folder with a subject.

    Raises:
        UsageError: the target, an input or a name cannot be used as it is.
        ToolError: Paddle does not start.
    """
    request, settings = request or InputRequest(), settings or Settings()
    if bool(request.images) != bool(request.preprocess):
        raise UsageError("a folder of images and a preprocessing function belong together")
    if request.images and not Path(request.images).is_dir():
        raise UsageError("is no folder", where=request.images)
    check_names(settings.stages)
    path = [os.getcwd()]  # noqa: PTH109 - as a user's own python would look
    if is_source(target):
        return _verify_source(target, request, settings, path, say)
    folder = Path(target)
    subject = subject_in_folder(folder) if folder.is_dir() else None
    if subject is not None:
        return climb(subject, folder, settings, path=path, say=say)
    model = find_export(folder).absolute()
    request = _absolute(request)
    with tempfile.TemporaryDirectory(prefix="tipcheck-verify-") as name:
        room = Path(name)
        if not request.needs_worker:
            subject = subject_of_export(model, request, room, None, path)
            return climb(subject, room, settings, path=path, say=say)
        with StageLink(room, environment_for(model)) as link:
            subject = subject_of_export(model, request, room, link, path)
            return climb(subject, room, settings, path=path, link=link, say=say)


def _verify_source(
    source: str,
    request: InputRequest,
    settings: Settings,
    path: list[str],
    say: Callable[[str], None],
) -> LadderResult:
    with tempfile.TemporaryDirectory(prefix="tipcheck-verify-") as folder:
        room = Path(folder)
        with StageLink(room) as link:
            say("export")
            subject = subject_of_source(
                source, _absolute(request), room, link, path, settings.time_limit
            )
            if not subject.model.endswith(".pdmodel"):
                return climb(subject, room, settings, path=path, link=link, say=say)
        return climb(subject, room, settings, path=path, say=say)


def _absolute(request: InputRequest) -> InputRequest:
    images = str(Path(request.images).absolute()) if request.images else ""
    return replace(request, images=images)
