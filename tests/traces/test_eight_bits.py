"""To 8 bits and back as Paddle does it, in float64."""

from __future__ import annotations

import numpy as np

from tipcheck.backends.replay.eight_bits import DEQUANTIZE, QUANTIZE, through

VALUES = np.array([[0.5, 1.5, -2.5, 300.0, -300.0]], np.float32)


def test_halves_go_to_the_even_side_and_ends_are_clipped() -> None:
    made = through(QUANTIZE, VALUES, np.array([127.0]), {"bit_length": 8, "quant_axis": -1})
    np.testing.assert_array_equal(made, [[0.0, 2.0, -2.0, 127.0, -128.0]])


def test_halves_can_go_away_from_zero() -> None:
    attributes = {"quant_axis": -1, "round_type": 1, "qmin": -127, "qmax": 127}
    made = through(QUANTIZE, VALUES, np.array([127.0]), attributes)
    np.testing.assert_array_equal(made, [[1.0, 2.0, -3.0, 127.0, -127.0]])


def test_the_program_can_say_how_many_steps_there_are() -> None:
    attributes = {"quant_axis": -1, "qmin": -255, "qmax": 255}
    made = through(QUANTIZE, VALUES, np.array([255.0]), attributes)
    np.testing.assert_array_equal(made, [[0.0, 2.0, -2.0, 255.0, -255.0]])


def test_every_channel_has_a_scale_of_its_own() -> None:
    steps = np.array([[127, -127], [64, 1]], np.int8)
    made = through(DEQUANTIZE, steps, np.array([1.0, 12.7]), {"quant_axis": 0})
    np.testing.assert_allclose(made, [[1.0, -1.0], [6.4, 0.1]], rtol=1e-15)
    assert made.dtype == np.float64
