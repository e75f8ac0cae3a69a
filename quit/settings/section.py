"""The base of all sections of the settings."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, field_validator

from quit.text.words import shell_word

MAX_NUMBER = 10**15


@dataclass(frozen=True)
class File:
    """Marks a setting whose values are a file's or folder's path where they match ``pattern``."""

    pattern: str = "."


IN_IDENTITIES = "in identities"
"""Marks a setting that a section of a fingerprint lacks, because another part of the fingerprint has it."""
Prompt = Annotated[str, File(r"\.txt$")]
"""A prompt that comes with the program, or a file."""


def _is_a_name(text: str) -> str:
    if text and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError("give the name of an environment variable, such as OPENAI_API_KEY, not what it holds")
    return text


Variable = Annotated[str, AfterValidator(_is_a_name)]
"""The name of an environment variable."""


class AnySection(BaseModel):
    """A section whose keys are checked elsewhere."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False, defer_build=True)


Model = TypeVar("Model", bound=AnySection)


class Section(AnySection):
    """One section: frozen, no unknown keys, no NaN or infinity, no number that a table cannot hold."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _is_bounded(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise ValueError(f"must be at most {MAX_NUMBER:,}")
        return value


def explained(section: type[Model]) -> type[Model]:
    """Return a section whose fields have the docstrings below them as descriptions. No section begins with these,
    because it takes time to read the source."""
    for each in reversed(section.__mro__[: section.__mro__.index(AnySection)]):
        (definition,) = ast.parse(inspect.getsource(each)).body
        for field, text in pairwise(definition.body):  # type: ignore[attr-defined]
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                name = ast.unparse(field.target)
                section.model_fields[name].description = " ".join(ast.literal_eval(text.value).split())
    section.model_rebuild(force=True)
    return section


def set_options(name: str, section: type[Section], values: Mapping[str, Any]) -> str:
    """Return `` --set NAME.KEY=VALUE`` for each of ``values`` that is a setting of the section and not its default,
    as it is typed in a command."""
    fields = section.model_fields
    non_defaults = {key: value for key, value in values.items() if key in fields and value != fields[key].default}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in non_defaults.items()}
    return "".join(f" --set {shell_word(f'{name}.{key}={text}')}" for key, text in texts.items())
