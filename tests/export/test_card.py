"""What the card of a Hugging Face export says, and the files beside it."""

import json
import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from jinja2 import UndefinedError

from quit.errors import InputError
from quit.export import export
from quit.export.card_facts import title
from quit.export.huggingface import CONFIGS
from quit.export.templates import code, fill_template
from quit.settings import load_card
from quit.settings.card import Card
from tests.rows import changed

ABOUT = load_card(Path(__file__).with_name("card.toml"))
VERIFICATION = json.loads(Path(__file__).with_name("verification.json").read_text(encoding="utf-8"))
"""Two kinds of annotations, on pages that are blind and on others; one annotator tells of herself."""
UNLICENSED = {"sources": [{"name": "jsonl", "file": "m", "checksum": "ab"}]}
TERMS = Card(licence="Our Terms 1.0", licence_link="https://x.org/t")


def written(tables, out, options=None, **facts):
    """Export with these facts of the release and options; return the card's header and text."""
    tables = replace(tables, provenance={**tables.provenance, **facts})
    export(tables, ["huggingface"], out, overwrite=True, **(options or {}))
    text = (out / "huggingface" / "README.md").read_text(encoding="utf-8")
    return yaml.safe_load(text.split("---\n")[1]), text


@pytest.fixture(scope="module")
def plain(tables, tmp_path_factory):
    return written(tables, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize(("producer", "predicts"), [("source", False), ("source-scores", False), ("learned/1", True)])
def test_a_model_predicts_convergence_only_where_it_is_not_the_source_s(tables, tmp_path, producer, predicts):
    ranked, name = tables.ranked_hints, "producer"
    column = pa.array([producer] * len(ranked), ranked.schema.field(name).type)
    ranked = ranked.set_column(ranked.schema.get_field_index(name), name, column)
    _, text = written(replace(tables, ranked_hints=ranked), tmp_path)
    assert ("a model predicts how many" in text) == predicts and "predicted share" not in text


def table_below(text, heading):
    lines = text.split(f"## {heading}\n", 1)[1].splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    rows = takewhile(lambda line: line.startswith("|"), lines[first:])
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows][2:]


def test_the_publisher_s_settings(tables, tmp_path):
    settings = {"split": {"seed": "very-special"}, "x": {"y": 1}}
    header, text = written(tables, tmp_path, {"card": ABOUT}, settings=settings)
    assert (header["pretty_name"], header["language"]) == (ABOUT.name, ["en", "de"])
    assert header["license"] == "cc-by-sa-4.0" and "license_name" not in header
    assert "# Hints \\| &lt;Mine&gt;\n" in text
    for words in ("Questions about rivers.", "**Authors**: Ada Ray, Bo Lind.", "**Contact**: ada@example.org.",
                 "**Homepage**: https://example.org/rivers.", 'load_dataset("org/rivers", "passages", split="test")',
                 "This dataset: CC BY-SA 4.0.", "- Published: 2026-11-22"):  # fmt: skip
        assert words in text, words
    assert text.index("@misc{rivers") < text.index("@inproceedings{mozafari2026inferential")
    beside = json.loads((tmp_path / "huggingface" / "settings.json").read_text(encoding="utf-8"))
    assert beside["settings"] == settings and beside["fingerprints"] == {"labels": "abc"}
    identities = [f"{info.name}: {info.identity}" for info in tables.ordered_readers]
    assert (beside["models"]["readers"], beside["card"]["name"]) == (identities, ABOUT.name)
    assert '"y"' not in text and not any(info.identity in text for info in tables.readers)


@pytest.mark.parametrize("name", ["card.md", "mteb.md", "eval.jinja", "lm_eval.jinja", "mteb_task.jinja"])
def test_a_name_that_a_template_lacks_is_an_error(name):
    with pytest.raises(UndefinedError):
        fill_template(name)


def test_without_settings_nothing_is_made_up(plain):
    header, text = plain
    assert header["license"] == ["cc-by-4.0", "mit"] and header["language"] == ["en"]
    assert header["size_categories"] == ["1K<n<10K"]
    assert [one["config_name"] for one in header["configs"]] == list(CONFIGS)
    assert header["pretty_name"].startswith("Inferential question answering from ")
    assert header["annotations_creators"] == ["machine-generated"] and "human-verified" not in header["tags"]
    for words in ('load_dataset("FOLDER", "passages"', "under the licences of its sources: CC BY 4.0, MIT. The",
                 "No human verification", "Warning: embedded readers", "10.1145/3774904.3792653", "@x{triviahg}",
                 "CC BY 4.0", "`labeler-x`", "2,275"):  # fmt: skip
        assert words in text, words
    assert re.search(r"Krippendorff's alpha -?0\.\d\d for all 6 readers, -?0\.\d\d for the 3 labelers", text)
    assert len(table_below(text, "How it was made")) == 6


@pytest.mark.parametrize(
    ("facts", "card", "licence", "words"),
    [
        ({}, TERMS, "other", "Our Terms 1.0 (https://x.org/t)"),
        (UNLICENSED, Card(), "unknown", "| jsonl | m | unknown |"),
        (UNLICENSED, Card(), "unknown", "No licence is known for this dataset"),
        (UNLICENSED, Card(licence="cc0-1.0"), "cc0-1.0", "| jsonl | m | unknown |"),
        (UNLICENSED, Card(licence="ODbL-1.0"), "odbl", "| jsonl | m | unknown |"),
    ],
)
def test_licences_of_the_publisher_and_of_sources(tables, tmp_path, facts, card, licence, words):
    header, text = written(tables, tmp_path, {"card": card}, **facts)
    assert header["license"] == licence and words in text
    assert header.get("license_name") == ("our-terms-1.0" if licence == "other" else None)


def test_texts_of_sources_are_escaped(tables, tmp_path):
    questions = changed(tables.questions, question="<script>alert(1)</script> | *a*\n## b")
    _, text = written(replace(tables, questions=questions), tmp_path)
    assert "<script>" not in text and "&lt;script&gt;alert(1)&lt;/script&gt; \\| \\*a\\* \\#\\# b" in text
    assert code("a`|<b>\n&c") == "`a\\|b &c`", "an id ends neither a code span nor a cell"


def test_what_people_did(tables, tmp_path):
    flags = [{"flag": "hint_false", "questions": 3, "share": 0.05}, {"flag": "leak", "questions": 0, "share": 0.0}]
    facts = {"verification": {**VERIFICATION, "flags": flags}}
    header, text = written(tables, tmp_path, **facts)
    assert "human-verified" not in header["tags"], "no verdict is a person's: their annotations settled nothing"
    settled = replace(tables, verdicts=changed(tables.verdicts, 0, basis="review"))
    header, text = written(settled, tmp_path, **facts)
    assert "Flagged by at least one annotator, of the annotated questions: hint false 3 (5.0%); leak 0 (0.0%)." in text
    assert header["annotations_creators"] == ["machine-generated", "expert-generated"]
    assert "human-verified" in header["tags"]
    assert "4 people submitted 80 annotations of 60 questions." in text
    assert "| blind | 3 | 30 | 10 | 22 | 400 | 95.1% | 0.71 | 11 of 12 |" in text
    assert "| not blind | 3 | 30 | 10 | – | 400 | 95.1% | – | – |" in text
    assert "| 1 | Female | 30\\|31 | – |" in text
    assert "On a blind page nothing was ticked" in text
    assert "train 25.0%, 23.5% (21.0% to 27.1%); all 25.0%, 24.0% (22.0% to 27.0%). Judge: " in text
    assert "The judge's label agrees with people's on 96.0% (95% interval 93.1% to 98.0%) of the passages not" in text
    not_blind = {**VERIFICATION, "kinds": VERIFICATION["kinds"][1:], "people": []}
    _, text = written(tables, tmp_path, verification=not_blind)
    assert "No page was blind." in text and "Evaluator" not in text
    _, text = written(tables, tmp_path, reviews="12 annotations by 2 people.")
    assert "Human verification: 12 annotations by 2 people." in text


FIGURES = (
    ("release", "bm25", "", 0, "nDCG@10", 0.25), ("release", "bm25", "", 0, "Hit@1", 0.5),
    ("release", "oracle", "", 0, "nDCG@10", 1.0), ("release", "bm25", "names", 1, "EM", 0.1),
    ("release", "bm25", "names", 5, "EM", 0.125), ("other", "bm25", "", 0, "nDCG@10", 0.75),
)  # fmt: skip


def benchmark(folder, figures=FIGURES):
    """Write the results of a benchmark of the release v1."""
    columns = ("corpus", "retriever", "reader", "k", "metric", "value")
    rows = [dict(zip(columns, values)) for values in figures]
    rows = [{**row, "reranker": "", "strategy": "norm" if row["reader"] else ""} for row in rows]
    folder.mkdir()
    facts = {"release": "v1 (content id c0ffee)", "questions": "2 of split test"}
    run = {"facts": facts, "content_id": "c0ffee", "settings": {"without_relevant": "zero"}, "circular": {}}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "results.json").write_text(json.dumps(rows))
    return folder


def test_baselines_are_those_of_a_benchmark_of_this_release(tables, tmp_path):
    run = {"benchmark": benchmark(tmp_path / "b")}
    for facts, options, message in (
        ({"content_id": "dead"}, run, "ran on the release v1 .* not on this one"),
        ({}, run, "not on this workspace: name a release"),
        ({}, {"benchmark": tmp_path}, "holds no results of quit benchmark run"),
    ):
        with pytest.raises(InputError, match=message):
            written(tables, tmp_path, options, **facts)
    assert not (tmp_path / "huggingface").exists()
    _, text = written(tables, tmp_path, run, content_id="c0ffee")
    assert "(questions: 2 of split test; one without a relevant passage counts as 0)" in text
    assert table_below(text, "Baselines") == [
        ["bm25", "25.00", "–"], ["oracle", "100.00", "–"], ["bm25 + names (5 passages, norm)", "–", "12.50"]
    ]  # fmt: skip
    results = json.loads((run["benchmark"] / "results.json").read_text())
    others = [row | {"metric": f"nDCG@{3 + number % 2}"} for number, row in enumerate(results)]
    (run["benchmark"] / "results.json").write_text(json.dumps(others))
    rows = table_below(written(tables, tmp_path, run, content_id="c0ffee")[1], "Baselines")
    assert rows and all(any(cell.endswith(".00") or cell.endswith(".50") for cell in row) for row in rows)


def test_a_card_with_everything_has_at_most_200_lines_and_croissant_names_every_file(tables, tmp_path):
    people = [{"evaluator": number, "gender": "–", "age": "30", "education": "PhD"} for number in range(30)]
    more = [("release", f"dense:{number}", "", 0, "nDCG@10", 0.25) for number in range(40)]
    waiver = {"gate": "unjudged-answer", "waiver": "w", "violations": 1, "examples": ["e"], "why": "y"}
    facts = {
        **{"content_id": "c0ffee", "release": "v1", "waivers": [waiver] * 2},
        "verification": {**VERIFICATION, "people": people},
        "sources": [{"name": f"s{number}", "file": "f", "licence": "MIT", "checksum": "1"} for number in range(40)],
    }
    options = {"card": ABOUT, "benchmark": benchmark(tmp_path / "b", [*FIGURES, *more])}
    _, text = written(tables, tmp_path, options, **facts)
    assert text.count("\n") <= 200
    assert "and 34 more in `settings.json`" in text and "and 24 more" in text and "35 more systems" in text

    folder = tmp_path / "huggingface"
    metadata, manifest = (json.loads((folder / f"{name}.json").read_text()) for name in ("croissant", "manifest"))
    assert (metadata["version"], metadata["datePublished"]) == ("1.0.0", "2026-11-22")
    assert metadata["license"] == ["https://spdx.org/licenses/CC-BY-SA-4.0.html"]
    assert [person["name"] for person in metadata["creator"]] == list(ABOUT.authors)
    assert metadata["url"] == ABOUT.homepage and metadata["citeAs"] == ABOUT.citation
    sums = {entry["path"]: entry["sha256"] for entry in manifest["files"] if entry["path"].endswith(".parquet")}
    files = [entry for entry in metadata["distribution"] if entry["encodingFormat"] == "application/x-parquet"]
    assert {entry["contentUrl"]: entry["sha256"] for entry in files if "sha256" in entry} == sums


def test_records_given_in_python_name_no_dataset() -> None:
    sources = [{"file": "records-7929e709ac484ccc.jsonl"}, {"file": "mine.csv"}]
    assert title({"sources": sources[:1]}, Card()) == "Inferential question answering"
    assert title({"sources": sources}, Card()) == "Inferential question answering from mine.csv"
