"""The rules by which the corrected reading of a config differs from what its bash chain does.

Each has a name that appears in ``Step.corrections`` and in the findings of ``lint``, and one
sentence that the guide prints. A rule that is applied anywhere is listed here; a test checks it.
"""

from __future__ import annotations

RULES: dict[str, str] = {
    "bar-turned-blank": "A | inside a command is a character like others.",
    "blanks-around-value": "Blanks before or after a value are no part of it.",
    "carriage-return": "The carriage returns of a CRLF file are no part of its values.",
    "device-of-an-inference": "A training is told its own device, not that of an inference before.",
    "device-list-passed-whole": "A training gets the device that line 5 lists for it.",
    "duplicate-command": "A command that does exactly what an earlier one did is run once.",
    "epochs-lost": "The epochs that the config gives for a mode reach the training.",
    "export-without-weights": "An export is told which weights to export.",
    "file-ends-early": "A stage whose line lies past the end of the file is not run.",
    "gpu-list-by-length": "An entry of gpu_list is read for what it says, not for its length.",
    "gpu-not-pinned": "Every step of an entry of gpu_list sees the GPU that the entry names.",
    "image-path-dropped": "The inference after a training gets the input that the config names.",
    "inference-outside-deploy": "The inference of a quantised model is started in deploy/.",
    "leaking-cuda-visible-devices": "CUDA_VISIBLE_DEVICES of one entry does not reach the next.",
    "line-not-passed-on": "An option that the chain never passes on is, if its script knows it.",
    "log-overwritten": "Each step has a log of its own.",
    "misspelt-flag": "A misspelt True or False is read as what it means.",
    "null-with-blank": "null with a blank before or after it is null.",
    "output-folder-forgotten": "A training on several GPUs is told where to write.",
    "training-never-started": "A training on several GPUs is started.",
    "value-cut-at-colon": "A value goes on after its second colon.",
    "weight-guessed": "A training that evaluates leaves the weights that the config names.",
}
