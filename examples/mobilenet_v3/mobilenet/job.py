"""One process of a training: what it holds, and how it is saved and resumed."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paddle

from mobilenet.model import read_state, save, set_state
from mobilenet.notes import Notes, write_notes
from mobilenet.precision import OperatorCount
from mobilenet.problems import ProblemError
from mobilenet.quantised import is_quantised, quantised

CLIP_LR = 0.3  # times the learning rate: the steps of clipping values
STATE = "latest.pdstates"
WEIGHTS = "latest.pdparams"
_SETTINGS = (
    "epochs", "lr", "batch_size", "img_size", "seed", "amp_level", "amp_dtype", "to_static",
    "pact_quant",
)  # fmt: skip
_DASHED = {"data_path", "batch_size", "img_size"}


@dataclass
class Job:
    """Everything one process of a training holds."""

    args: argparse.Namespace
    rank: int
    ranks: int
    classes: list[str]
    net: Any
    optimizer: Any
    first_epoch: int = 1
    saved_epoch: int = 0
    quantised: bool = False
    counted: OperatorCount | None = None

    def quantise(self) -> None:
        """Put quanters into the network, and give what they learn to an optimizer of its own."""
        self.net = quantised(self.net)
        self.quantised = True
        self.optimizer = make_optimizer(self.net, self.args.lr)

    def say(self, line: str) -> None:
        """Print, on the first rank only."""
        if self.rank == 0:
            print(line, flush=True)

    def say_on_all(self, line: str) -> None:
        """Print on every rank."""
        print(f"[Train] rank {self.rank} of {self.ranks}, {line}", flush=True)

    def settings(self) -> dict[str, Any]:
        """Return what has to stay the same for a resumed training to be the same."""
        values = {name: getattr(self.args, name) for name in _SETTINGS}
        return {"ranks": self.ranks, "data_path": str(self.args.data_path)} | values

    def resume(self) -> None:
        """Set network and optimizer to where an interrupted training was after its last epoch.

        Raises:
            ProblemError: there is no such training, or it was another one.
        """
        path: Path = self.args.resume
        if path.is_dir():
            path = path / STATE
            if not path.is_file():
                raise ProblemError(
                    f"{path.parent} holds no {STATE}: that training was interrupted before its "
                    "first epoch was over; start it anew, without --resume"
                )
        state = read_state(path)
        if not {"epoch", "model", "net", "optimizer"} <= set(state):
            raise ProblemError(f"{path} is no training state: --resume takes a {STATE}")
        what = f"{self.args.model} with {len(self.classes)} classes"
        if is_quantised(state["net"]) and not self.args.pact_quant:
            raise ProblemError(f"{path} is of a PACT training: give --pact_quant as well")
        if is_quantised(state["net"]):
            self.quantise()
        set_state(self.net, state["net"], path, what)
        self.optimizer.set_state_dict(state["optimizer"])
        self.saved_epoch = int(state["epoch"])
        self.first_epoch = self.saved_epoch + 1
        if self.first_epoch > self.args.epochs:
            raise ProblemError(
                f"{path} has been trained for {state['epoch']} epochs already: raise --epochs"
            )
        for name, old in state.get("settings", {}).items():
            new = self.settings().get(name)
            if old != new:
                option = f"--{name.replace('_', '-') if name in _DASHED else name}"
                self.say(
                    f"[Train] was interrupted with {option}={old}, goes on with {option}={new}"
                )
        self.say(f"[Train] resumed after epoch {state['epoch']} from {path}")

    def save(self, epoch: int) -> None:
        """Write the weights, and in one further file all that --resume needs."""
        folder: Path = self.args.output_dir
        folder.mkdir(parents=True, exist_ok=True)
        weights = self.net.state_dict()
        save(
            {
                "epoch": epoch,
                "model": self.args.model,
                "settings": self.settings(),
                "net": weights,
                "optimizer": self.optimizer.state_dict(),
            },
            folder / STATE,
        )
        save(weights, folder / WEIGHTS)
        args = self.args
        notes = Notes(args.model, str(args.data_path), args.img_size, self.classes)
        write_notes(notes, folder / WEIGHTS)
        self.saved_epoch = epoch
        self.say(f"[Train] saved {folder / WEIGHTS}")

    def how_to_go_on(self) -> str:
        """Return what to tell the user who interrupted the training."""
        if not self.saved_epoch:
            return "interrupted before the first epoch was saved: start anew"
        return (
            f"interrupted, epoch {self.saved_epoch} is the last one saved: to go on, give the same "
            f"options and --resume={self.args.output_dir}"
        )


def make_optimizer(net: Any, lr: float) -> Any:
    """Make the optimizer; clipping values get PACT's own L2 term in the loss, and no decay here.

    Their gradients are sums over all that is clipped, so that they get small steps.
    """
    named = list(net.named_parameters())
    groups = [{"params": [value for name, value in named if not is_quantised({name: value})]}]
    if left := [value for name, value in named if is_quantised({name: value})]:
        groups.append({"params": left, "weight_decay": 0.0, "learning_rate": CLIP_LR})
    return paddle.optimizer.Momentum(lr, 0.9, parameters=groups, weight_decay=1e-4)
