"""Finds out what this machine can run, without importing a framework in this process.

What can be read from the system is read; Paddle is asked in a worker; and every way whose needs
are met is tried on a small model, in both export formats, in workers that may crash.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.backends.catalogue import LACKS, RUN_MODES, STAGES, Lack, Need, Way
from tipcheck.backends.doctor.diagnosis import Cpu, Diagnosis, PaddleBuild, WayStatus
from tipcheck.backends.isolation import run_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PROBE = "tipcheck.backends.doctor.probe"
_PADDLE_PACKAGES = ("paddlepaddle", "paddlepaddle-gpu")
_PACKAGES = (*_PADDLE_PACKAGES, "numpy", "paddle2onnx", "onnxruntime", "openvino")
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8")
_FORMATS = {"json": {"FLAGS_enable_pir_api": "1"}, "pdmodel": {"FLAGS_enable_pir_api": "0"}}
_FROM_LAYER = ("eager", "to_static")
_NOT_TRIED = {
    "onednn_int8": "oneDNN is there; not tried, that takes a quantised model",
    "trt_int8": "TensorRT is there; not tried, that takes calibration data",
}
_TOO_NEW = sys.version_info >= (3, 13)
_NO_CONVERTER = Lack("paddle2onnx has no release for Python 3.13", "use Python 3.12 or older")
_DEBIAN_PACKAGES = {"libgomp.so.1": "libgomp1", "libgcc_s.so.1": "libgcc-s1"}
_INT8_FEATURES = ("avx512_vnni", "avx_vnni", "amx_int8")
_NO_VNNI = "; this CPU has no VNNI, so int8 sums may saturate"


def diagnose(
    *, time_limit: float = 180.0, say: Callable[[str], None] = lambda _: None
) -> Diagnosis:
    """Return what this machine can run.

    Args:
        time_limit: seconds a worker may take before it counts as hanging.
        say: called with what is being done, for people who wait.
    """
    packages = {name: _version(name) for name in _PACKAGES}
    cpu = _cpu(Path("/proc/cpuinfo"))
    say("asking Paddle about itself")
    paddle, problem = _ask_paddle(packages, time_limit)
    unmet = set(_unmet(packages, cpu, paddle))
    tried: dict[str, dict[str, str]] = {}
    if paddle is not None:
        candidates = [way.name for way in STAGES if unmet.isdisjoint(way.needs)]
        say(f"trying {len(candidates)} ways of running a small model")
        tried = _try_all([name for name in candidates if name not in _NOT_TRIED], time_limit)
    stages = {way.name: _status(way, unmet, tried, problem) for way in STAGES}
    int8 = stages["onednn_int8"]
    if int8.available and not any(cpu.features[name] for name in _INT8_FEATURES):
        stages["onednn_int8"] = replace(int8, how=int8.how + _NO_VNNI)
    return Diagnosis(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages=packages,
        cpu=cpu,
        gpus=_driver_gpus(),
        paddle=paddle,
        problem=problem,
        stages=tuple(stages.values()),
        run_modes=tuple(replace(stages[way.stage], name=way.name) for way in RUN_MODES),
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu(info: Path) -> Cpu:
    fields: dict[str, str] = {}
    try:
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    except OSError:
        pass  # no /proc here: the model stays what the platform module knows
    flags = fields.get("flags", fields.get("Features", "")).split()
    return Cpu(
        model=fields.get("model name") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        features={name: name in flags for name in _FEATURES},
    )


def _driver_gpus() -> tuple[str, ...]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    try:
        listed = subprocess.run(
            [tool, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in listed.stdout.splitlines() if line.strip())


def _ask_paddle(
    packages: dict[str, str | None], time_limit: float
) -> tuple[PaddleBuild | None, str]:
    if not any(packages[name] for name in _PADDLE_PACKAGES):
        return None, LACKS[Need.PADDLE].because
    end = run_worker(_PROBE, {"ask": "build"}, time_limit=time_limit)
    if not end.messages:
        return None, f"PaddlePaddle does not start: its process {end.died}"
    build = dict(end.messages[0])
    return PaddleBuild(**{**build, "gpus": tuple(build["gpus"])}), ""


def _unmet(packages: dict[str, str | None], cpu: Cpu, paddle: PaddleBuild | None) -> Iterable[Need]:
    if paddle is None:
        yield Need.PADDLE
    else:
        if not paddle.cuda:
            yield Need.CUDA_BUILD
        if not paddle.gpus:
            yield Need.GPU
        if not paddle.tensorrt:
            yield Need.TENSORRT_BUILD
    if not cpu.features["avx512f"]:
        yield Need.AVX512
    for need in (Need.PADDLE2ONNX, Need.ONNXRUNTIME, Need.OPENVINO):
        if packages[need.value] is None:
            yield need


def _try_all(ways: list[str], time_limit: float) -> dict[str, dict[str, str]]:
    """Return, by format and way, why a way did not work; empty text for those that did."""
    with ThreadPoolExecutor(len(_FORMATS)) as pool:
        found = pool.map(lambda export: _try_format(ways, export, time_limit), _FORMATS)
        return dict(zip(_FORMATS, found, strict=True))


def _try_format(ways: list[str], export: str, time_limit: float) -> dict[str, str]:
    """Try all ways in one worker, in another one from where it died, until none is left."""
    found: dict[str, str] = {}
    left = list(ways)
    while left:
        request = {"ask": "ways", "ways": left, "format": export}
        end = run_worker(_PROBE, request, time_limit=time_limit, env=_FORMATS[export])
        found |= {item["way"]: item["problem"] for item in end.messages if "way" in item}
        left = [way for way in left if way not in found]
        if left:
            found[left[0]] = f"its process {end.died or 'ended without an answer'}"
            left = left[1:] if any("trying" in item for item in end.messages) else []
    reason = next(iter(found.values()), "") if len(found) == 1 else ""
    return {way: found.get(way, reason or "the trial never got that far") for way in ways}


def unmet_needs(cuda: str, gpus: int, tensorrt: str) -> set[Need]:
    """Return what is missing here, for a Paddle that starts and says this of itself."""
    build = PaddleBuild("", "", cuda, tensorrt, ("",) * gpus, "", works=True)
    packages = {name: _version(name) for name in _PACKAGES}
    return set(_unmet(packages, _cpu(Path("/proc/cpuinfo")), build))


def lack_of(way: Way, unmet: set[Need], problem: str = "") -> Lack | None:
    """Return why a way cannot be there, and what to do about it; None when nothing is missing."""
    lacking = next((need for need in way.needs if need in unmet), None)
    if lacking is None:
        return None
    lack = _NO_CONVERTER if lacking is Need.PADDLE2ONNX and _TOO_NEW else LACKS[lacking]
    if lacking is Need.PADDLE and problem:
        lack = Lack(problem, _remedy(problem) or lack.get)
    return lack


def _status(
    way: Way, unmet: set[Need], tried: dict[str, dict[str, str]], problem: str
) -> WayStatus:
    lack = lack_of(way, unmet, problem)
    if lack is not None:
        return WayStatus(way.name, way.what, available=False, because=lack.because, get=lack.get)
    if way.name in _NOT_TRIED:
        return WayStatus(way.name, way.what, available=True, how=_NOT_TRIED[way.name])
    problems = {export: found[way.name] for export, found in tried.items()}
    formats = tuple(export for export, text in problems.items() if not text)
    if not formats:
        because = _told(problems)
        return WayStatus(way.name, way.what, available=False, because=because, get=_REPORT)
    how = "ran a small model"
    if way.name in _FROM_LAYER:
        return WayStatus(way.name, way.what, available=True, how=how)
    if len(formats) < len(problems):
        how = f"{how}; {_told({key: text for key, text in problems.items() if text})}"
    return WayStatus(way.name, way.what, available=True, formats=formats, how=how)


_REPORT = "try another version of the package"


def _remedy(problem: str) -> str:
    """Return what to do about a Paddle that does not start, where the cause is known."""
    missing = re.search(r"(lib\S+?\.so[.\d]*): cannot open shared object", problem)
    if missing is None:
        return ""
    package = _DEBIAN_PACKAGES.get(missing.group(1))
    if package is None:
        return f"install the system library {missing.group(1)}"
    return f"apt-get install {package}"


def _told(problems: dict[str, str]) -> str:
    texts = set(problems.values())
    if len(texts) == 1 and len(problems) > 1:
        return texts.pop()
    return "; ".join(f".{export}: {text}" for export, text in problems.items())
