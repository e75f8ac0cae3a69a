"""The classes and objects of users that serve as models: found by name or given, and known by their source."""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import inspect
import io
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, MemberDescriptorType
from typing import Any

from quit.common.progress import note
from quit.errors import InputError, QuitError, ServerError, SettingsError, fault_of_the_machine
from quit.models.generation.base import canonical
from quit.settings import JudgeSettings, ReaderSettings, load

_OBJECT = "object:"
_OBJECTS: dict[str, object] = {}
"""Value of ``class`` in the settings -> the object that this process was given."""


@dataclass(slots=True)
class _Source:
    """The source of a module. ``origin``: the import. ``text``: the source when it was first needed. ``file_text``: the
    file's content, as last seen."""

    origin: object
    text: str
    file_text: str


_SOURCES: dict[str, _Source] = {}
"""By the name of the module."""
CAUSE = "The error's cause shows where (quit --debug prints it)."
"""Ends the message of an error that the user's code raised."""
_OF_PYTHON = ("__firstlineno__", "__static_attributes__", "__slotnames__")
"""Attributes of a class that say nothing of what it does; the last one appears when an object is copied."""
_BY_NAME = 'Put the class into a module and name it in a profile: kind = "python", class = "package.module:Name".'


def register_models(
    models: Mapping[str, object], profile: str = "embedded", overrides: Sequence[str] = ()
) -> list[str]:
    """Return the overrides that put objects into a profile with its ``overrides``: as readers, or as the judge.

    ``models``: name -> object. A reader takes the place of the profile's reader of that name; a new one is a labeler,
    unless its attribute ``role`` is ``reader``. Raises :class:`SettingsError` for an object without one of the two
    methods, for two that cannot be told apart, for two judges, and where shards run in other processes,
    which do not have it.
    """
    if not isinstance(models, Mapping):
        raise SettingsError('Give models as a mapping of names to objects: models={"mine": Mine()}.')
    settings = load(profile, overrides).settings
    if models and settings.run.runner != "threads":
        raise SettingsError(f"Models that are objects work with run.runner=threads only. {_BY_NAME}")
    rows = {reader.name: row for row, reader in enumerate(settings.readers)}
    texts: list[str] = []
    judge_name = None
    names: dict[str, str] = {}
    for name, model in models.items():
        if isinstance(model, type):
            raise SettingsError(f"The model {name!r} is a class. Give an object: {model.__name__}().")
        methods = [method for method in ("answer", "verdicts") if callable(getattr(model, method, None))]
        if len(methods) != 1:
            raise SettingsError(
                f"The model {name!r} ({type(model).__name__}) needs one of the methods answer(prompts), as a reader, "
                "and verdicts(items), as a judge."
            )
        text = _OBJECT + class_identity(type(model), _settings_of(model))
        twin = names.setdefault(text, name)
        if models[twin] is not model:
            raise SettingsError(
                f"The models {twin!r} and {name!r} have the same class, source and attributes, so they would share "
                "their replies. Give each an attribute `settings`, a dictionary of what differs."
            )
        _OBJECTS[text] = model
        keys = {"name": name, "kind": "python", "class": text}
        section = "judge"
        if methods == ["answer"]:
            row = rows.setdefault(name, len(rows))
            section = f"readers.{row}"
            if row >= len(settings.readers):
                texts.append(f"{section}.role={getattr(model, 'role', 'labeler')}")
        elif judge_name is None:
            judge_name = name
        else:
            raise SettingsError(f"The models {judge_name!r} and {name!r} are both judges: give one of them.")
        texts += [f"{section}.{key}={json.dumps(value)}" for key, value in keys.items()]
    return texts


def user_model_identity(spec: ReaderSettings | JudgeSettings) -> str:
    """Return what the replies of a user's model depend on: its name, version, settings and the source of its module.

    Raises :class:`SettingsError` where the class cannot be imported.
    """
    name = spec.class_ or ""
    if name.startswith(_OBJECT):
        return f"python/{name.removeprefix(_OBJECT)}"
    return f"python/{class_identity(imported_class(name, spec.name), spec.extra)}"


def user_model(spec: ReaderSettings | JudgeSettings) -> Any:
    """Return the user's object, or a new one of the user's class.

    Raises :class:`SettingsError` where this process was not given it, or the class is not usable or cannot be made;
    :class:`ServerError` where its ``__init__`` meets a fault of the system.
    """
    name = spec.class_ or ""
    if name.startswith(_OBJECT):
        check_given(spec)
        return _OBJECTS[name]
    cls, method = imported_class(name, spec.name), "answer" if isinstance(spec, ReaderSettings) else "verdicts"
    if not callable(getattr(cls, method, None)):
        raise SettingsError(f"{spec.name}: {name} has no method {method}.")
    with user_code(f"{spec.name}: {name} cannot be made with its `extra`:", SettingsError):
        return cls(**spec.extra)


@contextmanager
def user_code(what: str, fault: type[QuitError] = InputError, remark: str = "") -> Iterator[None]:
    """Raise any error of a user's code in this block as a ``fault`` whose message is ``what``, the error and
    ``remark``. An error of the system becomes a :class:`ServerError`; a package that is not installed and too little
    memory have the errors of :func:`quit.errors.fault_of_the_machine`."""
    try:
        yield
    except (QuitError, MemoryError):
        raise
    except Exception as error:
        message = f"{what} {type(error).__name__}: {str(error).rstrip('.')}.{remark} {CAUSE}"
        if isinstance(error, OSError):
            raise ServerError(message) from error
        raise fault_of_the_machine(error) or fault(message) from error


def is_absent(spec: ReaderSettings | JudgeSettings) -> bool:
    """Whether a model is an object that this process was not given."""
    name = spec.class_ or ""
    return name.startswith(_OBJECT) and name not in _OBJECTS


def check_given(spec: ReaderSettings | JudgeSettings) -> None:
    """Raise :class:`SettingsError` for an object that this process was not given."""
    if is_absent(spec):
        raise SettingsError(
            f"{spec.name} was given to quit.build as an object, which only that Python process has, in its threads. "
            f"Give it again: models={{{spec.name!r}: ...}}. For other processes: {_BY_NAME}"
        )


def class_identity(cls: type, settings: Mapping[str, Any]) -> str:
    """Return what the results of a class depend on: its name, version, settings and the source of its module."""
    digest = hashlib.sha256(canonical(settings) + b"\0" + _source(cls).encode()).hexdigest()[:12]
    return f"{cls.__module__}:{cls.__qualname__}@{getattr(cls, 'version', '')}+{digest}"


def _settings_of(model: object) -> dict[str, Any]:
    """Return hashes of the values in an object's dictionary ``settings``; without one, of its attributes."""
    values = getattr(model, "settings", None)
    if not isinstance(values, Mapping):
        slots = {name for cls in type(model).__mro__ for name in copyreg._slotnames(cls)}  # type: ignore[attr-defined]
        values = {name: getattr(model, name) for name in slots if hasattr(model, name)} | getattr(model, "__dict__", {})
    hashes = {}
    for name, value in values.items():
        try:
            hashes[str(name)] = _content_hash(value)
        except Exception:  # a generator, or whatever else no pickler takes
            continue
    return hashes


def _source(cls: type) -> str:
    """Return the source of a class's module; of a class of a script or notebook, the hash of its code.

    It is the source when this process first needed it: a later change of the file does not reach the code in memory.
    Raises :class:`SettingsError` where there is none.
    """
    key = cls.__module__
    if key == "__main__" or key not in sys.modules:
        try:
            return _content_hash(cls)
        except Exception as error:  # whatever the class uses
            raise SettingsError(f"The code of {cls.__qualname__} cannot be hashed ({error}). {_BY_NAME}") from error
    module = sys.modules[key]
    origin, source = getattr(module, "__spec__", None), _SOURCES.get(key)
    if source is not None and source.origin is not origin:
        source = None
    try:
        text = inspect.getsource(module)
    except (OSError, TypeError) as error:
        if source is None:
            raise SettingsError(f"The source of {cls.__qualname__} cannot be read ({error}). {_BY_NAME}") from None
        return source.text
    if source is None:
        source = _SOURCES[key] = _Source(origin, text, text)
    elif text != source.file_text:
        source.file_text = text
        note(
            f"The source of {key} was changed after this process loaded it: its classes work as before. "
            "Restart Python to use the change.",
            loud=True,
        )
    return source.text


def _content_hash(value: object) -> str:
    """Return a hash of a value, as ``datasets`` makes them for its cache: of a class or function of a script or
    notebook, it covers the code with all that this uses from there. Of an object of another module that cannot be
    pickled, such as a client, the class's name counts. Raises what the pickler raises for anything else.
    """
    from datasets.fingerprint import Hasher
    from datasets.utils._dill import Pickler

    class Content(Pickler):
        def persistent_id(self, part: object) -> str | None:
            cls = type(part)
            if isinstance(part, MemberDescriptorType):  # a slot, which leads back to the class at work
                return part.__name__
            if cls.__module__ in ("builtins", "__main__"):
                return None
            try:
                Hasher.hash(part)
            except Exception:  # whatever a class of others does
                return f"{cls.__module__}.{cls.__qualname__}"
            return None

        def save(self, part: object, save_persistent_id: bool = True) -> None:
            if isinstance(part, CodeType):  # its place in a file says nothing of what it does
                part = part.replace(co_filename="", co_firstlineno=1)
            super().save(part, save_persistent_id)

        def _batch_setitems(self, items: Iterable[tuple[Any, Any]], *arguments: Any) -> None:
            super()._batch_setitems([item for item in items if item[0] not in _OF_PYTHON], *arguments)

    content = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        Content(content, recurse=True).dump(value)
    return hashlib.sha256(content.getvalue()).hexdigest()


def imported_class(text: str, name: str) -> type:
    """Return the class ``package.module:Name``, from the environment or the current folder.

    ``name``: what it is to be, for the error. Raises :class:`SettingsError` where there is none.
    """
    module, _, attribute = text.partition(":")
    sys.path.append(os.getcwd())
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the module does when it is imported
        fault = str(error)
        if not isinstance(error, ImportError | AttributeError):
            at = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__}: {fault}, {at.filename}, line {at.lineno}"
        raise SettingsError(
            f"{name}: the class {text!r} cannot be imported ({fault}). Write it as package.module:Name; the module is "
            "in this folder or installed."
        ) from error
    finally:
        sys.path.pop()
    if not isinstance(cls, type):
        raise SettingsError(f"{name}: {text!r} is not a class.")
    return cls
