"""Chooses the samples of a small data set: the same ones wherever and whenever it is made.

The choice depends on names alone, through a hash, never on the order in which a file system lists
them. Samples come from as many classes as there are, in turns, and both parts prefer the same
classes, so that a training on one part can be judged on the other. Pictures that are damaged are
passed over and reported.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.config_plans.lite_data.picture import problem_of
from tipcheck.config_plans.lite_data.source import PARTS, Sample, Source
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


LARGEST_TAR = 20_000_000
"""Bytes; what a repo can carry without hurting those who clone it."""


@dataclass(frozen=True, slots=True)
class LiteData:
    """A small data set, ready to be written.

    Attributes:
        files: content by path relative to the set, sorted by path.
        counts: how many samples each part has.
        groups: how many classes they come from.
        damaged: pictures that were passed over, with what is wrong with them.
    """

    files: Mapping[str, bytes]
    counts: Mapping[str, int]
    groups: int
    damaged: tuple[str, ...]


def choose(source: Source, counts: Mapping[str, int], seed: int = 0) -> LiteData:
    """Return a small data set.

    Args:
        source: the full one.
        counts: how many samples each part is to have.
        seed: another number is another choice.

    Raises:
        UsageError: there are not enough samples.
    """
    chosen: dict[str, dict[Sample, bytes]] = {part: {} for part in PARTS}
    damaged: list[str] = []
    size = 0
    for part, sample in _candidates(source, counts, chosen, seed):
        data, problem = _read(source, sample)
        if problem is not None:
            damaged.append(f"{sample.path} {problem}")
            continue
        chosen[part][sample] = data
        size += len(data)
        if size > LARGEST_TAR:
            raise _too_much(source, sum(map(len, chosen.values())))
    for part in PARTS:
        if len(chosen[part]) < counts[part]:
            raise _too_few(source, part, counts[part], len(chosen[part]), damaged)
    files = {
        _target(source, part, sample): data
        for part in PARTS
        for sample, data in chosen[part].items()
    }
    for part, name in source.lists.items():
        files[name] = "".join(f"{line}\n" for line in sorted(s.line for s in chosen[part])).encode()
    groups = {sample.group for part in PARTS for sample in chosen[part]}
    return LiteData(
        dict(sorted(files.items())), dict(counts), len(groups), tuple(dict.fromkeys(damaged))
    )


def _candidates(
    source: Source, counts: Mapping[str, int], chosen: Mapping[str, dict[Sample, bytes]], seed: int
) -> Iterator[tuple[str, Sample]]:
    """Yield samples to try until ``chosen``, which the caller fills, has enough of each part."""
    for part in PARTS:
        taken = {sample.path for samples in chosen.values() for sample in samples}
        for sample in _in_turns(source.samples[part if source.is_split else "train"], seed):
            if len(chosen[part]) == counts[part]:
                break
            if sample.path not in taken:
                yield part, sample


def _target(source: Source, part: str, sample: Sample) -> str:
    return sample.target if source.is_split else f"{part}/{sample.target}"


def _in_turns(samples: tuple[Sample, ...], seed: int) -> Iterator[Sample]:
    """Yield samples class by class in turns, each in the order of its hash."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.group].append(sample)
    order = sorted(groups, key=lambda group: _hash(seed, group))
    for members in groups.values():
        members.sort(key=lambda sample: _hash(seed, sample.path), reverse=True)
    while order:
        for group in order:
            yield groups[group].pop()
        order = [group for group in order if groups[group]]


def _hash(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogateescape")).digest()


def _read(source: Source, sample: Sample) -> tuple[bytes, str | None]:
    try:
        data = (source.root / sample.path).read_bytes()
    except OSError as error:
        return b"", f"cannot be read ({error.strerror})"
    return data, problem_of(data)


def _too_few(source: Source, part: str, wanted: int, found: int, damaged: list[str]) -> UsageError:
    why = f", {len(damaged)} damaged ({damaged[0]})" if damaged else ""
    return UsageError(
        f"only {found} sample(s) for {part}, {wanted} wanted{why}",
        where=str(source.root),
        hint=f"ask for fewer with --{part} {found}" if found else "give another data set",
    )


def _too_much(source: Source, count: int) -> UsageError:
    return UsageError(
        f"{count} samples alone have more than {LARGEST_TAR / 1e6:.0f} MB, too much for the tar",
        where=str(source.root),
        hint="nothing was written; ask for fewer with --train and --val, or make the pictures of "
        "the data set smaller first",
    )
