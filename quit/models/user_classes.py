"""The classes and objects of users that serve as models: found by name or given, and known by their ``identity``."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from quit.common.faults import fault_of_the_machine
from quit.common.progress import note
from quit.errors import InputError, QuitError, ServerError, SettingsError
from quit.models.generation.base import canonical
from quit.settings import JudgeSettings, ReaderSettings, Settings, load
from quit.settings.runner import ray_address

_OBJECT = "object:"
_OBJECTS: dict[str, object] = {}
"""Value of ``class`` in the settings -> the object that this process was given."""


_FOLDERS: list[str] = []
"""The working folder that was put into ``sys.path``."""
CAUSE = "The error's cause shows where (quit --debug prints it)."
"""Ends the message of an error that the user's code raised."""
Spec = TypeVar("Spec", ReaderSettings, JudgeSettings)
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
    if models and ray_address(settings.run.runner) is not None:
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
        settings_of = getattr(model, "settings", None)
        text = _OBJECT + class_identity(model, dict(settings_of) if isinstance(settings_of, Mapping) else {})
        twin = names.setdefault(text, name)
        if models[twin] is not model:
            raise SettingsError(
                f"The models {twin!r} and {name!r} have the same identity, so they would share their replies. Give "
                "each an attribute `settings`, a dictionary of what differs."
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
    """Return what the replies of a user's model depend on (:func:`class_identity`), or what tables say of it
    (:func:`as_recorded`).

    Raises :class:`SettingsError` where the class cannot be imported.
    """
    name = spec.class_ or ""
    if name.startswith(_OBJECT):
        return f"python/{name.removeprefix(_OBJECT)}"
    return spec.recorded_identity or f"python/{class_identity(imported_class(name, spec.name), spec.extra)}"


def as_recorded(settings: Settings, models_of_run: Mapping[str, Sequence[str]]) -> tuple[Settings, list[str]]:
    """Return settings whose classes have the identities that the current tables have of them, so that to look at a
    workspace imports nothing of it, and these classes: all except those of modules that are imported already."""
    names: dict[str, None] = {}

    def known(run: str, spec: Spec) -> Spec:
        name = spec.class_ or ""
        if spec.kind != "python" or name.startswith(_OBJECT) or name.partition(":")[0] in sys.modules:
            return spec
        names[name] = None
        match = re.search(r"python/.+?@[0-9a-f]{12}", " ".join(models_of_run.get(run, ())))
        return spec.with_recorded_identity(match[0] if match else f"python/{name}")

    readers = tuple(known(f"read:{each.name}", each) for each in settings.readers)
    return settings.model_copy(update={"readers": readers, "judge": known("judge", settings.judge)}), [*names]


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
    memory have the errors of :func:`quit.common.faults.fault_of_the_machine`."""
    try:
        yield
    except (QuitError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
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


def class_identity(model: object, settings: Any) -> str:
    """Return what the results of a class or an object of it depend on: the class's name, its ``identity``, settings.

    Raises :class:`SettingsError` without an ``identity``, and for settings that JSON cannot hold.
    """
    cls, identity = model if isinstance(model, type) else type(model), getattr(model, "identity", "")
    if not isinstance(identity, str) or not identity:
        raise SettingsError(
            f"{cls.__qualname__} has no identity, by which its replies are kept. Add this line to the class, and "
            f'change it with the replies: identity = "{cls.__name__} 1"'
        )
    try:
        digest = hashlib.sha256(canonical(settings) + b"\0" + identity.encode()).hexdigest()[:12]
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{cls.__qualname__}: JSON cannot hold its `settings` ({error}).") from None
    return f"{cls.__module__}:{cls.__qualname__}@{digest}"


def imported_class(text: str, name: str) -> type:
    """Return the class ``package.module:Name``, from the environment or the current folder.

    ``name``: what it is to be, for the error. Raises :class:`SettingsError` where there is none.
    """
    module, _, attribute = text.partition(":")
    is_new = module not in sys.modules
    if (folder := os.getcwd()) not in sys.path:  # it stays there: a class may import its neighbours later
        for earlier in {*_FOLDERS} & {*sys.path}:
            sys.path.remove(earlier)
        _FOLDERS[:] = [folder]
        sys.path.append(folder)
    try:
        imported = importlib.import_module(module)
        cls = getattr(imported, attribute)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        fault = str(error)
        if not isinstance(error, ImportError | AttributeError):
            fault = f"{type(error).__name__}: {fault}"
            if not isinstance(error, SyntaxError):  # it names its place
                at = traceback.extract_tb(error.__traceback__)[-1]
                fault += f", {at.filename}, line {at.lineno}"
        raise SettingsError(
            f"{name}: the class {text!r} cannot be imported ({fault}). Write it as package.module:Name; the module is "
            "in this folder or installed."
        ) from error
    if not isinstance(cls, type):
        raise SettingsError(f"{name}: {text!r} is not a class.")
    if is_new:
        note(f"{text} is imported from {getattr(imported, '__file__', 'this program')}.", loud=True)
    return cls
