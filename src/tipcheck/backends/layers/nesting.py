"""Nested inputs and outputs of layers, and the flat order in which an export has them.

An export takes and gives tensors in a row. What was nested in lists and dicts is walked from left
to right, dicts by sorted key, which is what Paddle does when it traces a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield every tensor of a nested value with the path to it, such as ``[1]['boxes']``."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from tensors_in(value[key], f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors_in(item, f"{name}[{index}]")
    elif hasattr(value, "numpy") and hasattr(value, "shape"):
        yield name or "output", value


def filled(shape: Any, values: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return a nested value of the same shape, its leaves taken from a row of values."""
    left = list(values)

    def take(node: Any) -> Any:  # noqa: ANN401
        if isinstance(node, dict):
            inner = {key: take(node[key]) for key in sorted(node, key=str)}
            return {key: inner[key] for key in node}
        if isinstance(node, (list, tuple)):
            return type(node)(take(item) for item in node)
        return left.pop(0)

    built = take(shape)
    if left:
        raise ValueError(f"{len(left)} values are left over")
    return built


def leaves(node: Any) -> list[Any]:  # noqa: ANN401
    """Return the leaves of a nested value, in the order in which ``filled`` takes them."""
    if isinstance(node, dict):
        return [leaf for key in sorted(node, key=str) for leaf in leaves(node[key])]
    if isinstance(node, (list, tuple)):
        return [leaf for item in node for leaf in leaves(item)]
    return [node]
