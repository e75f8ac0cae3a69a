"""``quit complexity``: reference-based retrieval complexity of any questions over any corpus."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.declaring import Group
from quit.commands.options import show, working
from quit.qa.commands import options
from quit.qa.commands.options import load_settings
from quit.render.table import Table

app = Group("How hard questions are for retrieval over a corpus (Gabburo et al.).")


@app.command()
def run(
    corpus: options.Corpus,
    index: options.Index = None,
    queries: Annotated[Path | None, typer.Option("-q")] = None,
    out: Annotated[Path, typer.Option("-o")] = Path("complexity"),
    source: options.QuestionSource = None,
    kind: options.QuestionKind = None,
    questions: options.QuestionLimit = None,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Find complex questions: no retrieved document answers them, and all together do not cover everything asked.

    One of the indexes must be dense. Writes complexity.parquet (one row per question) and complexity.json (counts, and
    agreement with known labels: hops, complex or not). A figure that is not defined in more than 2.5% of the
    bootstrap resamples has no interval (null, shown as –): there are too few questions.

    Example: `quit complexity run --corpus C --index BM25 --index DENSE`

    Args:
        queries: JSONL of {id, question, answers, hops?, complex?, kind?}; or the corpus's.
        out: Folder of the tables.
    """
    from quit.models.factory import Models
    from quit.qa.complexity.agreement import agreement
    from quit.qa.complexity.opinions import opinion_models
    from quit.qa.complexity.questions import questions_of, read_questions
    from quit.qa.complexity.retrieval_complexity import Ratings, rate, write
    from quit.qa.complexity.token_heads import Colbert
    from quit.qa.folders import building
    from quit.qa.indexes.encoders import ColbertEncoder
    from quit.qa.opening import check_selection, open_collection, select_questions
    from quit.qa.relevance import JudgedAnswers
    from quit.retrieval.complexity import AnswerHead, ContainedOrNear, LateInteraction

    check_selection(queries, source, kind)
    settings = load_settings(profile, set_)
    models = Models(settings)
    opinion_of = opinion_models(models, settings)
    model, stages = settings.complexity.token_model, settings.first_stages
    tokens = Colbert(ColbertEncoder(model, stages)) if model else LateInteraction(models.encoder)
    collection = open_collection(corpus, index or (), models, settings, dense=True)
    if queries is None:
        rows = questions_of(select_questions(collection.corpus, source, kind, questions))
    else:
        rows = read_questions(queries)[:questions]
    complexity = settings.complexity
    judged = complexity.answer_head == "judge"
    head: AnswerHead = JudgedAnswers(models.judge) if judged else ContainedOrNear(models.encoder)
    with working("complexity", as_json), building(out, "complexity run"):
        ratings = rate(rows, collection, head, tokens, complexity)
        opinions = {name: ask(rows) for name, ask in opinion_of.items()}
        rated = Ratings.of(rows, ratings, complexity, {name: opinion.verdicts for name, opinion in opinions.items()})
        about: dict[str, Any] = {"corpus": collection.corpus.identity, "first_stage": collection.first_stage.identity}
        about |= {"answer_head": head.identity, "token_head": tokens.identity, "agreement": agreement(rated)}
        about |= ChainMap(*(opinion.facts for opinion in opinions.values()))
        if isinstance(head, JudgedAnswers):
            about["head_replies"] = head.counts
        summary = write(rated, out, about)
    show(summary, as_json, [*pieces(summary), f"{out}: complexity.parquet, complexity.json"])


_TITLES = {
    "known_complex": "Known to be complex ({positive} of {items}): accuracy, F1, Matthews' correlation, area under the "
    "ROC curve",
    "correct": "A language model's own answers ({items} judged): share that is correct, Pearson's correlation with it",
}
_REPLIES = {
    "head_replies": "Judge of documents: {verdicts} verdicts, {unread} could not be read: s_i = 0",
    "baseline_replies": "language_model: {verdicts} verdicts, {unread} could not be read: not complex",
    "answer_replies": "Its own answers: {answers}, {no_answer} of them NO ANSWER, {cut} cut at "
    "{tokens} tokens; {unread_verdicts} verdicts could not be read and are left out",
}


def pieces(summary: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield counts, agreement with what is known, and what became of language models' replies."""
    yield (
        f"{summary['questions']} questions: {summary['answerable']} answerable by one document, "
        f"{summary['complete']} complete, {summary['complex']} complex"
    )
    for name, title in _TITLES.items():
        if part := summary["agreement"].get(name):
            yield Table(title.format(**part), ("", "value", "95% interval", "p"), list(_figures(part)))
    yield from (text.format(**summary[name]) for name, text in _REPLIES.items() if summary.get(name))


def _figures(part: dict[str, Any], before: str = "") -> Iterator[tuple[str, ...]]:
    for name, value in part.items():
        label = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, float):
            yield label, f"{value:.3f}", "", ""
        elif isinstance(value, dict) and "p" not in value:
            yield from _figures(value, f"{label} ")
        elif isinstance(value, dict) and value["value"] is None:
            yield label, "not defined", "", ""
        elif isinstance(value, dict):
            interval = "–" if value["low"] is None else f"{value['low']:.3f} to {value['high']:.3f}"
            yield label, f"{value['value']:.3f}", interval, f"{value['p']:.3f}"
