"""The small JSON files of a workspace: what they must hold, and one line for people where they do not."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from quit.errors import WorkspaceError

_T = TypeVar("_T")


def first_fault(error: ValidationError) -> str:
    """Return where a value has not its shape, and why: the first of all faults."""
    first = error.errors()[0]
    message = first["msg"].partition(" or instance of ")[0]  # a class of the program's own
    return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {message}"


class StateFile(Generic[_T]):
    """A small file: its name, what it holds (more keys may be there), and what to do where it does not."""

    def __init__(self, name: str, shape: Any, advice: str = "Delete it and build again: quit build.") -> None:
        self.name = name
        self._shape = shape
        self._advice = advice

    @cached_property
    def _adapter(self) -> TypeAdapter[_T]:
        return TypeAdapter(self._shape)

    def read(self, folder: Path) -> _T | None:
        """Return the value of the file in a folder, None where there is none.

        Raises :class:`WorkspaceError` for one that cannot be read or does not hold what it must.
        """
        path = folder / self.name
        try:
            if path.is_fifo():
                raise OSError("it is a pipe, not a file")
            value = json.loads(path.read_text(encoding="utf-8"))
            self._adapter.validate_python(value, strict=True)
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise WorkspaceError(f"{path} is damaged: {first_fault(error)}. {self._advice}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise WorkspaceError(f"{path} cannot be read: {error}. {self._advice}") from error
        return value
