"""What ``jit.save`` exports of a layer or a function, as calls that can be made in dygraph."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from .answers import Call, iterate_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def calls_of_layer(layer: Any, input_spec: Any, configs: Mapping[str, Any]) -> Iterator[Call]:  # noqa: ANN401
    """Yield a call for each function that this save exports.

    Args:
        layer: what was given to ``jit.save``.
        input_spec: likewise.
        configs: the other options it was given.
    """
    import paddle

    api: Any = sys.modules["paddle.jit.api"]
    if not isinstance(layer, paddle.nn.Layer):
        yield _call("", layer, layer, input_spec, configs)
        return
    inner = layer._layers if isinstance(layer, paddle.DataParallel) else layer  # noqa: SLF001
    for name in sorted(set(api._get_function_names_from_layer(inner))):  # noqa: SLF001
        member = getattr(inner, name, None)
        converted = isinstance(member, api.StaticFunction)
        if converted and getattr(member, "is_property", False):
            continue
        if name == "forward":
            if converted or not configs.get("skip_forward"):
                yield _call("", member, inner, input_spec, configs)
        elif converted:
            yield _call(f".{name}", member, member, input_spec, configs)


def _call(
    suffix: str,
    function: Any,  # noqa: ANN401 - a function of Paddle
    target: Any,  # noqa: ANN401
    input_spec: Any,  # noqa: ANN401
    configs: Mapping[str, Any],
) -> Call:
    import paddle

    arguments, named = _specs(function, input_spec)
    flat = paddle.utils.flatten([arguments, named])
    specs: dict[str, Any] = {}
    places: dict[int, str] = {}
    for place, item in enumerate(flat):
        if isinstance(item, paddle.static.InputSpec):
            name = item.name or f"feed_{place}"
            places[place] = name
            specs[name] = item
    tensor: Any = paddle.Tensor

    def run(feed: Mapping[str, Any]) -> list[tuple[str, Any]]:
        values = [
            paddle.to_tensor(feed[places[place]], dtype=specs[places[place]].dtype)
            if place in places
            else item
            for place, item in enumerate(flat)
        ]
        given, options = paddle.utils.pack_sequence_as([arguments, named], values)
        outputs = target(*given, **options)
        found = list(iterate_tensors(outputs, tensor))
        return _chosen(found, configs.get("output_spec"))

    return Call(suffix, run, _pruned(specs, configs), _facts(target, function))


def _pruned(specs: dict[str, Any], configs: Mapping[str, Any]) -> dict[str, Any]:
    kept = configs.get("input_names_after_prune")
    if kept is None:
        return specs
    return {**specs}  # the layer takes them all; the exported model only asks for its own


def _chosen(found: list[tuple[str, Any]], output_spec: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    if not output_spec or len(output_spec) == len(found):
        return found
    if all(isinstance(item, int) for item in output_spec):
        return [found[place] for place in output_spec]
    raise ValueError("output_spec names values of a static program, which no dygraph run has")


def _specs(function: Any, input_spec: Any) -> tuple[list[Any], dict[str, Any]]:  # noqa: ANN401
    """Return the arguments of the export, with ``InputSpec`` in place of tensors."""
    import paddle
    from paddle.jit.dy2static.function_spec import FunctionSpec

    api: Any = sys.modules["paddle.jit.api"]
    given = _from_tensors(input_spec)
    static = api.get_ast_static_function(function)
    if isinstance(static, api.StaticFunction):
        known = static._function_spec  # noqa: SLF001 - where jit.save looks too
        if known.input_spec is not None:
            given = known.input_spec
        elif given is not None:
            given = paddle.utils.flatten(given)
        else:
            key = static._program_cache._recent_cache_key  # noqa: SLF001
            return list(key.input_args_with_spec), dict(key.input_kwargs_with_spec)
    else:
        known = FunctionSpec(function, given)
        if given is None:
            given = ()
    arguments, named = known.unified_args_and_kwargs(tuple(given), {})
    placed, others = known.args_to_input_spec(arguments, named)
    return list(placed), dict(others)


def _from_tensors(input_spec: Any) -> Any:  # noqa: ANN401
    import paddle

    if input_spec is None:
        return None
    flat = [
        paddle.static.InputSpec.from_tensor(item) if isinstance(item, paddle.Tensor) else item
        for item in paddle.utils.flatten(input_spec)
    ]
    return paddle.utils.pack_sequence_as(input_spec, flat)


def _facts(target: Any, function: Any) -> dict[str, str]:  # noqa: ANN401
    import paddle

    owner = target if isinstance(target, paddle.nn.Layer) else None
    if owner is None:
        owner = getattr(function, "class_instance", None) or getattr(function, "__self__", None)
    facts = {"finds_limits": "yes"}
    if isinstance(owner, paddle.nn.Layer):
        facts["layer"] = type(owner).__name__
        training = [name or "the layer itself" for name, sub in _layers(owner) if sub.training]
        facts["training"] = str(bool(owner.training))
        if training and not owner.training:
            facts["training_inside"] = ", ".join(training[:3])
    elif inspect.isfunction(function):
        facts["layer"] = function.__name__
    return facts


def _layers(owner: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    return list(owner.named_sublayers(include_self=True))
