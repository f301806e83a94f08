"""What is asked of the quantisation in Paddle itself: ``python cases.py`` runs every ``case_``.

Each case is a function that raises when something is wrong; what they raised is printed as one line
of JSON. One process runs all of them, because importing Paddle takes longer than most of them.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from paddle import nn
from paddle.quantization import QAT, QuantConfig
from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

from tipcheck import quant
from tipcheck.errors import UsageError
from tipcheck.quant import saving
from tipcheck.quant.layers import PactBatchNorm2D, PactConv2D, PactLinear
from tipcheck.quant.quanters import PactQuanter
from tipcheck.quant.verify import WrongExportError
from tipcheck.step_runner.quantised import why_not

RANDOM = np.random.default_rng(5)


class Net(nn.Layer):  # type: ignore[misc]
    """Every kind of layer that is treated: ordinary, depthwise and dead channels, both signs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2D(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2D(8)
        self.relu = nn.ReLU()
        self.depthwise = nn.Conv2D(8, 8, 3, stride=2, padding=1, groups=8, bias_attr=False)
        self.swish = nn.Hardswish()
        self.wide = nn.Conv2D(8, 12, 1)
        self.pool = nn.AdaptiveAvgPool2D(1)
        self.head = nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        x = self.relu(self.bn(self.first(x)))
        x = self.relu(self.wide(self.swish(self.depthwise(x))))
        return self.head(self.pool(x).flatten(1))


def make_net(seed: int = 3) -> Net:
    paddle.seed(seed)
    net = Net()
    weight = net.wide.weight.numpy().copy()
    weight[4] = 0.0
    net.wide.weight.set_value(weight)
    return net


def images(count: int = 4) -> Any:
    return paddle.to_tensor(RANDOM.normal(size=(count, 3, 10, 10)).astype("float32"))


def pact(clip: float, bits: int = 8, **choices: Any) -> PactQuanter:
    return PactQuanter(
        nn.Linear(4, 2),
        bits=bits,
        initial_clip=clip,
        per_channel=choices.get("per_channel", False),
        signed=choices.get("signed"),
    )


def gradients(quanter: PactQuanter, x: Any, upstream: Any) -> tuple[Any, Any]:
    given = paddle.to_tensor(x, stop_gradient=False)
    (quanter(given) * paddle.to_tensor(upstream)).sum().backward()
    return quanter.clip.grad.numpy(), given.grad.numpy()


def raises(kind: type[Exception], words: str, work: Callable[[], object]) -> None:
    with pytest.raises(kind, match=words):
        work()


def clipped_data(*, signed: bool) -> tuple[Any, Any]:
    x = RANDOM.normal(0, 2, (64, 4)).astype("float32")
    x = x if signed else np.abs(x)
    assert (np.abs(x) > 1.5).mean() > 0.2
    return x, RANDOM.normal(size=x.shape).astype("float32")


def case_the_gradient_is_the_papers() -> None:
    x, upstream = clipped_data(signed=False)
    x[0, 0], x[1, 1] = 1.5, 0.0  # at the clipping value the paper counts the element
    clip, inside = gradients(pact(1.5), x, upstream)
    np.testing.assert_allclose(clip, [upstream[x >= 1.5].sum()], rtol=1e-5)
    passes = (x > 0) & (x < 1.5)
    np.testing.assert_array_equal(inside, np.where(passes, upstream, 0))


def case_the_gradient_counts_both_sides_of_signed_data() -> None:
    x, upstream = clipped_data(signed=True)
    clip, inside = gradients(pact(1.5), x, upstream)
    expected = upstream[x >= 1.5].sum() - upstream[x <= -1.5].sum()
    np.testing.assert_allclose(clip, [expected], rtol=1e-5)
    np.testing.assert_array_equal(inside, np.where(np.abs(x) < 1.5, upstream, 0))


def case_the_gradient_is_that_of_finite_differences() -> None:
    for signed in (False, True):
        for per_channel in (False, True):
            x, upstream = clipped_data(signed=signed)
            quanter = pact(1.5, per_channel=per_channel)
            starts = np.array([1.5, 0.7, 2.5, 1.1] if per_channel else [1.5])
            quanter.clip.set_value(starts.astype("float32"))
            found, _ = gradients(quanter, x, upstream)
            for index in range(len(starts)):
                sides = []
                for step in (1e-6, -1e-6):
                    clip = starts.copy()
                    clip[index] += step
                    low = -clip if signed else 0 * clip
                    sides.append((upstream * np.clip(x.astype("float64"), low, clip)).sum())
                slope = (sides[0] - sides[1]) / 2e-6
                assert abs(found[index] - slope) < 1e-3, (signed, per_channel, found, slope)


def case_the_gradient_through_a_network_is_that_of_finite_differences() -> None:
    # Rounding with a step of 1/255 of the clip is nearly no rounding: the loss is nearly smooth.
    paddle.seed(1)
    quanter = pact(0.8)
    head = nn.Linear(4, 3)
    x, _ = clipped_data(signed=False)
    label = paddle.to_tensor(RANDOM.integers(0, 3, len(x)))

    def loss() -> Any:
        return nn.functional.cross_entropy(head(quanter(paddle.to_tensor(x))), label)

    loss().backward()
    found = float(quanter.clip.grad.item())
    sides = []
    for step in (0.05, -0.05):
        quanter.clip.set_value(np.array([0.8 + step], "float32"))
        sides.append(float(loss().item()))
    slope = (sides[0] - sides[1]) / 0.1
    assert abs(found) > 0.01
    assert abs(found - slope) < 0.05 * abs(found) + 2e-3, (found, slope)


def case_training_lowers_a_clip_where_that_helps_and_raises_it_where_not() -> None:
    x = np.abs(RANDOM.normal(0, 2, (256, 4))).astype("float32")
    ends = {}
    for name, target in (("helps", np.minimum(x, 1.0)), ("hurts", x)):
        quanter = pact(2.0)
        optimizer = paddle.optimizer.SGD(0.5, parameters=quanter.parameters())
        for _ in range(60):
            ((quanter(paddle.to_tensor(x)) - paddle.to_tensor(target)) ** 2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()
        ends[name] = float(quanter.clip.item())
    assert ends["helps"] < 1.2, ends
    assert ends["hurts"] > 2.5, ends


def case_a_clip_above_every_value_is_never_trained_but_the_penalty_lowers_it() -> None:
    net = quant.quantise(nn.Sequential(nn.Linear(4, 2)), quant.QuantScheme(initial_clip=100.0))
    x = paddle.to_tensor(clipped_data(signed=True)[0])
    net(x).sum().backward()
    assert float(net[0].activation_quanter.clip.grad.item()) == 0.0
    penalty = quant.clip_penalty(net, 0.5)
    assert abs(float(penalty.item()) - 5000.0) < 1e-2
    penalty.backward()
    assert abs(float(net[0].activation_quanter.clip.grad.item()) - 100.0) < 1e-3
    assert abs(float(quant.clip_penalty(net).item()) - 1.0) < 1e-5
    scheme = quant.QuantScheme(initial_clip=2.0, clip_decay=0.25)
    assert (
        float(quant.clip_penalty(quant.quantise(nn.Sequential(nn.Linear(4, 2)), scheme)).item())
        == 1.0
    )


def case_values_lie_on_the_grid() -> None:
    for bits in range(2, 9):
        for signed in (False, True):
            x = RANDOM.normal(0, 2, (400, 4)).astype("float32")
            quanter = pact(1.5, bits)
            out = quanter(paddle.to_tensor(x if signed else np.abs(x))).numpy()
            steps = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
            places = out / (1.5 / steps)
            np.testing.assert_allclose(places, np.round(places), atol=1e-3)
            assert places.max() == steps or abs(places.max() - steps) < 1e-3
            assert abs(places.min() + steps) < 1e-3 if signed else places.min() >= 0
            quanter.eval()
            whole = quanter.integers(paddle.to_tensor(x if signed else np.abs(x))).numpy()
            np.testing.assert_array_equal(whole, np.round(places))


def case_graph_training_is_eager_training() -> None:
    x, label = images(8), paddle.to_tensor([0, 1, 2, 3, 4, 0, 1, 2])
    losses: dict[bool, list[float]] = {}
    flags = {}
    for graph in (False, True):
        net = quant.quantise(make_net(), quant.QuantScheme(initial_clip=1.0))
        optimizer = paddle.optimizer.Momentum(0.05, 0.9, parameters=net.parameters())
        run = net
        if graph:
            spec = [paddle.static.InputSpec([None, 3, 10, 10])]
            run = paddle.jit.to_static(net, input_spec=spec, full_graph=True)
        losses[graph] = []
        for _ in range(4):
            loss = nn.functional.cross_entropy(run(x), label) + quant.clip_penalty(net)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses[graph].append(float(loss.item()))
        flags[graph] = [net.first.activation_quanter.signed, net.head.activation_quanter.signed]
        if graph:
            quant.calibrate(net, [x], "abs_max")
            assert quant.convert(net)(x).shape == [8, 5]
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-4)
    assert flags == {False: [True, False], True: [True, False]}


def case_paddles_own_api_quantises() -> None:
    net = make_net()
    net.train()
    config = QuantConfig(activation=quant.PACT(initial_clip=2.0), weight=quant.ChannelWeight())
    made = QAT(config).quantize(net)
    assert type(net.first) is nn.Conv2D
    assert isinstance(made.first, PactConv2D)
    assert isinstance(made.head, PactLinear)
    assert isinstance(made.bn, PactBatchNorm2D)
    made(images()).sum().backward()
    assert made.first.activation_quanter.clip.grad is not None
    assert "bn.weight" in made.state_dict()
    raises(UsageError, r"tipcheck\.quant\.save", lambda: QAT(config).convert(made))
    assert set(quant.clips(made)) == {"first", "depthwise", "wide", "head"}


def case_single_layers_can_be_chosen() -> None:
    net = make_net()
    config = QuantConfig(activation=None, weight=None)
    config.add_type_config(nn.Linear, activation=quant.PACT(4), weight=quant.ChannelWeight(4))
    made = QAT(config).quantize(net)
    assert type(made.first) is nn.Conv2D
    assert isinstance(made.head, PactLinear)
    made.eval()
    again = quant.rebuild(make_net(9), made.state_dict())
    again.eval()
    x = images()
    np.testing.assert_allclose(again(x).numpy(), made(x).numpy(), atol=1e-6)


def case_other_quanters_work_as_before() -> None:
    quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    net = make_net()
    net.train()
    made = QAT(QuantConfig(activation=quanter, weight=quanter)).quantize(net)
    assert type(made.bn).__name__ == "ObserveWrapper"
    assert type(made.bn._observed) is nn.BatchNorm2D
    x = images()
    made(x)
    made.eval()
    out = made.first(x)
    first = made.first
    expected = first._conv_forward(first.activation_quanter(x), first.weight_quanter(first.weight))
    np.testing.assert_allclose(out.numpy(), expected.numpy(), atol=1e-6)


def case_a_checkpoint_says_what_it_is() -> None:
    net = make_net()
    x = images()
    for scheme in (
        quant.QuantScheme(),
        quant.QuantScheme(activation_bits=4, weight_bits=3, activation_per_channel=True),
        quant.QuantScheme(weight_per_channel=False),
    ):
        made = quant.quantise(net, scheme)
        quant.calibrate(made, [x])
        state = made.state_dict()
        assert quant.is_quantised(state)
        with tempfile.TemporaryDirectory() as folder:
            paddle.save(state, f"{folder}/a.pdparams")
            state = paddle.load(f"{folder}/a.pdparams")
        again = quant.rebuild(make_net(8), state)
        again.eval()
        made.eval()
        np.testing.assert_array_equal(again(x).numpy(), made(x).numpy())
    assert not quant.is_quantised(net.state_dict())
    raises(UsageError, "not that of a quantised", lambda: quant.rebuild(net, net.state_dict()))
    other = nn.Sequential(nn.Linear(2, 2))
    raises(UsageError, "of another model", lambda: quant.rebuild(other, state))


def case_calibration_chooses_clips() -> None:
    net = quant.quantise(make_net())
    batches = [images(), images() * 3]
    largest = max(float(batch.abs().max().item()) for batch in batches)
    found = quant.calibrate(net, iter(batches), "abs_max")
    assert abs(found["first"][0] - largest) < 1e-5
    assert net.training
    kl = quant.calibrate(net, batches, "kl")
    quantile = quant.calibrate(net, batches, "quantile")
    assert 0 < quantile["first"][0] < largest
    assert 0 < kl["first"][0] <= largest + 1e-5
    assert net.first.activation_quanter.signed
    assert not net.head.activation_quanter.signed
    raises(UsageError, "no method", lambda: quant.calibrate(net, batches, "median"))
    raises(UsageError, "at least one batch", lambda: quant.calibrate(net, []))
    raises(UsageError, "not finite", lambda: quant.calibrate(net, [images() / 0.0]))
    raises(UsageError, "quantise it first", lambda: quant.calibrate(make_net(), batches))
    raises(UsageError, "quantise it first", lambda: quant.clip_penalty(make_net()))


def case_kl_clips_a_rare_outlier_at_few_bits() -> None:
    net = quant.quantise(nn.Sequential(nn.Linear(4, 2)), quant.QuantScheme(activation_bits=4))
    x = np.abs(RANDOM.normal(0, 1, (20000, 4))).astype("float32")
    x[0, 0] = 30.0
    kl = quant.calibrate(net, [x], "kl")["0"][0]
    assert kl < 10, kl
    assert quant.calibrate(net, [x], "abs_max")["0"][0] == 30.0


def case_evaluation_is_near_training_and_conversion_is_evaluation() -> None:
    x = images(6)
    for scheme in (
        quant.QuantScheme(),
        quant.QuantScheme(activation_per_channel=True),
        quant.QuantScheme(activation_bits=4, weight_bits=4),
    ):
        net = quant.quantise(make_net(), scheme)
        quant.calibrate(net, [x])
        net.eval()
        exact = net(x).numpy()
        for layer in net.sublayers():
            if isinstance(layer, PactConv2D | PactLinear):
                layer.training = True
                layer.activation_quanter.training = False
        rounded = net(x).numpy()
        net.eval()
        size = np.linalg.norm(exact)
        assert np.linalg.norm(exact - rounded) < 1e-2 * size, scheme
        np.testing.assert_array_equal(quant.convert(net)(x).numpy(), exact)
    raises(UsageError, "no quantised layer", lambda: quant.convert(make_net()))


def case_linear_layers_of_any_dimension_are_converted() -> None:
    for shape in ([4], [3, 4], [2, 3, 4], [2, 3, 2, 4]):
        net = quant.quantise(nn.Sequential(nn.Linear(4, 5)))
        x = paddle.to_tensor(RANDOM.normal(size=shape).astype("float32"))
        quant.calibrate(net, [x], "abs_max")
        net.eval()
        np.testing.assert_array_equal(quant.convert(net)(x).numpy(), net(x).numpy())


def case_the_sign_can_be_chosen() -> None:
    x = paddle.to_tensor(np.array([[-1.0, 0.5, 0.1, -0.2]], "float32"))
    chosen = pact(2.0, signed=False)
    assert float(chosen(x).min().item()) == 0.0
    assert not chosen.signed
    seen = pact(2.0)
    assert float(seen(x).min().item()) < -0.9
    assert seen.signed
    seen(x.abs())
    assert seen.signed  # for good


def case_mixed_precision_stays_what_it_is() -> None:
    x = paddle.to_tensor(clipped_data(signed=False)[0])
    low = pact(1.5)(x.cast("bfloat16"))
    assert low.dtype == paddle.bfloat16
    np.testing.assert_allclose(low.cast("float32").numpy(), pact(1.5)(x).numpy(), atol=0.02)


def case_bad_choices_are_refused() -> None:
    raises(UsageError, "bits=9", lambda: quant.PACT(9))
    raises(UsageError, "bits=1", lambda: quant.ChannelWeight(1))
    raises(UsageError, "initial_clip", lambda: quant.PACT(initial_clip=0.0))


def saved(net: Any, x: Any, folder: str, format_: str) -> saving.Saved:
    spec = [paddle.static.InputSpec([None, *x.shape[1:]], "float32", "image")]
    return quant.save(net, f"{folder}/m/inference", spec, inputs=[x], format=format_)


def predict(model: Path, x: Any, *, onednn: bool, int8: bool) -> Any:
    config = paddle.inference.Config(str(model), str(model.with_suffix(".pdiparams")))
    config.disable_glog_info()
    if onednn:
        config.enable_mkldnn()
    if int8:
        config.enable_mkldnn_int8()
    predictor = paddle.inference.create_predictor(config)
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x.numpy())
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def save_case(scheme: quant.QuantScheme, *, int8_ops: int) -> None:
    x = images(8)
    net = quant.quantise(make_net(), scheme)
    quant.calibrate(net, [x])
    net.eval()
    other = images(16)
    right = net(other).numpy()
    net.train()
    for format_, modes in (
        ("json", [(False, False), (True, False)]),
        ("pdmodel", [(False, False), (True, False), (True, True)]),
    ):
        with tempfile.TemporaryDirectory() as folder:
            result = saved(net, x, folder, format_)
            assert net.training
            assert result.quantised_ops == 4
            assert result.int8_ops == (int8_ops if format_ == "pdmodel" else 0), result
            assert all(check.difference == 0 for check in result.checks), result
            assert why_not(["export", f"{folder}/m"], "/", 0.0) == ""
            for onednn, int8 in modes:
                out = predict(result.model, other, onednn=onednn, int8=int8)
                np.testing.assert_allclose(out, right, atol=1e-6)


def case_save_is_exact_on_every_stage() -> None:
    save_case(quant.QuantScheme(), int8_ops=4)


def case_save_is_exact_with_clips_per_channel() -> None:
    save_case(quant.QuantScheme(activation_per_channel=True), int8_ops=4)


def case_save_keeps_narrow_weights_out_of_int8() -> None:
    save_case(quant.QuantScheme(activation_bits=4, weight_bits=4), int8_ops=0)


class TwoFaced(nn.Layer):  # type: ignore[misc]
    """Computes something else in a graph, as code that asks for the mode can."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.head(x) if paddle.in_dynamic_mode() else self.head(x) * 1.1


def case_save_refuses_what_is_wrong() -> None:
    x = paddle.to_tensor(clipped_data(signed=True)[0])
    net = quant.quantise(TwoFaced())
    quant.calibrate(net, [x])
    with tempfile.TemporaryDirectory() as folder:
        for format_ in ("json", "pdmodel"):
            raises(
                WrongExportError,
                "stage plain: .*nothing was saved",
                lambda: saved(net, x, folder, format_),  # noqa: B023 - called at once
            )
        assert not list(Path(folder).rglob("*"))
        raises(UsageError, "no format", lambda: saved(net, x, folder, "onnx"))
        raises(
            UsageError, "no quantised layer", lambda: saved(make_net(), images(), folder, "json")
        )
        raises(
            UsageError, "2 sample inputs for 1", lambda: quant.save(net, "a", [x], inputs=[x, x])
        )


def case_save_says_what_cannot_be_built() -> None:
    class NewOnly(nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            if not (paddle.in_dynamic_mode() or paddle.framework.in_pir_mode()):
                raise TypeError("must be Value, but got Variable")
            return self.head(x)

    net = quant.quantise(NewOnly())
    x = paddle.ones([2, 4])
    quant.calibrate(net, [x])
    with tempfile.TemporaryDirectory() as folder:
        raises(
            WrongExportError,
            "cannot be written as a .pdmodel: .*must be Value.*nothing was saved; try format",
            lambda: quant.save(net, f"{folder}/a", [x], format="pdmodel"),
        )
        assert not list(Path(folder).rglob("*"))
        assert quant.save(copy.deepcopy(net), f"{folder}/a", [x], format="json").quantised_ops == 1


def main() -> None:
    problems: dict[str, str] = {}
    chosen = sys.argv[1]
    for name, case in list(globals().items()):
        if name.startswith("case_") and re.search(chosen, name):
            try:
                case()
                problems[name] = ""
            except BaseException:  # noqa: BLE001 - the test that asks shows it
                problems[name] = traceback.format_exc()
    print("\n" + json.dumps(problems), flush=True)


if __name__ == "__main__":
    main()
