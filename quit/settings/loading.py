"""From a profile and overrides to settings, with messages that name the key and what it allows."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from quit.errors import SettingsError, did_you_mean
from quit.settings.card import Card
from quit.settings.models import ReaderSettings, ServerSettings
from quit.settings.schedules import Schedule
from quit.settings.section import File
from quit.settings.settings import Settings

LISTS: dict[str, type[BaseModel]] = {
    "readers": ReaderSettings,
    "servers": ServerSettings,
    "schedules": Schedule,
}
"""The sections that are lists of tables, with what an entry is."""

PROFILES = Path(__file__).parent / "profiles"
STARTING = Path(__file__).parent / "starting"  # profiles of one model at one kind of server


AnySettings = TypeVar("AnySettings", bound=Settings)


@dataclass(frozen=True)
class Loaded(Generic[AnySettings]):
    """Settings together with where each value came from (``default``, ``profile NAME``, ``--set``)."""

    settings: AnySettings
    origins: dict[str, str]

    def rows(self) -> list[tuple[str, Any, str]]:
        """Return (key, value, origin) of every setting, in order."""
        return [
            (key, value, self.origins.get(key, "default"))
            for key, value in flatten(self.settings.model_dump(mode="json"))
        ]


def flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return dotted keys and values of nested mappings; lists of tables are numbered (``readers.0.name``)."""
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat += flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                flat += flatten(item, f"{prefix}{key}.{index}.")
        else:
            flat.append((prefix + key, value))
    return flat


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the program."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def profile_file(profile: str) -> Path:
    """Return the file of a profile: a name, or a TOML file's path. Raises :class:`SettingsError` without one."""
    path = Path(profile) if profile.endswith(".toml") else PROFILES / f"{profile}.toml"
    if profile.endswith(".toml") and not path.is_file():
        raise SettingsError(f"The file {profile} does not exist. Check the path (working folder: {Path.cwd()}).")
    if not path.is_file():
        raise SettingsError(f"There is no profile {profile!r}.{did_you_mean(profile, profile_names())}")
    return path


def starting_profile(kind: str, model: str, url: str | None = None) -> str:
    """Return a profile as TOML whose reader is ``model`` at a server of this kind, at ``url`` if given.

    It has prices for the model of the example only; for others they are comments. Raises :class:`SettingsError`
    for an unknown kind.
    """
    kinds = sorted(path.stem for path in STARTING.glob("*.toml"))
    if kind not in kinds:
        raise SettingsError(f"There is no profile to start from for {kind!r}. Name one of {', '.join(kinds)}.")
    text = (STARTING / f"{kind}.toml").read_text(encoding="utf-8")
    [reader], [server] = (tomllib.loads(text)[section] for section in ("readers", "servers"))
    if model != reader["model"]:
        text = re.sub(r"(?m)^(price_\w+) = [\d.]+", r"# \1 = ...", text)
    name = re.sub(r"[^a-z0-9.]+", "-", Path(model).name.lower()).strip("-.") or "reader"
    for key, value in (("name", name), ("model", model)):
        text = text.replace(f'{key} = "{reader[key]}"', f"{key} = {json.dumps(value, ensure_ascii=False)}")
    [address] = server["base_urls"]
    return text.replace(f'"{address}"', json.dumps(url or address, ensure_ascii=False))


def load(profile: str | Path = "embedded", overrides: Sequence[str] = ()) -> Loaded[Settings]:
    """Return the settings of a profile (a name, or the path of a TOML file) with ``key=value`` overrides.

    Raises :class:`SettingsError` for an unknown profile, key or value; the message names the nearest right one.
    """
    values, origins = read(profile, overrides)
    return Loaded(parse(values), origins)


def read(profile: str | Path, overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a profile with overrides, section by section, and where each comes from; nothing is checked
    yet. A profile may start from one of the program's, whose name is its key ``profile``: it then holds what differs,
    of which a list replaces the other's list."""
    path = profile_file(str(profile))
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The profile {path} is not TOML: {error}") from error
    values.pop("description", None)
    origins = {key: f"profile {path.stem}" for key, _ in flatten(values)}
    if base := values.pop("profile", None):
        if base not in profile_names() or profile_file(base) == path:
            raise SettingsError(f"The profile {path} starts from {base!r}; expected {', '.join(profile_names())}.")
        own, (values, base_origins) = values, read(base, ())
        replaced = []
        for section, of in own.items():
            merges = isinstance(of, dict) and isinstance(values.get(section), dict)
            values[section] = {**values[section], **of} if merges else of
            replaced += [f"{section}.{key}" for key in of] if merges else [section]
        origins = {key: origin for key, origin in base_origins.items() if not _is_below(key, replaced)} | origins
    for override in plain(overrides):
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise SettingsError(f"{override!r} is no setting. Write it as {key or 'KEY'}={text or 'VALUE'}.")
        _set(values, key, text)
        origins = {name: origin for name, origin in origins.items() if not _is_below(name, [key])}
        origins |= {name: "--set" for name, _ in flatten(values) if _is_below(name, [key])}
    return values, origins


def plain(overrides: Iterable[str]) -> list[str]:
    """Return overrides as ``key=value`` without blanks around either, with those of its settings for a section's table:
    ``review = { overlap = 2 }`` is ``review.overlap=2``. What is compared by its key comes from here."""
    texts = []
    for override in overrides:
        key, separator, text = (piece.strip() for piece in override.partition("="))
        table = _value(text) if key in Settings.model_fields else None
        if isinstance(table, dict):
            pairs = flatten(table, f"{key}.")
            texts += [f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in pairs]
        else:
            texts.append(key + separator + text)
    return texts


def load_card(path: Path) -> Card:
    """Return the block ``[card]`` of a TOML file, which may be a whole profile.

    Raises :class:`SettingsError` as :func:`load` does, and for a file without such a block.
    """
    loaded = load(str(path))
    if not any(key.startswith("card.") for key in loaded.origins):
        raise SettingsError(f"{path} has no [card] block. Its keys: {', '.join(Card.model_fields)}.")
    return loaded.settings.card


def _is_below(key: str, sections: Iterable[str]) -> bool:
    return f"{key}.".startswith(tuple(f"{section}." for section in sections))


def without(overrides: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the overrides (``key=value``) whose key, and the sections above it, none of ``others`` names."""
    keys = {f"{text.partition('=')[0].strip()}." for text in others}
    return [text for text in overrides if not f"{text.partition('=')[0].strip()}.".startswith(tuple(keys))]


def file_of(override: str) -> str | None:
    """Return the path that an override gives a setting whose values are files; else None."""
    key, _, value = (piece.strip() for piece in override.partition("="))
    *path, last = key.split(".")
    marks, name = getattr(_fields_at(Settings, path).get(last), "metadata", ()), str(_value(value))
    return name if any(isinstance(mark, File) and re.search(mark.pattern, name) for mark in marks) else None


def of_section(section: str, overrides: Sequence[str]) -> Sequence[str]:
    """Return overrides of one section, plain. Raises ``SettingsError`` for those of another."""
    overrides = plain(overrides)
    for text in overrides:
        if not text.startswith(f"{section}."):
            raise SettingsError(f"{text!r}: only {section} settings can change here; for others build again.")
    return overrides


def parse(values: Mapping[str, Any]) -> Settings:
    """Return validated settings. Raises :class:`SettingsError` that names the key and what it allows."""
    return validated(values, Settings)


def validated(values: Mapping[str, Any], model: type[AnySettings]) -> AnySettings:
    """Return values as settings. Raises as :func:`parse` does."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        by_key: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for problem in error.errors():
            by_key.setdefault(_key(problem, model), []).append(problem)
        raise SettingsError("\n".join(_explain(key, problems, model) for key, problems in by_key.items())) from None


def _set(values: dict[str, Any], key: str, text: str) -> None:
    *path, last = key.split(".")
    section: Any = values
    for step in path:
        if isinstance(section, list):
            if not step.isdigit() or int(step) > len(section):
                raise SettingsError(f"{key}: there is no entry {step}; the list has {len(section)}, counted from 0.")
            section += [{}] if int(step) == len(section) else []  # one more entry
            section = section[int(step)]
        else:
            section = section.setdefault(step, [] if step in LISTS else {})
        if not isinstance(section, dict | list):
            raise SettingsError(f"{key}: {step} is a value, not a section.")
    if isinstance(section, list):
        raise SettingsError(f"{key}: {'.'.join(path)} is a list; name one entry and its key, such as readers.0.{last}.")
    section[last] = _value(text)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare word such as pool needs no quotes on a command line


def _key(problem: Mapping[str, Any], model: type[AnySettings]) -> tuple[str, ...]:
    """Return the key that a problem is about, without the names of the types that it may have."""
    path: list[str] = []
    for step in problem["loc"]:
        if isinstance(step, str) and problem["type"] != "extra_forbidden" and step not in _known_keys(model, path):
            break
        path.append(str(step))
    return tuple(path)


def _explain(path: Sequence[str], problems: Sequence[Mapping[str, Any]], model: type[AnySettings]) -> str:
    """Return what is wrong with a key, of which any one of ``problems`` would have to be gone."""
    key, problem = ".".join(path), problems[0]
    if problem["type"] == "extra_forbidden":
        names = [f"{section}.{path[-1]}" for section in model.model_fields if path[-1] in _known_keys(model, [section])]
        names = names or [".".join([*path[:-1], name]) for name in _known_keys(model, path[:-1])]
        return f"There is no setting {key!r}.{did_you_mean(key, names)}"
    is_short = isinstance(problem["input"], str | int | float | bool | None) and not key.endswith("_env")
    shown = problem["input"] if is_short else "..."  # in place of a variable's name may stand the secret itself
    if isinstance(shown, str):
        shown = re.sub(
            r"(?<=//)[^\s/]*@|(?<=:)[^\s/:]+:[^\s/]*@", "***@", shown
        )  # a message must not show the password of an address
    if problem["type"] == "model_type" and path:
        settings = ", ".join(f"{key}.{name}" for name in _known_keys(model, path))
        return f"{key!r} is a section, not a value ({shown}).{settings and f' Its settings: {settings}.'}"
    if problem["type"] == "tuple_type" and isinstance(shown, str):
        return f"Setting {key!r} is {shown!r}, and must be a list: {key}={json.dumps(shown.split(','))}."
    reasons = (each["msg"].removeprefix("Value error, ") for each in problems)
    why = ", or ".join(reason[0].lower() + reason[1:] for reason in reasons)
    if not path:
        return f"The settings do not fit together: {why}."
    return f"Setting {key!r} is {shown!r}: {why}."


def _known_keys(model: type[AnySettings], path: Sequence[str]) -> list[str]:
    return [field.alias or name for name, field in _fields_at(model, path).items()]


def _fields_at(model: type[AnySettings], path: Sequence[str]) -> Mapping[str, FieldInfo]:
    fields: Mapping[str, FieldInfo] = model.model_fields
    for step in path:
        if not step.isdigit():
            section = LISTS.get(step) or getattr(fields.get(step), "annotation", None)
            fields = getattr(section, "model_fields", {})
    return fields
