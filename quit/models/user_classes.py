"""The classes and objects of users that serve as models: found by name or given, and known by their source."""

from __future__ import annotations

import dis
import hashlib
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, partial
from types import CellType, CodeType, MethodType
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
_OF_PYTHON = frozenset("__dict__ __doc__ __firstlineno__ __module__ __static_attributes__ __weakref__".split())
"""Attributes of a class that say nothing of what it does."""
_WRAPPERS = (property, staticmethod, classmethod, MethodType, partial, cached_property, type(cache(id)))
_WRAPPED = ("fget", "__func__", "__self__", "__wrapped__", "func", "args", "keywords")
"""What such a wrapper is made of."""
_BY_NAME = 'Put the class into a module and name it in a profile: kind = "python", class = "package.module:Name".'


def register_models(
    models: Mapping[str, object], profile: str = "embedded", overrides: Sequence[str] = ()
) -> list[str]:
    """Return the overrides that put objects into a profile with its ``overrides``: as readers, or as the judge.

    ``models``: name -> object. A reader takes the place of the profile's reader of that name; a new one is a labeler,
    unless its attribute ``role`` is ``reader``. Raises :class:`SettingsError` for an object without one of the two
    methods, for two that cannot be told apart, and where shards run in other processes, which do not have it.
    """
    if not isinstance(models, Mapping):
        raise SettingsError('Give models as a mapping of names to objects: models={"mine": Mine()}.')
    settings = load(profile, overrides).settings
    if models and settings.run.runner != "threads":
        raise SettingsError(f"Models that are objects work with run.runner=threads only. {_BY_NAME}")
    rows = {reader.name: row for row, reader in enumerate(settings.readers)}
    texts, judges = [], []
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
        else:
            judges.append(", ".join(f"{key}={json.dumps(value)}" for key, value in keys.items()))
        if section != "judge" or len(judges) == 1:
            texts += [f"{section}.{key}={json.dumps(value)}" for key, value in keys.items()]
    if len(judges) > 1 or (judges and settings.jury):
        texts.append(f"jury=[{', '.join(f'{{{judge}}}' for judge in judges[1:])}]")
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
def user_code(what: str, fault: type[QuitError] = InputError, kept: str = "") -> Iterator[None]:
    """Raise any error of a user's code in this block as a ``fault``: ``what``, the error, and ``kept``, what is not
    lost. An error of the system becomes a :class:`ServerError`; what :func:`quit.errors.fault_of_the_machine` knows
    becomes what it says."""
    try:
        yield
    except (QuitError, MemoryError):
        raise
    except Exception as error:
        kind = ServerError if isinstance(error, OSError) else fault
        raise fault_of_the_machine(error) or kind(f"{what} {type(error).__name__}: {error}.{kept} {CAUSE}") from error


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
    """Return an object's dictionary ``settings``; without one, its attributes, each as far as it can be told apart."""
    settings = getattr(model, "settings", None)
    values = settings if settings and isinstance(settings, Mapping) else _attributes(model)
    return {str(name): _described(value) for name, value in values.items()}


def _attributes(value: object) -> dict[str, Any]:
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if hasattr(value, name)]
    return {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})


def _source(cls: type) -> str:
    """Return the source of a class's module; of a class of a script or notebook, what :func:`_described` returns.

    It is the source when this process first needed it: a later change of the file does not reach the code in memory.
    Raises :class:`SettingsError` where there is none.
    """
    key = cls.__module__
    if _is_of_script(cls):
        return _described(cls)
    module = sys.modules[key]
    origin, source = getattr(module, "__spec__", None), _SOURCES.get(key)
    try:
        text = inspect.getsource(module)
    except (OSError, TypeError) as error:
        text = None
        if source is None or source.origin is not origin:
            raise SettingsError(f"The source of {cls.__qualname__} cannot be read ({error}). {_BY_NAME}") from None
    if source is None or source.origin is not origin:
        source = _SOURCES[key] = _Source(origin, text or "", text or "")
    elif text is not None and text != source.file_text:
        source.file_text = text
        note(
            f"The source of {key} was changed after this process loaded it: its classes work as before. "
            "Restart Python to use the change.",
            loud=True,
        )
    return source.text


def _described(start: object) -> str:
    """Return what tells a value from others, as far as anything does: nothing of a client, a lock, weights.

    Of a class, function or object of a script or notebook it is the source and what that uses from there: bases,
    functions, classes and values.
    """
    texts: dict[str, str] = {}
    names: dict[int, str] = {}
    waiting: list[tuple[str, Any]] = [("", start)]
    kept: list[object] = []  # an id belongs to another object once its own is gone
    while waiting:
        name, value = waiting.pop()
        if name in texts:
            continue
        if not isinstance(value, (dict, list, tuple, *_WRAPPERS)) and not _is_of_script(value):
            texts[name] = _plain(value)
            continue
        texts[name] = f"as {names[id(value)]}" if id(value) in names else type(value).__qualname__
        if names.setdefault(id(value), name) != name:
            continue
        kept.append(value)
        parts: Mapping[Any, Any]
        if isinstance(value, dict):
            parts = {_plain(key): each for key, each in value.items()}
        elif isinstance(value, list | tuple):
            parts = dict(enumerate(value))
        elif isinstance(value, _WRAPPERS):
            parts = {part: getattr(value, part) for part in _WRAPPED if hasattr(value, part)}
        elif inspect.isfunction(value):
            texts[name] = _function_source(value.__code__)
            parts = dict(zip(value.__code__.co_freevars, map(_content, value.__closure__ or ()), strict=True))
            parts |= {"defaults": [value.__defaults__, value.__kwdefaults__]}
            uses = [used for used in _globals_of(value.__code__) if used in value.__globals__]
            waiting += [(used, value.__globals__[used]) for used in uses]
        elif isinstance(value, type):
            parts = {part: each for part, each in vars(value).items() if part not in _OF_PYTHON}
            waiting += [(f"class {base.__qualname__}", base) for base in value.__bases__]
        else:
            parts = _attributes(value)
            waiting.append((f"class {type(value).__qualname__}", type(value)))
        waiting += [(f"{name}.{part}", each) for part, each in parts.items()]
    return "\n".join(f"{name}: {text}" for name, text in sorted(texts.items()))


def _is_of_script(value: object) -> bool:
    """Whether a class, function or object is of a script or notebook, or of a module that nobody can import."""
    is_code = isinstance(value, type) or inspect.isfunction(value)
    module = (value if is_code else type(value)).__module__
    return module == "__main__" or (isinstance(module, str) and module not in sys.modules)


def _plain(value: Any) -> str:
    """Return a value without parts as text; empty where its text says nothing of it."""
    if isinstance(value, str | bytes):
        return repr(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    if isinstance(value, set | frozenset):
        return repr(sorted(map(_plain, value)))
    try:
        text = str(value) if isinstance(value, Enum) else repr(value)
    except Exception:  # whatever a class of others does
        return ""
    return "" if text.startswith("<") or " at 0x" in text else text


def _content(cell: CellType) -> object:
    return cell.cell_contents if cell != CellType() else None


def _globals_of(code: CodeType) -> list[str]:
    """Return the names of the globals that a function reads, also in its inner ones."""
    names = [each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return names + [name for each in code.co_consts if isinstance(each, CodeType) for name in _globals_of(each)]


@cache
def _function_source(code: CodeType) -> str:
    """Return the source of a function when it was first needed; of one without any (``exec``), its instructions."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        constants = [_function_source(each) if isinstance(each, CodeType) else _plain(each) for each in code.co_consts]
        return repr((code.co_code, code.co_names, constants))


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
