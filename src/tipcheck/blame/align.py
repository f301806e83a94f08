"""Finds, for every tensor of one program, the same mathematical value in another, from structure.

The candidate is walked in op order. The partners of an op's operands and the op's parameters say
what of the baseline it can have computed; kind of op, activation, constants, shape, layer path and
above all what is done next with the result say which. No value is looked at, so a wrong one
misleads nobody; and no name of a tensor is, so names may change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.blame.alignment import Alignment, Match, Pairing, Reason
from tipcheck.blame.fitness import CERTAIN, Setting, fitness
from tipcheck.blame.kinds import can_fuse, moves_only
from tipcheck.blame.leftovers import leftover, no_partner
from tipcheck.blame.reach import Reached, reachable
from tipcheck.blame.wiring import Wiring, shapes_agree

if TYPE_CHECKING:
    from tipcheck.backends.graph import Graph, GraphOp


def align(baseline: Graph, candidate: Graph) -> Alignment:
    """Return the partner of each tensor of the candidate, and what is left of the baseline."""
    return _Aligner(Wiring(baseline), Wiring(candidate)).run()


class _Aligner:
    def __init__(self, baseline: Wiring, candidate: Wiring) -> None:
        self._baseline = baseline
        self._candidate = candidate
        # Parameters that the candidate got rid of: what they did is part of something else there.
        self._lost = baseline.names - candidate.names
        self._partner: dict[int, int] = {}
        self._pairings: list[Pairing] = []
        self._steps: dict[int, str] = {}  # unmatched, but a matched tensor is made from it

    def run(self) -> Alignment:
        self._inputs()
        for op in self._candidate.graph.ops:
            if op.results and self._candidate.data(op):
                self._place(op)
            else:
                self._pairings += [self._constant(key) for key in op.results]
        self._pairings = [self._explained(pairing) for pairing in self._pairings]
        self._pairings += leftover(self._baseline, self._candidate, self._pairings)
        return Alignment(tuple(self._pairings))

    def _constant(self, key: int) -> Pairing:
        made = ", ".join(self._candidate.value(key).leaves[:3])
        note = f"made from {made}, and from no input" if made else "made from no input"
        return Pairing(key, None, reason=Reason.CONSTANT_FOLDED, note=note)

    def _inputs(self) -> None:
        theirs = self._baseline.graph.inputs
        places = list(theirs.values())
        for place, (name, key) in enumerate(self._candidate.graph.inputs.items()):
            partner = theirs.get(name, places[place] if place < len(places) else None)
            if partner is not None:
                self._partner[key] = partner

    def _place(self, op: GraphOp) -> None:
        border, parameters, steps = self._surroundings(op)
        ours = [self._partner[key] for key in border]
        reached = reachable(self._baseline, ours, parameters | self._lost)
        if moves_only(op):
            # The baseline may have the same move, such as a cast that the model itself asks for.
            kind = self._candidate.kinds[op.index]
            reached = [one for one in reached if self._kinds(one) == [kind]]
        made_in = [op.operands, *(self._operands(key) for key in steps)]
        told = tuple(self._candidate.told(operands) for operands in made_in)
        kinds = frozenset(self._kind_of(key) for key in steps)
        best = self._best(
            Setting(op, kinds, frozenset(ours), self._part(steps), told), reached, parameters
        )
        if not self._counts(best, op):
            best = None
        if best is None and moves_only(op):
            self._moved(op)
            return
        if best is None:
            self._pairings += [
                no_partner(self._candidate, self._baseline, key, op) for key in op.results
            ]
            return
        back = {self._partner[key]: key for key in reversed(border)}
        inputs = tuple((back[key], key) for key in sorted(best.border))
        self._steps |= dict.fromkeys(steps, "+".join(self._kinds(best)))
        same = len(best.covers) == 1 and not can_fuse(op)
        for position, key in enumerate(op.results):
            partner = best.value if position == 0 else self._sibling(best.value, key, position)
            if partner is None:
                self._pairings.append(no_partner(self._candidate, self._baseline, key, op))
                continue
            self._partner[key] = partner
            match = Match.SAME_OP if same else Match.FUSED
            self._pairings.append(
                Pairing(
                    key,
                    partner,
                    match,
                    note=self._note(best),
                    covers=tuple(sorted(best.covers)),
                    inputs=inputs,
                )
            )

    def _explained(self, pairing: Pairing) -> Pairing:
        """Return a pairing without a partner with the reason that only later ops could show."""
        if pairing.reason is not Reason.UNKNOWN or pairing.candidate not in self._steps:
            return pairing
        note = f"a step of {self._steps[pairing.candidate]}, which is one op in the baseline"
        return replace(pairing, reason=Reason.INTERNAL, note=note)

    def _surroundings(self, op: GraphOp) -> tuple[list[int], frozenset[str], list[int]]:
        """Return the nearest matched tensors an op is made from, and what lies on the way.

        That is all parameters, and the tensors that have no partner.
        """
        border: list[int] = []
        steps: list[int] = []
        parameters: frozenset[str] = frozenset()
        ops, seen = [op], {op.index}
        while ops:
            at = ops.pop()
            parameters |= self._candidate.parameters(at)
            for key in self._candidate.data(at):
                producer = self._candidate.graph.op_of(key)
                if key in self._partner:
                    border.append(key)
                elif producer is not None and producer.index not in seen:
                    seen.add(producer.index)
                    ops.append(producer)
                    steps.append(key)
        return list(dict.fromkeys(border)), parameters, steps

    def _part(self, steps: list[int]) -> int:
        for key in steps:
            results = self._candidate.graph.ops[self._candidate.value(key).producer].results
            if len(results) > 1:
                return results.index(key)
        return 0

    def _kind_of(self, key: int) -> str:
        return self._candidate.kinds[self._candidate.value(key).producer]

    def _operands(self, key: int) -> tuple[int, ...]:
        producer = self._candidate.graph.op_of(key)
        return () if producer is None else producer.operands

    def _best(
        self, setting: Setting, reached: list[Reached], parameters: frozenset[str]
    ) -> Reached | None:
        parameters &= self._baseline.names
        possible = [
            one
            for one in reached
            if parameters <= one.parameters and not self._half_done(one, setting.op)
        ]
        fitting = [one for one in possible if self._fits(one.value, setting.op.results[0])]
        # Passes leave shapes behind that are no longer true; then everything else has to be.
        doubtful = not fitting and setting.op.type in self._candidate.made_by_passes
        scored = [
            (fitness(self._baseline, self._candidate, one, setting), -place, one)
            for place, one in enumerate(possible if doubtful else fitting)
        ]
        if not scored:
            return None
        score, _, best = max(scored, key=lambda item: item[:2])
        return best if score > (CERTAIN if doubtful else 0.0) else None

    def _fits(self, key: int, wanted: int) -> bool:
        one, other = self._baseline.value(key), self._candidate.value(wanted)
        same_sort = not one.dtype or not other.dtype or one.floating == other.floating
        return same_sort and shapes_agree(one, other)

    def _counts(self, best: Reached | None, op: GraphOp) -> bool:
        """Whether a partner may be believed: lengths and indices are written in many ways."""
        if best is None or self._candidate.value(op.results[0]).floating:
            return True
        if not self._candidate.value(op.results[0]).dtype:
            return True
        return self._kinds(best) == [self._candidate.kinds[op.index]]

    def _half_done(self, one: Reached, op: GraphOp) -> bool:
        """Whether a normalisation that the candidate has no parameters for is half done.

        Its scale is in the weights already then, and its shift in a constant that the candidate
        adds next: in between there is no tensor that the baseline has too. Where the baseline adds
        a bias first, scale and shift are in weight and bias, which keep their names.
        """
        if self._normalised_next(one.value):
            return True
        adds = any(
            self._candidate.kinds[taker.index] == "add" and self._takes_made_up(taker)
            for taker, _ in self._candidate.takers.get(op.results[0], ())
        )
        if not adds or self._takes_made_up(op):
            return False
        nexts = [taker for taker, _ in self._baseline.takers.get(one.value, ())]
        covered = [self._baseline.graph.ops[index] for index in one.covers]
        return any(self._lost_in(other) for other in (*nexts, *covered))

    def _normalised_next(self, key: int) -> bool:
        """Whether all that is made from a value goes into a normalisation that was folded away."""
        nexts = [taker for taker, _ in self._baseline.takers.get(key, ())]
        needed = self._baseline.needed
        alive = [taker for taker in nexts if needed.intersection(taker.results)]
        return bool(alive) and all(self._ends_in_norm(taker) for taker in alive)

    def _ends_in_norm(self, op: GraphOp) -> bool:
        kind = self._baseline.kinds[op.index]
        if kind == "batch_norm":
            return self._lost_in(op)
        biased = kind == "add" and bool(self._baseline.parameters(op))
        return biased and self._normalised_next(op.results[0])

    def _takes_made_up(self, op: GraphOp) -> bool:
        return any(self._made_up(key) for key in op.operands)

    def _lost_in(self, op: GraphOp) -> bool:
        used = self._baseline.parameters(op)
        return bool(used) and used <= self._lost

    def _made_up(self, key: int) -> bool:
        value = self._candidate.value(key) if key >= 0 else None
        inputs = self._candidate.graph.inputs.values()
        return value is not None and value.producer < 0 and not value.leaves and key not in inputs

    def _moved(self, op: GraphOp) -> None:
        key, source = op.results[0], self._candidate.data(op)[0]
        partner = self._partner.get(source)
        agree = shapes_agree(self._candidate.value(key), self._candidate.value(source))
        if partner is None or not agree:
            self._pairings.append(no_partner(self._candidate, self._baseline, key, op))
            return
        self._partner[key] = partner
        note = f"the same numbers as the tensor before {op.type}"
        self._pairings.append(
            Pairing(key, partner, Match.MOVED, note=note, inputs=((source, partner),))
        )

    def _sibling(self, first: int, key: int, position: int) -> int | None:
        """Return the result at a position of the op that makes a value, if it fits."""
        producer = self._baseline.graph.op_of(first)
        if producer is None or first != producer.results[0] or position >= len(producer.results):
            return None
        other = producer.results[position]
        agree = shapes_agree(self._baseline.value(other), self._candidate.value(key))
        return other if agree else None

    def _note(self, best: Reached) -> str:
        return "+".join(self._kinds(best)) if len(best.covers) > 1 else ""

    def _kinds(self, one: Reached) -> list[str]:
        return [self._baseline.kinds[index] for index in sorted(one.covers)]
