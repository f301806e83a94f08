"""Which variables are read while an interpreter and a framework start.

The engine and the warm server both ask; the server imports the standard library only.
"""

from __future__ import annotations

_FAMILIES = (
    "BLIS_", "CONDA_", "CPU_", "CUDA_", "CUDNN_", "CUSTOM_DEVICE", "DNNL_", "FLAGS_", "GCONV_",
    "GLIBC_", "GLOG_", "GOMP_", "GOTO_", "HIP_", "KMP_", "LC_", "LD_", "MALLOC_", "MKLDNN_", "MKL_",
    "NCCL_", "NPY_", "NUMEXPR_", "NUMPY_", "NVIDIA_", "OMP_", "ONEDNN_", "OPENBLAS_", "PADDLE_",
    "PYENV_", "PYTHON", "TBB_", "TCMALLOC_", "XDG_", "XPU_",
)  # fmt: skip
_SINGLE = {
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "TEMP", "TMP", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV", "__PYVENV_LAUNCHER__",
}  # fmt: skip


def matters(name: str) -> bool:
    """Whether a variable may be read before or while a framework is imported."""
    return name in _SINGLE or name.startswith(_FAMILIES)
