"""TensorRT's inspector files are read in both of their forms, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tipcheck.backends.graphs.inspector import read_engines, visible_outputs
from tipcheck.errors import UsageError


def tensor(name: str) -> dict[str, object]:
    return {"Name": name, "Dimensions": [1, 8], "Format/Datatype": "Row major linear FP32"}


ENGINE = {
    "Layers": [
        {
            "Name": "Reformatting CopyNode for Input Tensor 0 to conv2d",
            "LayerType": "Reformat",
            "Inputs": [tensor("x")],
            "Outputs": [tensor("Reformatted Input Tensor 0 to conv2d")],
        },
        {
            "Name": "conv2d (Output: batch_norm_0.tmp_2) + relu (Output: relu_0.tmp_0)",
            "LayerType": "CaskConvolution",
            "Inputs": [tensor("Reformatted Input Tensor 0 to conv2d")],
            "Outputs": [tensor("relu_0.tmp_0")],
        },
        {
            "Name": "fc",
            "LayerType": "MatrixMultiply",
            "Inputs": [tensor("relu_0.tmp_0")],
            "Outputs": [tensor("linear_0.tmp_1"), tensor("relu_0.tmp_0")],
        },
    ],
    "Bindings": ["x", "linear_0.tmp_1"],
}


def test_layers_come_in_the_order_of_the_engine(tmp_path: Path) -> None:
    (tmp_path / "engine_info_1.json").write_text(json.dumps(ENGINE), "utf-8")
    (tmp_path / "engine_info_0.json").write_text(json.dumps({"Layers": ["a", "b"]}), "utf-8")
    (tmp_path / "other.json").write_text("{}", "utf-8")
    layers = read_engines(tmp_path)
    assert [layer.engine for layer in layers] == ["engine_info_0.json"] * 2 + [
        "engine_info_1.json"
    ] * 3
    assert layers[0].name == "a"
    assert layers[3].kind == "CaskConvolution"
    assert layers[3].inputs == ("Reformatted Input Tensor 0 to conv2d",)


def test_tensors_that_still_exist_are_named_once_without_copies(tmp_path: Path) -> None:
    file = tmp_path / "engine_info_5.json"
    file.write_text(json.dumps(ENGINE), "utf-8")
    assert visible_outputs(read_engines(file)) == ("relu_0.tmp_0", "linear_0.tmp_1")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"Layers": 3}', '{"Layers": [{"LayerType": "x"}]}']
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "engine_info_5.json"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError, match="not what TensorRT's inspector writes"):
        read_engines(file)


def test_a_folder_without_any_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inspector on"):
        read_engines(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_engines(tmp_path / "engine_info_0.json")
