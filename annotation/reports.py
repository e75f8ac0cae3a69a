"""What a push and a pull return; to read them needs no Label Studio."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class PushReport:
    """What a push did. ``invitation``: the link with which people make an account, empty where the server is not the
    workspace's own. Numbers of tasks; ``remade``: deleted by hand on the server and created again; ``gone``: their
    question has left the dataset; ``blind``: of those to review; ``repaired``: whether the labelling page was put back;
    ``problems``: in words, each with what to do."""

    url: str = ""
    project: int = 0
    invitation: str = ""
    created: bool = False
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    remade: int = 0
    gone: int = 0
    controls: int = 0
    blind: int = 0
    repaired: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def has_news(self) -> bool:
        """Whether the project, its page or tasks are other than before."""
        return self.created or self.repaired or bool(self.new or self.changed or self.remade)


@dataclass
class PullReport:
    """What a pull brought. ``versions``: new versions of annotations, ``rows``: rows appended, ``verdicts``: those that
    accept or reject an answer, ``withdrawn``: deleted annotations, ``held``: deleted ones that still count,
    ``copied``: those on the server that nobody submitted, ``unclear``: those whose annotators have to be asked what
    they mean, ``tasks``: tasks on the server, ``done``: those with all the annotations they need, ``problems``: in
    words, each with what to do."""

    url: str = ""
    project: int = 0
    versions: int = 0
    rows: int = 0
    verdicts: int = 0
    withdrawn: int = 0
    held: int = 0
    skipped: int = 0
    copied: int = 0
    unclear: int = 0
    tasks: int = 0
    done: int = 0
    part: str | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def has_news(self) -> bool:
        """Whether rows were appended."""
        return self.rows > 0
