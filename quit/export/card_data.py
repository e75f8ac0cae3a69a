"""Sections of the dataset card on the data: what it holds, an example, what figures can reach, statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quit.dataset.dataset import FULLY, SPLITS
from quit.dataset.statistics import Summary
from quit.export.baselines import METRICS
from quit.export.card_facts import PAPER, CardFacts, cell, code, markdown_table, prose, reader_names, setting

SYSTEMS = 8
"""Systems at most of the baselines."""
_BINS = ("easy", "medium", "hard")
_ROWS = (  # of table 1: label, field, digits
    ("Avg. question length (words)", "question_words", 2),
    ("Avg. passage length (words)", "passage_words", 2),
    ("Avg. answer length (words), valid answers", "answer_words", 2),
    ("Avg. answer length (words), gold answers", "gold_answer_words", 2),
    ("Query-passage lexical overlap", "lexical_overlap", 4),
    ("Answer containment", "answer_containment", 4),
    ("Query-passage semantic similarity", "semantic_similarity", 2),
)


def warning(facts: CardFacts) -> str:
    """Warn of embedded readers, where there are any."""
    if not facts.tables.embedded:
        return ""
    embedded = reader_names(info for info in facts.tables.readers if info.kind == "embedded")
    return (
        f"> **Warning: embedded readers.** The answers of {embedded or 'at least one reader'} come from small guessers "
        "that choose from a pool of answers, not from language models. Their labels show how the pipeline works; do "
        "not compare them with labels made by language models, such as those of the QUIT dataset."
    )


def summary(facts: CardFacts) -> str:
    """Say what the dataset is, which splits are empty, and who made it."""
    empty = " and ".join(f"`{split}`" for split in SPLITS if not facts.of("questions", split))
    pieces = [
        facts.card.description.strip()
        or "Questions whose answers must be inferred: each passage is an ordered selection of hints, which point to "
        f"the answer and do not state it. Made by the method of {PAPER}.",
        empty and f"There are no questions in {empty}: it has no files and cannot be loaded.",
    ]
    about = [
        ("Authors", ", ".join(facts.card.authors)),
        ("Contact", facts.card.contact),
        ("Homepage", facts.card.homepage),
    ]
    pieces.append(" ".join(f"**{name}**: {cell(value)}." for name, value in about if value))
    return "\n\n".join(piece for piece in pieces if piece)


def loading(facts: CardFacts) -> str:
    """Give the line that loads it, and the configs with their rows and columns."""
    rows = []
    for config, schema in facts.schemas.items():
        counts = [f"{sum(shard.rows for shard in facts.of(config, split)):,}" for split in SPLITS]
        rows.append([f"`{config}`", *counts, ", ".join(f"`{name}`" for name in schema.names)])
    where = facts.card.repository or "FOLDER"
    comment = "" if facts.card.repository else "  # FOLDER: where this README.md is"
    split = next(split for split in reversed(SPLITS) if facts.of("passages", split))
    return (
        "```python\nfrom datasets import load_dataset\n\n"
        f'passages = load_dataset("{where}", "passages", split="{split}"){comment}\n```\n\n'
        + markdown_table(["config", *SPLITS, "columns"], rows)
        + "\n\nA passage's id is `{question id}_{subset}_{permutation}`: the indices of its hints (`hints.index`), "
        "ascending and in reading order. Its text is these hints, joined by one space. `qrels` holds labels 2 and 1; "
        "every passage of another question is irrelevant (0) and not listed. `answers.correct` is null where no "
        "verdict is known."
        + (" `answers.answer` is null where the reader was not asked." if facts.tables.partly_asked else "")
    )


def example(facts: CardFacts) -> str:
    """Show a question with passages and what labelers answered from them."""
    question = facts.example.question
    text = (
        f"Question {code(question['id'])}: *{prose(question['question'])}* "
        f"{_gold(facts)}: {_listed(question['answers'])}."
    )
    if question["valid_answers"] != question["answers"]:
        text += f" Valid answers: {_listed(question['valid_answers'])}."
    text += f" From its passages, with what the labelers ({reader_names(facts.tables.labelers)}) answered:\n\n"
    rows = [
        [code(row["id"]), prose(row["text"]), str(row["label"]), "; ".join(prose(text) for text in row["answers"])]
        for row in facts.example.passages
    ]
    return text + markdown_table(["`id`", "`text`", "`label`", "labelers' answers"], rows)


def _gold(facts: CardFacts) -> str:
    """Return what the column ``answers`` holds: published files do not tell gold answers from others."""
    return "Valid answers" if facts.tables.provenance.get("imported") else "Gold answers"


def _listed(answers: Sequence[str]) -> str:
    more = f" and {len(answers) - 5} more" if len(answers) > 5 else ""
    return ", ".join(prose(answer) for answer in answers[:5]) + more


def bounds(facts: CardFacts) -> str:
    """Give labels by split, what figures they allow, and the answers that splits share."""
    rows = [
        [
            row.split,
            f"{row.questions:,}",
            f"{row.without_label_2:,}",
            f"{row.bound:.1%}",
            f"{row.passages:,}",
            f"{row.passages - row.label_2:,}",
            f"{row.label_2:,} ({row.share:.1%})",
            *([f"{row.predicted:,}"] if facts.tables.predicted else []),
        ]
        for row in facts.labels
    ]
    head = ["", "questions", "without label 2", "Hit, RR at most", "passages", "label 1", "label 2"]
    head += ["predicted"] if facts.tables.predicted else []
    shared = [
        f"{len(row.answers):,} in {row.first} and {row.second} (of {row.first_questions:,} and "
        f"{row.second_questions:,} questions), such as {prose(row.answers[0])}"
        for row in facts.shared
        if row.answers
    ]
    return (
        markdown_table(head, rows)
        + "\n\nLabel 2 means that at least one labeler answers correctly from the passage. A "
        "question without such a passage counts as 0 in Hit, RR (MRR) and Recall at label 2 (`rel=2`), whatever a "
        "system retrieves: their means cannot exceed the share in the column *Hit, RR at most*. Metrics that count "
        "label 1 as well have no such bound.\n\n"
        + (f"{_gold(facts)} in two splits: {'; '.join(shared)}." if shared else "No two splits share an answer.")
    )


def baselines(facts: CardFacts) -> str:
    """Give the figures of a benchmark, where one was named."""
    if facts.baselines is None:
        return ""
    systems = facts.baselines.rows
    metrics = [metric for metric in METRICS if any(metric in values for values in systems.values())]
    rows = [
        [cell(system), *(f"{100 * values[metric]:.2f}" if metric in values else "" for metric in metrics)]
        for system, values in systems.items()
    ]
    more = f" {len(rows) - SYSTEMS} more systems are not shown." if len(rows) > SYSTEMS else ""
    questions = cell(facts.baselines.questions)
    return (
        f"## Baselines\n\nPercent, by `quit benchmark run` (questions: {questions}). `oracle` knows the labels: a "
        f"bound, not a system.{more}\n\n" + markdown_table(["system", *metrics], rows[:SYSTEMS])
    )


def statistics(facts: CardFacts) -> str:
    """Give the paper's table 1, and the share of label 2 by hints, type and difficulty."""
    figures, total = facts.figures, facts.figures.summary[-1]
    rows = [
        [label, *(_number(summary, name, digits) for summary in figures.summary)]
        for label, name, digits in _ROWS
        if name != "gold_answer_words" or total.gold_answer_words is not None
    ]
    similarity = "Semantic similarity was not measured."
    if figures.encoder is not None:
        error = "" if total.similarity_error is None else f", standard error {total.similarity_error:.3f}"
        similarity = (
            f"Semantic similarity: cosine by `{figures.encoder}` on a seeded sample of {total.similarity_sample:,} "
            f"passages{error}."
        )
    groups = [
        f"- Share of label 2 by {title}: {', '.join(shares)}"
        for title, table, column in (
            ("number of hints", figures.by_hints, "n_hints"),
            ("question type", figures.by_type, "coarse"),
            ("difficulty", figures.by_difficulty, "difficulty_bin"),
        )
        if (shares := _shares(table, column))
    ]
    return (
        markdown_table(["", *(summary.split for summary in figures.summary)], rows)
        + "\n\nWords are split on single spaces. Lexical overlap: Jaccard index of the word sets without English stop "
        f"words. {_containment(facts)} {similarity}\n\n" + "\n".join(groups)
    )


def _containment(facts: CardFacts) -> str:
    """Say what answer containment counts, and why it may be above 0 after the leakage filter."""
    text = "Answer containment: share of passages with a valid answer as a case-insensitive substring"
    leakage = setting(facts, "leakage")
    if leakage.get("method", "full") == "bem":
        return (
            f"{text}. The leakage filter judged single words by answer equivalence (the paper's method) and looks for "
            "no substrings, so a share above 0 is possible."
        )
    if not leakage:
        return f"{text}."
    gold = "gold answers as substrings" if leakage.get("contained", True) else "gold answers as whole words"
    return (
        f"{text}. The leakage filter looks for {gold} and for accepted answers as whole words, so an accepted answer "
        "inside a longer word may remain."
    )


def _number(summary: Summary, name: str, digits: int) -> str:
    value = getattr(summary, name)
    return "–" if value is None else f"{value:,.{digits}f}"


def _shares(table: pa.Table, column: str) -> list[str]:
    """Return each group's share of label 2 with the number of its passages; bins of difficulty from easy to hard."""
    rows = [row for row in table.to_pylist() if row["split"] == "all"]
    passages: Counter[Any] = Counter()
    for row in rows:
        passages[row[column]] += row["passages"]
    fully = [row for row in rows if row["label"] == FULLY]
    fully.sort(key=lambda row: _BINS.index(row[column]) if row[column] in _BINS else 0)
    return [f"{cell(row[column])}: {row['share']:.1%} of {passages[row[column]]:,}" for row in fully]
