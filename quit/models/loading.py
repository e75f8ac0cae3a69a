"""Models of transformers and sentence-transformers, from a folder or the hub: one way to load them, one error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar

from quit.common.extras import importing
from quit.errors import InputError, SettingsError
from quit.models.fetching import FETCHABLE, fetched_folder
from quit.models.folders import PUBLISHED, folder_checksum, minilm_folder

Model = TypeVar("Model")


class once(Generic[Model]):
    """A property that is computed at its first use, once, whichever thread comes first."""

    def __init__(self, make: Callable[[Any], Model]) -> None:
        self._make, self._lock, self.__doc__ = make, RLock(), make.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Model:
        name = self._make.__name__
        with self._lock:
            if name not in instance.__dict__:
                with importing():
                    instance.__dict__[name] = self._make(instance)  # found before this property from then on
            return instance.__dict__[name]


def located(name: str) -> str:
    """Return where a model is: a folder, or a name on the hub. ``minilm`` (``all-MiniLM-L6-v2``) comes with the
    program; ``smollm2`` is fetched; a folder of that name is ``./smollm2``. Raises :class:`InputError` for one that is
    not fetched yet."""
    if name in ("minilm", PUBLISHED):
        return str(minilm_folder())
    if name in FETCHABLE:
        return str(fetched_folder(name))
    folder = Path(name).expanduser()
    return str(folder) if folder.is_dir() else name


def load(name: str, make: Callable[[str], Model], what: str = "The model") -> Model:
    """Return what ``make`` loads from where a model is. Raises :class:`InputError` where it cannot be loaded."""
    path = located(name)
    if Path(path).is_absolute() and not Path(path).is_dir():
        raise InputError(f"There is no model folder {name}.")
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        return make(path)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{what} {name!r} cannot be loaded: {reason} "
            "Give a hub name that this machine can reach, or a folder of weights."
        ) from error


def load_sentence_model(kind: str, name: str, *, device: str, what: str = "The model", **options: Any) -> Any:
    """Return a model of sentence-transformers; ``kind`` is its class there. Raises as :func:`load`."""
    import sentence_transformers

    make = getattr(sentence_transformers, kind)
    return load(name, lambda path: make(path, device=device, local_files_only=Path(path).is_dir(), **options), what)


def load_pretrained(
    kind: str, name: str, *, revision: str = "", device: str = "cpu", what: str = "The model", **options: Any
) -> tuple[Any, Any]:
    """Return a model of transformers (``kind``: its class) for inference, and its tokenizer. Raises as :func:`load`."""
    import transformers

    version = {"revision": revision} if revision else {}
    tokenizer = load(name, lambda path: transformers.AutoTokenizer.from_pretrained(path, **version), what)
    make = getattr(transformers, kind).from_pretrained
    model = load(name, lambda path: make(path, **version, **options), what)
    return model.to(device).eval(), tokenizer


def usable_device(name: str, key: str) -> str:
    """Return the device to run on. Raises :class:`SettingsError`, which names the setting ``key``, without it."""
    if name == "cpu":
        return name
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0][:120]
        raise SettingsError(f"{key} is {name!r}, which is not usable here ({reason}). Use cpu or auto.") from None
    return name


def model_identity(name: str, revision: str | None = None, served: bool = False) -> str:
    """Return a model's identity: ``FOLDER#CHECKSUM``, or its name on the hub; then ``@REVISION``.

    ``revision``: None for the commit that loading a hub's model takes: it asks the hub, or else its cache. ``served``:
    whether a server has the model. Its name without a slash is then never a folder of this machine.
    """
    folder = None if served and "/" not in name else Path(located(name))
    if folder and folder.is_dir():
        name = f"{folder.name}#{folder_checksum(folder)}"
    elif revision is None:
        revision = _hub_commit(name)
    return f"{name}@{revision}" if revision else name


def _hub_commit(name: str) -> str:
    """Return the commit of a model on the hub, 12 hexadecimal digits; "" where the hub and its cache have no
    ``config.json`` of it."""
    from transformers.utils import cached_file

    try:
        return Path(str(cached_file(name, "config.json"))).parent.name[:12]
    except OSError:
        return ""
