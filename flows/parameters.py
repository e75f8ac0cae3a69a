"""The flows' parameters: those of their jobs, and ``limits``. What a form says of a parameter is the ``Args`` of the
job's docstring."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, get_type_hints

from prefect.exceptions import ParameterTypeError
from pydantic import BaseModel, Field, model_validator

from quit.errors import QuitError
from quit.export import FORMATS
from quit.flows.scheduling import run_with_limits
from quit.library.results import JobResult
from quit.release.gates import GATES, parse_waivers
from quit.settings import Limits, profile_names
from quit.settings.section import explained
from quit.text.words import documented

Profile = (
    Annotated[str, Field(title="Name or TOML file")]
    | Annotated[str, Field(title="List of profiles", json_schema_extra={"enum": [*profile_names()]})]
)
"""The text is first: a form shows a value by the first type of its kind, and a path is not in the list."""
Format = Annotated[str, Field(pattern=f"^({'|'.join(FORMATS)})$", json_schema_extra={"enum": [*FORMATS]})]
Step = Literal["push", "pull"]


class Waiver(BaseModel):
    """A gate that may fail, and why; the text ``GATE=REASON`` is one too. The release checks both."""

    gate: str = Field(json_schema_extra={"enum": [*GATES]})
    reason: str = Field(description="Published with the data.")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return dict(zip(cls.model_fields, *parse_waivers([value]).items(), strict=True))


Work = Callable[[dict[str, Any]], JobResult[Any]]
JOB_OF: dict[Callable[..., Any], Callable[..., JobResult[Any]]] = {}
"""The job of each flow's function."""
_OPEN = {"Workspace": str, "ApplyReport": object, "datetime": object}  # a form names a workspace by its folder
_NOT_GIVEN: dict[str, Any] = {"profile": "", "settings": ()}
"""What a form has in place of None; JSON makes other types of it."""
_LIMITS = inspect.Parameter(
    "limits", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=Limits(), annotation=explained(Limits)
)


def of_job(job: Callable[..., JobResult[Any]], **types: Any) -> Callable[[Work], Callable[..., Any]]:
    """Make a function of a job's arguments a flow's function, which takes ``limits`` too and works under them.

    ``types``: of parameters whose forms offer a list.
    """
    helps = documented(job)[1] | {"limits": "Timeout and retries."}
    hints = get_type_hints(job, localns=_OPEN) | types
    parameters = {}
    for name, each in inspect.signature(job).parameters.items():
        if name in helps:
            default = _NOT_GIVEN[name] if each.default is None else each.default
            parameters[name] = each.replace(kind=_LIMITS.kind, default=default, annotation=hints[name])
    parameters["limits"] = _LIMITS
    signature = inspect.Signature(list(parameters.values()))

    def make(work: Work) -> Callable[..., Any]:
        def run(*positions: Any, **names: Any) -> Any:
            values = signature.bind(*positions, **names).arguments
            limits = values.pop("limits", _LIMITS.default)
            arguments = {name: value for name, value in values.items() if value or name not in _NOT_GIVEN}
            return run_with_limits(limits, partial(work, arguments))

        lines = [f"    {name}: {helps[name]}" for name in parameters]
        JOB_OF[run] = job
        run.__name__, run.__qualname__, run.__module__ = work.__name__, work.__qualname__, work.__module__
        run.__doc__ = "\n".join([inspect.cleandoc(work.__doc__ or ""), "", "Args:", *lines])
        run.__annotations__ = {name: each.annotation for name, each in parameters.items()}
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return make


logging.getLogger("prefect.flows").addFilter(lambda record: "Parameter validation failed" not in str(record.msg))


def fault_in(error: ParameterTypeError | QuitError) -> str:
    """Return what is wrong with a parameter, of all that Prefect says, whose log lines on it are left out."""
    return str(error).strip().splitlines()[-1].strip(" -")
