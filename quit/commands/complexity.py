"""``quit complexity``: reference-based retrieval complexity of any questions over any corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.options import (
    CorpusOption,
    IndexOption,
    JsonOption,
    NamedProfileOption,
    QuestionKindOption,
    QuestionLimitOption,
    QuestionSourceOption,
    SetOption,
    load_settings,
    local_folder,
    show,
)

app = typer.Typer(help="How hard questions are for retrieval over a corpus (Gabburo et al.).", no_args_is_help=True)


@app.command()
def run(
    corpus: CorpusOption,
    index: IndexOption = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", "-q", help="JSONL of {id, question, answers, hops?, complex?, kind?}; else the corpus's."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", **local_folder, help="Folder of the tables.")] = Path(
        "complexity"
    ),
    source: QuestionSourceOption = None,
    kind: QuestionKindOption = None,
    limit: QuestionLimitOption = None,
    profile: NamedProfileOption = "embedded",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find complex questions: no retrieved document answers them, and all together do not cover everything asked.

    One of the indexes must be dense. Writes complexity.parquet (one row a question) and complexity.json (counts, and
    agreement with known labels: hops, complex or not, types).

    Example: `quit complexity run --corpus C --index BM25 --index DENSE`
    """
    from quit.models.factory import Models
    from quit.retrieval.complexity import AnswerHead, ContainedOrNear, token_head
    from quit.retrieval.hybrid import DEPTH
    from quit.systems import retrieval_complexity as rrcp
    from quit.systems.collection import chosen
    from quit.systems.complexity_models import Opinions
    from quit.systems.opening import open_collection
    from quit.systems.relevance import JudgedAnswers

    settings = load_settings(profile, set_)
    models = Models(settings)
    opinions = Opinions(models, settings)
    tokens = token_head(
        settings.complexity.token_head, settings.complexity.token_model, models.encoder, settings.first_stages
    )
    opened = open_collection(corpus, index or (), models, settings, dense=True)
    if queries is None:
        asked = rrcp.asked_of(chosen(opened.corpus, source, kind, limit))
    else:
        asked = rrcp.read_asked(queries)[:limit]
    own = settings.complexity
    head: AnswerHead = JudgedAnswers(models.judge) if own.answer_head == "judge" else ContainedOrNear(models.encoder)

    def search(texts: Any) -> Any:
        return [ranking.rows for ranking in opened.first_stage.search(texts, max(DEPTH, own.documents))]

    rated = rrcp.rate(asked, opened.corpus, search, opened.vectors, models.encoder, head, tokens, own)
    rated = opinions.added_to(rated)
    about: dict[str, Any] = {"corpus": opened.corpus.identity, "first_stage": opened.first_stage.identity}
    about |= {"answer_head": head.identity, "token_head": tokens.identity, **opinions.about}
    if isinstance(head, JudgedAnswers):
        about["head_replies"] = {"verdicts": head.asked, "unread": head.unread}
    whole = rrcp.write(rated, out, about, own)
    show(whole, as_json, [*rrcp.lines(whole), f"{out}: complexity.parquet, complexity.json"])
