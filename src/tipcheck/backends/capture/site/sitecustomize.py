"""Loaded by every Python that a verified command starts, because its folder leads PYTHONPATH.

It takes itself out of sight again (search path, environment, module list), lets the environment's
own ``sitecustomize`` run, and starts listening for a save. Whatever goes wrong in here is silent: a
command must not notice that it is watched.
"""

import os
import sys


def _start(here: str) -> None:
    package = os.path.dirname(here)
    try:
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location(
            "_tipcheck_capture",
            os.path.join(package, "__init__.py"),
            submodule_search_locations=[package],
        )
        if spec is None or spec.loader is None:
            return
        module = module_from_spec(spec)
        sys.modules["_tipcheck_capture"] = module
        spec.loader.exec_module(module)
        from _tipcheck_capture.listen import start  # type: ignore[import-not-found]

        start(here)
    except Exception:
        sys.modules.pop("_tipcheck_capture", None)


def _hand_over(here: str) -> None:
    """Import the ``sitecustomize`` behind this one, or be as if there were none."""
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    sys.modules.pop("sitecustomize", None)
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - without one, the error is what `site` expects


_HERE = os.path.dirname(os.path.abspath(__file__))
if os.environ.get("TIPCHECK_CAPTURE"):
    _start(_HERE)
_hand_over(_HERE)
