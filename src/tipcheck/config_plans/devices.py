"""One entry of ``gpu_list``: what the chains make of it, and what it means.

The chains judge an entry by the number of its characters: up to two is one device, up to fifteen a
list, more is several machines. ``by_length`` does the same; ``by_meaning`` reads the entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_IDS = re.compile(r"\d+(,\d+)*")
_SHORT = 15


@dataclass(frozen=True, slots=True)
class Habits:
    """How a chain judges the length of an entry.

    Attributes:
        nodes_above: longest list of addresses that still counts as one machine.
        visible: which of several devices the stages after the training see: ``first`` or ``all``.
        visible_on_nodes: the same for several machines: ``first`` or ``none``.
    """

    nodes_above: int = 15
    visible: str = "first"
    visible_on_nodes: str = "none"


@dataclass(frozen=True, slots=True)
class Device:
    """What a training runs on.

    Attributes:
        gpu: the device list, such as ``0,1``.
        ips: addresses of the machines, or nothing.
        nodes: number of machines.
        kind: ``one`` process, ``many`` on one machine, or several ``nodes``.
        visible: what the stages after the training see; nothing where nothing is set.
        emptied: whether the chain makes them see no device at all.
    """

    gpu: str
    ips: str
    nodes: str
    kind: str
    visible: str
    emptied: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The device ids that the training occupies."""
        return tuple(self.gpu.split(",")) if _IDS.fullmatch(self.gpu) else ()


def by_length(entry: str, habits: Habits) -> Device:
    """Return what the chain makes of an entry."""
    gpu, ips, visible, emptied = entry, "", "", False
    if len(entry) > _SHORT:
        ips, _, gpu = entry.partition(";")
        gpu = gpu.split(";")[0]
        if habits.visible_on_nodes == "first":
            visible = gpu.split(",")[0]
            emptied = not visible
    elif entry != "-1":
        visible = entry if habits.visible == "all" else entry.split(",", maxsplit=1)[0]
    several = len(ips) > habits.nodes_above
    kind = "one" if len(gpu) <= 2 else ("nodes" if several else "many")
    nodes = str(len(ips.split(","))) if several else "1"
    return Device(gpu, ips, nodes, kind, visible, emptied)


def by_meaning(entry: str, habits: Habits) -> Device | None:
    """Return what an entry means, or None when it means nothing."""
    entry = entry.strip()
    if entry in {"-1", "cpu"}:
        return Device(entry, "", "1", "one", "")
    ips, semicolon, gpu = entry.rpartition(";")
    if not _IDS.fullmatch(gpu) or (semicolon and not ips):
        return None
    if ips:
        visible = gpu.split(",")[0] if habits.visible_on_nodes == "first" else ""
        return Device(gpu, ips, str(len(ips.split(","))), "nodes", visible)
    visible = gpu if habits.visible == "all" else gpu.split(",")[0]
    return Device(gpu, "", "1", "many" if "," in gpu else "one", visible)
