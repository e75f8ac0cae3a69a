"""The tables of a workspace or a release, and the jobs that start from them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa

from quit import contracts
from quit.common.ids import HINT_CHARACTERS
from quit.dataset.files import current_files
from quit.dataset.release import Release, open_release
from quit.engine.workspace import Workspace
from quit.errors import InputError, did_you_mean
from quit.library import exporting, jobs, reviewing
from quit.library.arguments import Format, Overrides, Split, as_list, override_texts
from quit.library.results import ExportResult, ReleaseFacts
from quit.release.view import open_to_read

if TYPE_CHECKING:
    import pandas as pd

    from quit.annotation.reports import PullReport, PushReport
    from quit.report.facts import Facts
    from quit.review.apply import ApplyReport
    from quit.review.status import ReviewStatus
    from quit.status.story import Story

_COUNTS = """
    SELECT split, count(DISTINCT question_id) AS questions, count(*) AS passages, count(*) FILTER (label = 2) AS fully
    FROM labels JOIN splits USING (question_id) GROUP BY split ORDER BY list_position(['train', 'dev', 'test'], split)
"""
# The rows of TableFiles.passages, in SQL: their columns, texts and order of valid answers are the same.
_LABELLED_PASSAGES = f"""
    CREATE VIEW labelled_passages AS
    SELECT question_id, permutation, question,
        array_to_string([hints[instr('{HINT_CHARACTERS}', digit)] FOR digit IN string_split(permutation, '')], ' ')
            AS text,
        label, valid AS answers, split
    FROM labels JOIN splits USING (question_id) JOIN questions USING (question_id)
        JOIN (SELECT question_id, list(hint ORDER BY rank) AS hints FROM ranked_hints WHERE selected GROUP BY 1)
            USING (question_id)
        JOIN (SELECT question_id, list(answer ORDER BY list_position(answers, answer) NULLS LAST, origin,
                if(origin = 'review', answer_key, answer)) AS valid
            FROM valid_answers JOIN questions USING (question_id) GROUP BY 1) USING (question_id)
"""


class Tables:
    """The tables of a workspace or a release: ``quit.open(folder)`` and ``quit.build(...)`` return them.

    They are current: after a review, labels and verdicts are those of the update. ``tables["labels"].schema`` has a
    table's columns.

    Attributes:
        facts: Of a release ``path``, ``name``, ``content_id`` and, from :meth:`release`, ``new`` and ``note``; None for
            a workspace.
    """

    def __init__(self, opened: Workspace | Release, facts: ReleaseFacts | None = None) -> None:
        self._opened = opened
        if isinstance(opened, Release) and facts is None:
            facts = ReleaseFacts(str(opened.path), opened.name, opened.content_id)
        self.facts = facts

    @property
    def _workspace(self) -> Workspace:
        """Raises ``WorkspaceError`` for a release."""
        return self._opened if isinstance(self._opened, Workspace) else Workspace.open(str(self._opened))

    @property
    def _short_path(self) -> str:
        """The folder, relative to the working folder if it lies below it."""
        with suppress(OSError, ValueError):  # the working folder was deleted; the folder lies elsewhere
            return str(Path(str(self._opened)).relative_to(Path.cwd()))
        return str(self._opened)

    @property
    def kind(self) -> Literal["workspace", "release"]:
        """Which of the two is open."""
        return "release" if isinstance(self._opened, Release) else "workspace"

    def __repr__(self) -> str:
        return f"<{self.kind} {self._short_path}>"

    def _repr_html_(self) -> str:
        rows = [("split", "questions", "passages", "label 2")]
        rows += [(row["split"], *(f"{row[name]:,}" for name in list(row)[1:])) for row in self.sql(_COUNTS).to_pylist()]
        cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
        table = "".join(f"<tr>{row}</tr>" for row in cells) if len(rows) > 1 else "no labelled passages"
        return f"<b>{html.escape(self._short_path)}</b><table>{table}</table>"

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        if isinstance(release := self._opened, Release):
            return list(dict.fromkeys(name.partition("/")[0] for name in release.files.parts))
        return list(contracts.TABLES)

    def arrow(self, name: str) -> pa.Table:
        """Return a table as Arrow, empty if no stage has written rows. The same: ``tables["labels"]``.

        Raises:
            InputError: There is no table of this name.
        """
        if name not in self.names:
            raise InputError(f"{self._opened} has no table {name!r}.{did_you_mean(name, self.names)}")
        return self._opened.read(name)

    __getitem__ = arrow

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def pandas(self, name: str) -> pd.DataFrame:
        """Return a table as a pandas data frame. Raises as :meth:`arrow`."""
        return self.arrow(name).to_pandas()

    def passages(self, split: Split | None = None) -> pa.RecordBatchReader:
        """Return the labelled passages with their texts, batch by batch: ``question_id``, ``permutation``,
        ``question``, ``text``, ``label``, ``answers`` (valid ones) and ``split``.

        ``.read_pandas()`` makes a data frame, ``.read_all()`` an Arrow table; a loop over it gets batches of at most
        131,072 passages.

        Args:
            split: ``train``, ``dev`` or ``test``; all if not given.

        Raises:
            InputError: The split is unknown, or nothing is labelled yet.
        """
        opened = self._opened
        return (opened.files if isinstance(opened, Release) else current_files(opened)).passages(split)

    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """Return an in-memory DuckDB connection with a view per table, which reads what a query needs. The view
        ``labelled_passages`` has what :meth:`passages` gives."""
        connection = self._opened.connect(tables=self.names, connection=duckdb.connect())  # people make tables in it
        connection.execute(_LABELLED_PASSAGES)
        return connection

    def sql(self, query: str) -> pa.Table:
        """Return the rows of a query over the tables as Arrow; ``.to_pandas()`` makes a data frame of them.

        Raises:
            InputError: DuckDB refuses the query.
        """
        try:
            result = self.duckdb().sql(query)
            return pa.table({}) if result is None else result.select("*").to_arrow_table()  # no name twice
        except duckdb.Error as error:
            raise InputError(f"DuckDB refuses the query: {error}") from None

    def question(self, question_id: str | int) -> Story:
        """Return everything about one question, as a dictionary of the type ``quit.Story``: ``question``, ``hints``,
        ``passages`` (text, label, answers), ``verdicts``, ``reviews``, ``rejects`` and more.

        Args:
            question_id: Its id, or its source's id where only one question has it.

        Raises:
            InputError: No question, or more than one, has this id.
        """
        from quit.status.story import story

        return story(self._opened, str(question_id))

    def export(
        self,
        formats: Format | Sequence[Format] | None = None,
        out: str | Path = "exports",
        *,
        card: str | Path | None = None,
        benchmark: str | Path | None = None,
        paper_keys: bool = False,
        evaluation: bool = False,
        push: str | None = None,
        public: bool = False,
        dry_run: bool = False,
        overwrite: bool = False,
        positives: int = 10,
        negatives: int = 10,
        negative_kind: str = "other",
        seed: str = "export",
        progress: bool = True,
    ) -> ExportResult:
        """Write the labelled dataset in formats that other tools read, and publish it.

        Args:
            formats: One format, such as ``"huggingface"``, or several. If not given: ``huggingface``, and
                ``release-json`` where it can have the passages.
            out: Folder to write into; one subfolder per format.
            card: TOML file with a block ``[card]``; that of the build's profile or of the release if not given.
            benchmark: Folder of ``quit benchmark run``, for baselines in the card.
            paper_keys: The paper's names of readers and subsets, and ids in three parts (release-json, paper-index);
                the question's id as title (tevatron).
            evaluation: Write tasks for Inspect, lm-evaluation-harness and MTEB beside the data (huggingface).
            push: ``ORG/NAME``: publish huggingface on the hub, with the token in ``HF_TOKEN``; private. The name
                of a release becomes a tag there.
            public: Let everyone see what is pushed.
            dry_run: List what would be pushed; needs no token.
            overwrite: Replace an earlier export.
            positives: Passages of label 2 per question, at most (tevatron, colbert, monot5, as the next three).
            negatives: Negative passages per question, at most.
            negative_kind: ``other`` (label 2 of other questions: the paper's), or ``any`` (of theirs).
            seed: Key of the choice of positives and negatives, and of the passages of ``evaluation``.
            progress: Show how far it is.

        Returns:
            A dictionary of the type ``quit.ExportResult``: ``formats``, and with ``push`` also ``published``.

        Raises:
            InputError: A format needs answers or labels that are missing.
            SettingsError: A format or option is wrong, or the folder holds another export.
            ServerError: The hub does not answer or refuses.
            WorkspaceError: The build is not finished, or the disk refuses.
        """
        from quit.export import FineTuning

        names: list[str] | None = None if formats is None else as_list(formats)
        with _working("export", progress):
            return exporting.export(
                self._opened,
                names,
                Path(out),
                card=Path(card) if card else None,
                target=exporting.target_of(self._opened, push, names, public=public, dry_run=dry_run),
                dry_run=dry_run,
                overwrite=overwrite,
                paper_keys=paper_keys,
                benchmark=Path(benchmark) if benchmark else None,
                evaluation=evaluation,
                fine_tuning=FineTuning(positives, negatives, negative_kind, seed),
            )

    def release(
        self,
        name: str,
        *,
        waive: Mapping[str, str] | Iterable[str] = (),
        settings: Overrides | None = None,
        out: str | Path | None = None,
        progress: bool = True,
    ) -> Tables:
        """Freeze the current tables as a release, if every gate is passed or waived. Of a workspace only.

        Args:
            name: Name of the version, such as ``v1``.
            waive: Gate -> reason, published with the data.
            settings: Of the section ``release``, for this call.
            out: Folder of the release; ``WORKSPACE/releases/NAME`` if not given.
            progress: Show how far it is.

        Returns:
            The tables of the release; ``facts.new`` says whether it was frozen now.

        Raises:
            GateError: A gate failed and is not waived.
            WorkspaceError: The build is not finished, or the name is taken by other content.
        """
        waivers = (
            [f"{gate}={why or ''}" for gate, why in waive.items()] if isinstance(waive, Mapping) else as_list(waive)
        )
        with _working("release", progress):
            facts = jobs.release(
                self._workspace,
                name,
                waivers,
                folder=str(Path(out).absolute()) if out else "",
                settings=override_texts(settings),
            ).result
        return Tables(open_release(facts.path), facts)

    def report(self, out: str | Path | None = None, *, progress: bool = True) -> Path:
        """Write one HTML page about the dataset.

        Args:
            out: The file; ``WORKSPACE/report.html`` if not given, ``RELEASE.html`` beside a release.
            progress: Show how far it is.

        Returns:
            The path of the page.

        Raises:
            InputError: Nothing was built.
        """
        from quit.report.page import render, write

        opened = self._opened
        if isinstance(opened, Release):  # nothing is ever written into one
            folder = opened.path if opened.path.name not in ("", "..") else opened.path.resolve()
            target = Path(out or f"{folder}.html")
        else:
            target = Path(out or opened.path / "report.html")
        with _working("report", progress):
            write(render(self._facts()), target)
        return target

    def figures(self) -> dict[str, Any]:
        """Return what the report shows as JSON-like values. Errors: as of :meth:`report`."""
        return {**self._facts()}

    def _facts(self) -> Facts:
        from quit.engine.request import settings_of
        from quit.report.data import gather

        return gather(self._opened, settings_of(self._opened))

    def review_push(
        self,
        url: str | None = None,
        *,
        project: int | None = None,
        new_project: bool = False,
        repair: bool = False,
        settings: Overrides | None = None,
        progress: bool = True,
    ) -> PushReport:
        """Make or update the project in Label Studio where people review. Of a workspace only.

        Args:
            url: The server, with its token in ``LABEL_STUDIO_API_KEY``; the workspace's own, which
                ``quit review serve`` runs, if not given.
            project: Number of the project, where several belong to this workspace.
            new_project: Make a new project and leave the last one.
            repair: Put back a labelling page that someone edited.
            settings: Of the section ``review``, remembered from now on.
            progress: Show how far it is.

        Raises:
            InputError: There is nothing to review.
            ServerError: Label Studio does not answer.
            SettingsError: The token is refused, or a setting is of another section.
        """
        with _working("push", progress):
            reports = reviewing.review_sync(
                self._workspace,
                url or "",
                ["push"],
                project or 0,
                new_project=new_project,
                repair=repair,
                settings=override_texts(settings),
            ).result
        return reports["push"]

    def review_pull(
        self,
        url: str | None = None,
        *,
        project: int | None = None,
        full: bool = False,
        accept_withdrawals: bool = False,
        progress: bool = True,
    ) -> PullReport:
        """Import what people did so far into the table ``reviews``.

        Args:
            url, project, progress: As of :meth:`review_push`, whose errors it has.
            full: Read every task, not only those changed since the last pull.
            accept_withdrawals: Withdraw reviews even if many annotations were deleted at once.
        """
        with _working("pull", progress):
            reports = reviewing.review_sync(
                self._workspace, url or "", ["pull"], project or 0, full=full, accept_withdrawals=accept_withdrawals
            ).result
        return reports["pull"]

    def review_status(self) -> ReviewStatus:
        """Return how far the review is, as ``quit review status --json`` prints it. Asks no server."""
        from quit.engine.request import settings_of
        from quit.review.status import review_status

        return review_status(self._workspace, settings_of(self._workspace).review)

    def review_apply(
        self, *, withdraw: bool = False, settings: Overrides | None = None, progress: bool = True
    ) -> ApplyReport:
        """Update labels and valid answers with the reviews pulled so far. Of a workspace only; twice changes nothing.

        Args:
            withdraw: Take every review off the labels again.
            settings: Of the section ``review``, remembered from now on.
            progress: Show how far it is.

        Raises:
            SettingsError: A setting is of another section.
            WorkspaceError: Another run holds the workspace.
        """
        with _working("update", progress):
            reports = reviewing.label_update(
                self._workspace, withdraw=withdraw, settings=override_texts(settings)
            ).result
        return reports["update"]


def open_tables(folder: str | Path) -> Tables:
    """Open the tables of a workspace or a release: its folder.

    Raises:
        WorkspaceError: The folder is neither.
        InputError: A file of the release is not what was frozen.
    """
    return Tables(open_to_read(Path(folder).absolute()))


def _working(title: str, progress: bool) -> AbstractContextManager[None]:
    from quit.library.progress import working

    return working(title, not progress)
