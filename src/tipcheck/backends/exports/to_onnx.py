"""From an exported model to ONNX, for the stages that run it elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.backends.told import told

if TYPE_CHECKING:
    from pathlib import Path

    from tipcheck.backends.stages import Place

_OPSET = 16


def to_onnx(place: Place) -> Path:
    """Convert with paddle2onnx; return the file."""
    import paddle2onnx

    model = place.exported()
    target = place.folder / "model.onnx"
    try:
        # The default optimiser runs Polygraphy, which may try to install packages.
        paddle2onnx.export(
            str(model),
            str(model.with_suffix(".pdiparams")),
            str(target),
            opset_version=_OPSET,
            verbose=False,
            optimize_tool="None",
        )
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it calls sys.exit for much
        raise RuntimeError(f"paddle2onnx does not convert it ({told(error)})") from None
    if not target.is_file():
        raise RuntimeError("paddle2onnx wrote no file")
    return target
