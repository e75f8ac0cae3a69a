"""The dataset card (README.md) of a Hugging Face export: YAML that ``datasets`` reads, and prose made from the data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import yaml

from quit.evaluate.statistics import Statistics, Summary
from quit.export.dataset import SPLITS, ExportTables

CITATION = """@inproceedings{mozafari2026inferential,
  title     = {Inferential Question Answering},
  author    = {Mozafari, Jamshid and Zamani, Hamed and Zuccon, Guido and Jatowt, Adam},
  booktitle = {Proceedings of the ACM Web Conference 2026 (WWW '26)},
  year      = {2026},
  doi       = {10.1145/3774904.3792653}
}"""
_LICENCES = {"mit": "mit", "cc by 4.0": "cc-by-4.0", "cc by-sa 4.0": "cc-by-sa-4.0", "apache 2.0": "apache-2.0",
             "cc0 1.0": "cc0-1.0", "cc0": "cc0-1.0"}  # fmt: skip
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_ROWS = (  # of table 1: label, field, digits
    ("Questions", "questions", 0),
    ("Passages", "passages", 0),
    ("Avg. question length (words)", "question_words", 2),
    ("Avg. passage length (words)", "passage_words", 2),
    ("Avg. answer length (words), valid answers", "answer_words", 2),
    ("Avg. answer length (words), gold answers", "gold_answer_words", 2),
    ("Query-passage lexical overlap", "lexical_overlap", 4),
    ("Answer containment", "answer_containment", 4),
    ("Query-passage semantic similarity", "semantic_similarity", 2),
)


class Shard(NamedTuple):
    """One Parquet file: its config and split, path within the folder, rows, size in bytes on disk and in memory."""

    config: str
    split: str
    path: str
    rows: int
    bytes: int
    loaded_bytes: int


def card(
    tables: ExportTables,
    figures: Statistics,
    schemas: Mapping[str, pa.Schema],
    shards: Sequence[Shard],
    unjudged: int = 0,
) -> str:
    """Return README.md. ``schemas``: the columns of each config; ``unjudged``: answers without a verdict.

    The same tables give the same text.
    """
    header = yaml.safe_dump(_header(tables, schemas, shards), sort_keys=False, allow_unicode=True, width=10**6)
    sections = [
        f"# {_title(tables)}",
        _warning(tables),
        _summary(tables, shards),
        "## Statistics\n\n" + _statistics(figures),
        "## Configs\n\n" + _configs(schemas, shards),
        "## How the labels were made\n\n" + _labels(tables),
        "## Provenance\n\n" + _provenance(tables),
        "## Sources and licences\n\n" + _sources(tables),
        "## Intended use and limits\n\n" + _limits(tables, figures, unjudged),
        "## Citation\n\n" + _citations(tables),
    ]
    return f"---\n{header}---\n\n" + "\n\n".join(section for section in sections if section) + "\n"


def hub_licence(licence: str) -> str:
    """Return the hub's identifier of a licence, ``other`` for one that has none: ``CC BY 4.0`` -> ``cc-by-4.0``."""
    folded = " ".join(licence.casefold().replace("-", " ").split())
    known = {" ".join(name.replace("-", " ").split()): spelling for name, spelling in _LICENCES.items()}
    return known.get(folded.removesuffix(" license").removesuffix(" licence"), "other")


def _title(tables: ExportTables) -> str:
    return str(tables.provenance.get("title") or "Inferential question answering, made with QUIT builder")


def _header(tables: ExportTables, schemas: Mapping[str, pa.Schema], shards: Sequence[Shard]) -> dict[str, Any]:
    licences = sorted({hub_licence(str(source.get("licence") or "")) for source in _source_list(tables)}) or ["other"]
    passages = sum(shard.rows for shard in shards if shard.config == "passages")
    tags = ["inferential-question-answering", "hints", "information-retrieval", "relevance-judgements"]
    return {
        "pretty_name": _title(tables),
        "language": ["en"],
        "license": licences if len(licences) > 1 else licences[0],
        "task_categories": ["question-answering", "text-retrieval"],
        "size_categories": [next((name for limit, name in _SIZES if passages < limit), "10M<n<100M")],
        "tags": tags + (["embedded-readers"] if tables.embedded else []),
        "configs": [
            {
                "config_name": config,
                **({"default": True} if config == "questions" else {}),
                "data_files": [
                    {"split": split, "path": [part.path for part in split_shards]}
                    for split in SPLITS
                    if (split_shards := _of(shards, config, split))
                ],
            }
            for config in schemas
        ],
        "dataset_info": [
            {
                "config_name": config,
                "features": [_feature(field) for field in schema],
                "splits": [
                    {
                        "name": split,
                        "num_bytes": sum(part.loaded_bytes for part in split_shards),
                        "num_examples": sum(part.rows for part in split_shards),
                    }
                    for split in SPLITS
                    if (split_shards := _of(shards, config, split))
                ],
                "download_size": sum(shard.bytes for shard in shards if shard.config == config),
                "dataset_size": sum(shard.loaded_bytes for shard in shards if shard.config == config),
            }
            for config, schema in schemas.items()
        ],
    }


def _feature(field: pa.Field) -> dict[str, str]:
    if pa.types.is_list(field.type):
        return {"name": field.name, "list": _dtype(field.type.value_type)}
    return {"name": field.name, "dtype": _dtype(field.type)}


def _dtype(kind: pa.DataType) -> str:
    return {"double": "float64"}.get(str(kind), str(kind))


def _of(shards: Sequence[Shard], config: str, split: str) -> list[Shard]:
    return [shard for shard in shards if (shard.config, shard.split) == (config, split)]


def _warning(tables: ExportTables) -> str:
    if not tables.embedded:
        return ""
    names = ", ".join(f"`{info.name}`" for info in tables.readers if info.kind == "embedded") or "at least one reader"
    return (
        f"> **Warning: embedded readers.** The answers of {names} come from small closed-set guessers that choose from "
        "a pool of answers, not from language models. The labels that follow from them show how the pipeline works; "
        "they must not be compared with labels made by LLMs, such as those of the QUIT dataset."
    )


def _summary(tables: ExportTables, shards: Sequence[Shard]) -> str:
    empty = [split for split in SPLITS if not _of(shards, "questions", split)]
    text = (
        "Questions whose answers must be inferred: each passage is an ordered selection of hints, which point to the "
        "answer and never contain it. Made by the method of *Inferential Question Answering* (Mozafari et al., WWW "
        "2026)."
    )
    if empty:
        names = " and ".join(f"`{split}`" for split in empty)
        text += f"\n\nThis collection has no questions in {names}: it has no files for that, and it cannot be loaded."
    return text


def _statistics(figures: Statistics) -> str:
    head = ["", *(summary.split for summary in figures.summary)]
    rows = [
        [label, *(_number(summary, name, digits) for summary in figures.summary)]
        for label, name, digits in _ROWS
        if name != "gold_answer_words" or figures.summary[-1].gold_answer_words is not None
    ]
    text = _table(head, rows) + (
        "\n\nWords are split on single spaces. Lexical overlap: Jaccard index of the word sets without English stop "
        "words. Answer containment: share of passages with a valid answer as a case-insensitive substring (it must be "
        "0). "
    )
    total = figures.summary[-1]
    if figures.encoder is None:
        text += "Semantic similarity was not measured."
    else:
        error = "" if total.similarity_error is None else f" (standard error {total.similarity_error:.3f})"
        text += (
            f"Semantic similarity: cosine by `{figures.encoder}`, estimated on a seeded sample of "
            f"{total.similarity_sample:,} passages{error}."
        )
    for title, table, name in (
        ("number of hints", figures.by_hints, "n_hints"),
        ("question type", figures.by_type, "coarse"),
        ("difficulty", figures.by_difficulty, "difficulty_bin"),
    ):
        if len(table):
            text += f"\n\nLabels by {title}, all splits:\n\n" + _label_table(table, name)
    return text


def _number(summary: Summary, name: str, digits: int) -> str:
    value = getattr(summary, name)
    return "–" if value is None else f"{value:,.{digits}f}"


def _label_table(table: pa.Table, name: str) -> str:
    groups: dict[Any, dict[int, int]] = {}
    for row in table.to_pylist():
        if row["split"] == "all":
            groups.setdefault(row[name], {})[row["label"]] = row["passages"]
    rows = []
    for group, by_label in groups.items():
        partially, fully = by_label[1], by_label[2]
        rows.append(
            [
                str(group),
                f"{partially + fully:,}",
                f"{partially:,}",
                f"{fully:,}",
                f"{fully / max(1, partially + fully):.1%}",
            ]
        )
    return _table([name, "passages", "label 1", "label 2", "share of label 2"], rows)


def _configs(schemas: Mapping[str, pa.Schema], shards: Sequence[Shard]) -> str:
    rows = []
    for config, schema in schemas.items():
        counts = [f"{sum(shard.rows for shard in _of(shards, config, split)):,}" for split in SPLITS]
        rows.append([f"`{config}`", *counts, ", ".join(f"`{name}`" for name in schema.names)])
    text = _table(["config", *SPLITS, "columns"], rows)
    return text + (
        "\n\nPassage ids are `{question id}_{subset}_{permutation}`: the indices of the chosen hints (`hints.index`), "
        "ascending and in reading order. The text is the hints joined by one space. `qrels` holds labels 2 and 1; "
        "every passage of another question is irrelevant (0) and not listed. `answers.correct` is null where no "
        "judge's verdict is known.\n\n"
        '```python\nfrom datasets import load_dataset\n\nload_dataset("path/to/this/folder", "passages")\n```'
    )


def _labels(tables: ExportTables) -> str:
    cut = {name: f"{count / len(tables.answers[name].rows):.1%}" for name, count in tables.cut.items() if count}
    rows = [
        [f"`{info.name}`", info.role, info.kind, *([cut.get(info.name, "–")] if cut else []), f"`{info.identity}`"]
        for info in tables.ordered_readers
    ]
    imported = tables.provenance.get("imported")
    origin = _imported(imported) if imported else _judged(tables)
    return origin + "\n\n" + _table(["reader", "role", "kind", *(["replies cut"] if cut else []), "identity"], rows)


def _imported(imported: Mapping[str, Any]) -> str:
    labels = imported["labels"]
    line = "- `{question_id}`, permutation {permutation}: published {published}, ours {ours}"
    differing = [line.format(**row) for row in labels["examples"]]
    if more := labels["differences"] - len(differing):
        differing.append(f"- and {more:,} more")
    pieces = [
        "This is an import of published files (`quit release import`). **The labels are the published ones**: "
        f"{labels['rule']}. By our rule, which compares answers in normalised form (case, punctuation and articles do "
        f"not count), {labels['differences']:,} of {labels['passages']:,} passages would have another label.",
        "\n".join(differing),
        "Both columns of answers, `answers` and `valid_answers`, are the published valid answers. The files do not say "
        "the following, so it is null or missing here:",
        "\n".join(f"- {text}" for text in imported["unknown"]),
    ]
    if imported["repeated_answers"]:
        pieces.append(f"{imported['repeated_answers']:,} questions list a valid answer twice; it is kept once.")
    if imported["unread"]:
        fields = ", ".join(f"{name} ({count:,} questions)" for name, count in imported["unread"].items())
        pieces.append(f"Fields of the files that were not read: {fields}.")
    return "\n\n".join(piece for piece in pieces if piece)


def _judged(tables: ExportTables) -> str:
    labelers = ", ".join(f"`{info.name}`" for info in tables.labelers)
    basis = tables.verdicts.filter(_equals(tables.verdicts["basis"], "model"))
    judges = sorted(set((basis if len(basis) else tables.verdicts)["judge"].to_pylist()))
    reviews = tables.provenance.get("reviews")
    return (
        f"Every labeler ({labelers}) answered every passage. A passage has label 2 (fully relevant) if at least one "
        "labeler's answer is correct, else 1 (partially relevant). Whether an answer is correct was decided once for "
        "each distinct answer of a question: it equals a gold answer, or a judge accepted it "
        f"({_names(judges)}). Correct answers are among the question's `valid_answers`, so that label 2 means: one of "
        "the labelers' answers is in `valid_answers`.\n\n"
        + (f"Human verification: {reviews}" if reviews else "No human verification is recorded for this release.")
    )


def _equals(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    return pa.chunked_array([[item == value for item in column.to_pylist()]], pa.bool_())


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _provenance(tables: ExportTables) -> str:
    given = tables.provenance
    lines = [f"- Release fingerprint: `{tables.fingerprint}`"]
    if given.get("release"):
        lines.append(f"- Release: {given['release']}")
    if given.get("content_id"):
        lines.append(f"- Content id: `{given['content_id']}`")
    if given.get("program_version"):
        lines.append(f"- Made by QUIT builder {given['program_version']}")
    for title in ("fingerprints", "settings"):
        if given.get(title):
            text = json.dumps(given[title], indent=2, sort_keys=True, ensure_ascii=False, default=str)
            lines.append(f"\n<details><summary>{title.capitalize()}</summary>\n\n```json\n{text}\n```\n\n</details>")
    return "\n".join(lines)


def _source_list(tables: ExportTables) -> list[Mapping[str, Any]]:
    return list(tables.provenance.get("sources") or [])


def _sources(tables: ExportTables) -> str:
    rows = [
        [_cell(source.get("name")), _cell(source.get("file")), _cell(source.get("licence") or "not stated"),
         f"`{source['checksum']}`" if source.get("checksum") else "–"]
        for source in _source_list(tables)
    ]  # fmt: skip
    if not rows:
        return "No sources are recorded."
    text = _table(["source", "file", "licence", "checksum"], rows)
    return text + "\n\nQuestions and hints stay under the licence of their source; users must keep to all of them."


def _limits(tables: ExportTables, figures: Statistics, unjudged: int) -> str:
    lines = [
        "For research on retrieval, reranking and reading when the answer is not stated in the text.",
        "",
        "- Label 2 says that a labeler could infer the answer, not that a person could; another set of labelers gives "
        "other labels.",
        "- The passages of a question share their hints: they are not independent samples.",
        "- Hints may hold errors of their source; questions are in English.",
    ]
    if tables.embedded:
        lines.append("- Made with embedded readers: see the warning at the top.")
    lines += [
        f"- **Quality gate `{waiver['gate']}` was waived**: {_cell(waiver['waiver'])} ({waiver['violations']:,} "
        f"violations, such as {_cell(waiver['examples'][0])}). {waiver['why']}"
        for waiver in tables.provenance.get("waivers") or []
    ]
    if unjudged:
        lines.append(f"- {unjudged:,} answers have no verdict (`answers.correct` is null); they count as not correct.")
    if figures.contained:
        some = ", ".join(f"`{question}`" for question in figures.contained[:5])
        count = len(figures.contained)
        lines.append(f"- **Questions with a passage that contains a valid answer: {count}**, such as {some}.")
    return "\n".join(lines)


def _citations(tables: ExportTables) -> str:
    citations = [CITATION]
    for source in _source_list(tables):
        if source.get("citation") and source["citation"] not in citations:
            citations.append(source["citation"])
    return "\n\n".join(
        f"```bibtex\n{citation}\n```" if citation.startswith("@") else citation for citation in citations
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    return "–" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
