"""Sections of the dataset card on its origin: how it was made, who verified it, limits, sources, how to cite it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit.evaluate.labels import ReaderAgreement, predicted_sentence
from quit.export.card_facts import (
    CITATION,
    LISTED,
    PAPER,
    CardFacts,
    cell,
    code,
    count,
    markdown_table,
    reader_names,
    setting,
    source_list,
)


def making(facts: CardFacts) -> str:
    """Say how the dataset was made, by which readers, and how far these agree."""
    tables = facts.tables
    imported = tables.provenance.get("imported")
    asked = facts.agreement.asked
    cut = {name: f"{count / asked[name]:.1%}" for name, count in tables.cut.items() if count}
    rows = [
        [
            *(code(info.name), info.role, info.kind, f"{facts.agreement.correct[info.name]:.1%}"),
            *([f"{asked[info.name]:,}"] if tables.partly_asked else []),
            *([cut.get(info.name, "–")] if cut else []),
            code(info.identity),
        ]
        for info in tables.ordered_readers
    ]
    return "\n\n".join(
        [
            _imported(imported) if imported else _steps(facts),
            markdown_table(
                [
                    *("reader", "role", "kind", "correct answers"),
                    *(["passages asked"] if tables.partly_asked else []),
                    *(["replies cut"] if cut else []),
                    "identity",
                ],
                rows,
            ),
            _agreement(facts),
            _replies(facts),
        ]
    )


def _replies(facts: CardFacts) -> str:
    """Count the replies of language models by the address of the server that gave them."""
    counts = facts.tables.provenance.get("replies") or {}
    each = [
        f"{code(model)}: {count(number, 'reply', 'replies')} from {cell(origin.partition(' ')[0] or 'this program')}"
        for model, of_model in counts.items()
        for origin, number in of_model.items()
    ]
    return f"Replies of language models, over all runs: {'; '.join(each)}." if each else ""


def _steps(facts: CardFacts) -> str:
    tables = facts.tables
    leakage, split, probe = (setting(facts, name) for name in ("leakage", "split", "probe"))
    lost = "hints" if leakage.get("mode") == "hint" else "questions with hints"
    method = {
        "bem": "judged by answer equivalence, one word of a hint at a time (the paper's method)",
        "full": "judged by lexical rules and an answer equivalence model (our method)",
    }.get(leakage.get("method", "full"), "")
    producers = _producers(tables.ranked_hints.filter(tables.ranked_hints["selected"]), "producer")
    first = setting(facts, "collect").get("questions")
    steps = [
        *([f"**Questions**: the first {first:,} usable ones of the sources (`collect.questions`)."] if first else []),
        f"**Leakage**: {lost} that give the answer away are left out, {method}.",
        f"**Hints**: of each question, those with the highest convergence, the share of wrong candidate answers that a "
        f"hint rules out ({producers}).",
        f"**Question types** {_producers(tables.descriptions, 'type_producer')}, **difficulty** "
        f"{_producers(tables.descriptions, 'difficulty_producer')}.",
        "**Splits**: questions that a reader answers without any hint make train"
        + (f" (asked {probe['repetitions']} times)" if "repetitions" in probe else "")
        + "; the others make dev and test"
        + (f", by a keyed hash of the question (`split.seed` {split['seed']})." if "seed" in split else "."),
        "**Passages**: every ordered selection of a question's hints, "
        f"{facts.example.question['passages']:,} a question.",
        _labels(facts),
    ]
    numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return f"By the method of {PAPER}. All settings are in `settings.json`.\n\n{numbered}"


def _producers(table: pa.Table, column: str) -> str:
    names = sorted(set(table[column].to_pylist()) - {None})
    return "by " + ", ".join(map(code, names[:3])) if names else "by an unknown model"


def _labels(facts: CardFacts) -> str:
    tables = facts.tables
    of_model = tables.verdicts.filter(pc.equal(tables.verdicts["basis"], "model"))
    judges = sorted(set((of_model if len(of_model) else tables.verdicts)["judge"].to_pylist()) - {None})
    return (
        f"**Labels**: {_asked(facts)} Label 2 (fully relevant): the answer of at least one "
        f"labeler ({reader_names(tables.labelers)}) is correct; else label 1 (partially relevant). Each distinct "
        "answer of a question is judged once: it is correct if it equals a gold answer or the judge "
        f"({', '.join(map(code, judges)) or 'none'}) accepts it, and is then among `valid_answers`."
        + (" People's verdicts overrule the judge's." if _reviewed(tables.provenance) else "")
    )


def _asked(facts: CardFacts) -> str:
    """Say about which passages the readers were asked."""
    tables = facts.tables
    if not tables.partly_asked:
        return "every reader answers from every passage."
    text = (
        "the labelers are asked one after the other, each only about passages from which no earlier one answers "
        "correctly. Of a passage of label 2, only the labelers up to the first correct one were asked "
        "(`answers.asked`), so an answer that only a later one would have given is not among `valid_answers`, and a "
        "later one's share of correct answers is of harder passages."
    )
    rounds = [] if tables.selection_rounds is None else tables.selection_rounds.to_pylist()
    if sentence := predicted_sentence(facts.labels, rounds):
        text += (
            f" **{sentence}** `passages.label_from` says which labels are predicted, `passages.probability` the "
            "predicted probability of label 2. The scores of `qrels` are the same labels, without a mark."
        )
    return text


def _reviewed(provenance: Mapping[str, Any]) -> bool:
    return bool(provenance.get("verification") or provenance.get("reviews"))


def _agreement(facts: CardFacts) -> str:
    everyone = facts.agreement
    if len(everyone.compared) < 2:
        return ""
    pairs = sorted((pair.kappa, pair.first, pair.second) for pair in everyone.pairs if pair.kappa is not None)
    text = (
        "Agreement of readers on which passages they answer correctly from: Krippendorff's alpha "
        f"{_alpha(everyone)} for all {len(everyone.compared)} readers"
        + (" that were asked about every passage" if facts.tables.partly_asked else "")
    )
    if 1 < len(facts.labelers.compared) < len(everyone.compared):
        text += f", {_alpha(facts.labelers)} for the {len(facts.labelers.compared)} labelers"
    if len(pairs) > 1:
        (low, *least), (high, *most) = pairs[0], pairs[-1]
        text += f"; Cohen's kappa of two from {low:.2f} ({' and '.join(least)}) to {high:.2f} ({' and '.join(most)})"
    return text + "."


def _alpha(agreement: ReaderAgreement) -> str:
    return "(not defined)" if agreement.alpha is None else f"{agreement.alpha:.2f}"


def _imported(imported: Mapping[str, Any]) -> str:
    labels = imported["labels"]
    line = "- {question}, permutation {permutation}: published {published}, ours {ours}"
    differing = [line.format(**row, question=code(row["question_id"])) for row in labels["examples"][:LISTED]]
    if more := labels["differences"] - len(differing):
        differing.append(f"- and {more:,} more")
    pieces = [
        "This is an import of published files (`quit release import`). **The labels are the published ones**: "
        f"{labels['rule']}. By our rule, which compares answers in normalised form (case, punctuation and articles do "
        f"not count), {labels['differences']:,} of {labels['passages']:,} passages would have another label.",
        "\n".join(differing),
        "Both columns of answers, `answers` and `valid_answers`, are the published valid answers. The files do not say "
        "the following, so it is null or missing here:",
        "\n".join(f"- {cell(text)}" for text in imported["unknown"]),
    ]
    if imported["repeated_answers"]:
        pieces.append(f"{imported['repeated_answers']:,} questions list a valid answer twice; it is kept once.")
    if imported["unread"]:
        fields = ", ".join(f"{cell(name)} ({count:,} questions)" for name, count in imported["unread"].items())
        pieces.append(f"Fields of the files that were not read: {fields}.")
    return "\n\n".join(piece for piece in pieces if piece)


def verification(facts: CardFacts) -> str:
    """Say what people did, from ``provenance["verification"]``: see ``quit.review.report.verification``."""
    done = facts.tables.provenance.get("verification")
    if not done:
        reviews = facts.tables.provenance.get("reviews")
        return f"Human verification: {reviews}" if reviews else "No human verification is recorded for this dataset."
    rows = [
        [
            "blind" if kind["blind"] else "not blind",
            *(f"{kind[name]:,}" for name in ("annotators", "questions", "twice")),
            _figure(kind["seconds"], "{:.0f}"),
            f"{kind['answers']:,}",
            _figure(kind["alike"], "{:.1%}"),
            _figure(kind["alpha"], "{:.2f}"),
            f"{kind['controls_right']} of {kind['controls']}" if kind["controls"] else "–",
        ]
        for kind in done["kinds"]
    ]
    head = "pages,annotators,questions,by two or more,median seconds,answers,alike,alpha,controls".split(",")
    blind = any(kind["blind"] for kind in done["kinds"])
    return "\n\n".join(
        piece
        for piece in (
            f"{count(done['annotators'], 'person', 'people')} submitted "
            f"{count(done['annotations'], 'annotation')} of {count(done['questions'], 'question')}.",
            markdown_table(head, rows),
            ("On a blind page nothing was ticked and no judge was shown. " if blind else "No page was blind. ")
            + "On other pages the judge's verdicts were shown and ticked, which anchors people. *alike*: pairs of "
            "verdicts on the same answer that agree; *alpha*: Krippendorff's, over answers that two or more people "
            "judged; *controls*: right verdicts on control questions.",
            _people(done.get("people") or []),
        )
        if piece
    )


def _people(people: Sequence[Mapping[str, Any]]) -> str:
    if not people:
        return ""
    names = ("evaluator", "gender", "age", "education")
    rows = [[cell(person.get(name)) for name in names] for person in people[:LISTED]]
    more = f"\n\nand {len(people) - LISTED} more in `settings.json`" if len(people) > LISTED else ""
    return markdown_table([name.capitalize() for name in names], rows) + more


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def sources(facts: CardFacts) -> str:
    """Give the licence of the dataset and of each source."""
    listed = source_list(facts.tables)
    own = facts.card.licence
    rows = [
        [cell(source.get("name")), cell(source.get("file")), cell(source.get("licence") or own or "unknown"),
         f"`{source['checksum'][:12]}`" if source.get("checksum") else "–"]
        for source in listed
    ]  # fmt: skip
    if len(rows) > LISTED:
        rows = [*rows[:LISTED], [f"and {len(rows) - LISTED} more in `settings.json`", "", "", ""]]
    pieces = [f"This dataset: {cell(own)}{f' ({cell(facts.card.licence_link)})' if facts.card.licence_link else ''}."]
    if not own:
        pieces = ["The publisher has named no licence for this dataset (`card.licence`)."]
    if rows:
        pieces.append(markdown_table(["source", "file", "licence", "SHA-256"], rows))
        pieces.append("Questions and hints stay under the licence of their source; users must keep to all of them.")
    return "\n\n".join(pieces)


def limits(facts: CardFacts) -> str:
    """Say what the labels mean and what is known to be wrong."""
    lines = [
        "For research on retrieval, reranking and reading when the answer is not stated in the text.",
        "",
        "- Label 2 says that a labeler could infer the answer, not that a person could. Other labelers give other "
        "labels.",
        "- The passages of a question share their hints: they are not independent samples.",
        "- Hints may repeat errors of their source.",
    ]
    lines += [
        f"- **Quality gate `{waiver['gate']}` was waived**: {cell(waiver['waiver'])} ({waiver['violations']:,} "
        f"violations, such as {cell(waiver['examples'][0])}). {cell(waiver['why'])}"
        for waiver in facts.tables.provenance.get("waivers") or []
    ]
    if facts.unjudged:
        lines.append(
            f"- {facts.unjudged:,} answers have no verdict (`answers.correct` is null); they count as not correct."
        )
    if contained := facts.figures.contained:
        some = ", ".join(map(code, contained[:5]))
        lines.append(f"- **Questions with a passage that contains a valid answer: {len(contained)}**, such as {some}.")
    return "\n".join(lines)


def provenance(facts: CardFacts) -> str:
    """Name the release, its ids and the files beside the card."""
    given = facts.tables.provenance
    lines = [
        ("Release", given.get("release")),
        ("Content id", given.get("content_id") and f"`{given['content_id']}`"),
        ("Release fingerprint", f"`{facts.tables.fingerprint}`"),
        ("Published", facts.card.published),
        ("Made by QUIT builder", given.get("program_version")),
    ]
    return (
        "\n".join(f"- {name}: {value}" for name, value in lines if value)
        + "\n\n`settings.json` has the settings, fingerprints and sources of the build, `croissant.json` the metadata "
        "in the Croissant format, `manifest.json` the checksums of all files."
    )


def citations(facts: CardFacts) -> str:
    """Say how to cite the dataset, the method and the sources."""
    given = [facts.card.citation.strip(), CITATION]
    given += [str(source.get("citation") or "") for source in source_list(facts.tables)]
    return "\n\n".join(
        f"```bibtex\n{citation}\n```" if citation.startswith("@") else cell(citation)
        for citation in dict.fromkeys(given)
        if citation
    )
