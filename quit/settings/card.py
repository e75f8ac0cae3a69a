"""Settings of the dataset card."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from pydantic import Field, field_validator

from quit.settings.section import Section

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9](?!.*(?:--|\.\.))[A-Za-z0-9._-]{0,94}(?<![.-])")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Card(Section):
    """The publisher's facts about the dataset, for its card and metadata. They change no table and no fingerprint."""

    name: str = ""
    """Name of the dataset."""
    description: str = ""
    """A paragraph on what it holds and what it is for."""
    repository: str = ""
    """Where it is published on the Hugging Face Hub: `ORG/NAME`."""
    homepage: str = ""
    """Address of a page on the dataset."""
    licence: str = ""
    """Licence of the dataset, best as the hub's identifier (`cc-by-4.0`), and of sources that name none. If not given:
    the sources' licences, `unknown` where one is not known."""
    licence_link: str = ""
    """Address of the licence's text, where the hub knows no such licence."""
    authors: tuple[str, ...] = ()
    """Names of the authors."""
    contact: str = ""
    """E-mail or address for questions about the dataset."""
    languages: tuple[str, ...] = Field(("en",), min_length=1)
    """Languages, as ISO 639 codes."""
    citation: str = ""
    """How to cite the dataset, best as BibTeX."""
    published: str = ""
    """Date of publication: `2026-11-22`."""
    biases: str = ""
    """Whom and what the questions over- and under-represent, and what they should not be used for."""
    personal_information: str = ""
    """Personal or sensitive information in the data, or that none is."""
    social_impact: str = ""
    """What good and what harm use of the dataset may do, and to whom."""
    annotator_pay: str = ""
    """How annotators were found and what they were paid."""
    consent: str = ""
    """What annotators were told of how their work is used, and how they agreed."""
    ethics: str = ""
    """Who reviewed the collection for ethics, or why nobody had to."""
    outputs_licence: str = ""
    """Terms of the language models whose replies the dataset holds: some forbid to train other models on them."""

    @field_validator("repository")
    @classmethod
    def _has_owner_and_name(cls, value: str) -> str:
        if value and (not _REPOSITORY.fullmatch(value) or len(value) > 96 or value.endswith(".git")):
            raise ValueError("write ORG/NAME, each of letters, digits, dots, dashes and underscores")
        return value

    @field_validator("languages")
    @classmethod
    def _are_codes(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not _LANGUAGE.fullmatch(value):
                raise ValueError(f"{value!r} is no ISO 639 code such as en or de")
        return values

    @field_validator("published")
    @classmethod
    def _is_a_date(cls, value: str) -> str:
        if value and not (_DATE.fullmatch(value) and date.fromisoformat(value)):
            raise ValueError("write the date as 2026-11-22")
        return value

    @property
    def given(self) -> dict[str, Any]:
        """The facts that are set, as JSON-like values."""
        return self.model_dump(mode="json", exclude_defaults=True)
