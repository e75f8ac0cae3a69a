"""What the card of a Hugging Face export says, and the files beside it."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import takewhile

import pytest
import yaml

from quit.errors import InputError
from quit.export import export
from quit.export.card_facts import code
from quit.settings.card import Card

ABOUT = Card(
    name="Hints | <Mine>",
    description="Questions about rivers.",
    repository="org/rivers",
    homepage="https://example.org/rivers",
    licence="CC BY-SA 4.0",
    authors=("Ada Ray", "Bo Lind"),
    contact="ada@example.org",
    languages=("en", "de"),
    citation="@misc{rivers,\n  title = {Rivers}\n}",
    published="2026-11-22",
)
KIND = {
    "blind": True, "annotators": 3, "annotations": 40, "questions": 30, "twice": 10, "seconds": 21.5, "answers": 400,
    "items": 120, "alike": 0.951, "alpha": 0.712, "controls": 12, "controls_right": 11,
}  # fmt: skip
VERIFICATION = {
    "annotators": 4,
    "annotations": 80,
    "questions": 60,
    "kinds": [KIND, {**KIND, "blind": False, "alpha": None, "seconds": None, "controls": 0}],
    "people": [{"evaluator": 1, "gender": "Female", "age": "30|31", "education": None}],
}


def written(tables, out, **asked):
    export(tables, ["huggingface"], out, overwrite=True, **asked)
    text = (out / "huggingface" / "README.md").read_text(encoding="utf-8")
    return yaml.safe_load(text.split("---\n")[1]), text


def given(tables, **facts):
    return replace(tables, provenance={**tables.provenance, **facts})


@pytest.fixture(scope="module")
def plain(tables, tmp_path_factory):
    return written(tables, tmp_path_factory.mktemp("plain"))


def table_below(text, heading):
    lines = text.split(f"## {heading}\n", 1)[1].splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    rows = takewhile(lambda line: line.startswith("|"), lines[first:])
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows][2:]


def test_the_publisher_s_settings(tables, tmp_path):
    header, text = written(tables, tmp_path, card=ABOUT)
    assert (header["pretty_name"], header["language"]) == (ABOUT.name, ["en", "de"])
    assert header["license"] == "cc-by-sa-4.0" and "license_name" not in header
    assert "# Hints \\| &lt;Mine&gt;\n" in text
    for said in ("Questions about rivers.", "**Authors**: Ada Ray, Bo Lind.", "**Contact**: ada@example.org.",
                 "**Homepage**: https://example.org/rivers.", 'load_dataset("org/rivers", "passages", split="test")',
                 "This dataset: CC BY-SA 4.0.", "- Published: 2026-11-22"):  # fmt: skip
        assert said in text, said
    assert text.index("@misc{rivers") < text.index("@inproceedings{mozafari2026inferential")


def test_without_settings_nothing_is_made_up(plain):
    header, text = plain
    assert header["license"] == ["cc-by-4.0", "mit"] and header["language"] == ["en"]
    assert 'load_dataset("FOLDER", "passages"' in text and "path/to" not in text
    assert "The publisher has named no licence" in text
    assert header["pretty_name"].startswith("Inferential question answering from ")
    assert header["annotations_creators"] == ["machine-generated"] and "human-verified" not in header["tags"]


@pytest.mark.parametrize(
    ("sources", "card", "licence", "said"),
    [
        (
            None,
            {"licence": "Our Terms 1.0", "licence_link": "https://x.org/t"},
            "other",
            "Our Terms 1.0 (https://x.org/t)",
        ),
        ([{"name": "jsonl", "file": "m", "checksum": "ab"}], {}, "unknown", "| jsonl | m | unknown |"),
        (
            [{"name": "jsonl", "file": "m", "checksum": "ab"}],
            {"licence": "cc0-1.0"},
            "cc0-1.0",
            "| jsonl | m | cc0-1.0 |",
        ),
    ],
)
def test_licences_of_the_publisher_and_of_sources(tables, tmp_path, sources, card, licence, said):
    header, text = written(given(tables, sources=sources) if sources else tables, tmp_path, card=Card(**card))
    assert header["license"] == licence and said in text
    assert header.get("license_name") == ("our-terms-1.0" if licence == "other" else None)


def test_labels_by_split_and_what_they_allow(tables, plain, release):
    labels = Counter()
    answerable = {}
    for row in tables.labels.to_pylist():
        split = release.split[row["question_id"]]
        labels[split, row["label"]] += 1
        answerable.setdefault(split, {}).setdefault(row["question_id"], False)
        answerable[split][row["question_id"]] |= row["label"] == 2
    rows = {row[0]: row[1:] for row in table_below(plain[1], "Before you compare figures")}
    assert list(rows) == ["train", "dev", "test", "all"]
    for split, found in answerable.items():
        questions, without, bound, passages, partially, fully = rows[split]
        assert (int(questions), int(without)) == (len(found), list(found.values()).count(False))
        assert bound == f"{sum(found.values()) / len(found):.1%}"
        assert int(passages) == labels[split, 1] + labels[split, 2]
        assert (int(partially), int(fully.split()[0])) == (labels[split, 1], labels[split, 2])


def test_the_example_is_a_row_of_each_label(plain, tables):
    rows = table_below(plain[1], "Example")
    labels = {(row["question_id"], row["permutation"]): row["label"] for row in tables.labels.to_pylist()}
    assert [row[2] for row in rows] == ["2", "1"]
    for name, _, label, _ in rows:
        question, _, permutation = name.strip("`").rsplit("_", 2)
        assert labels[question, permutation] == int(label)
        assert question == "a-2"  # the first of test


def test_texts_of_sources_are_escaped(tables, tmp_path):
    rows = tables.questions.to_pylist()
    for row in rows:
        row["question"] = "<script>alert(1)</script> | *a*\n## b"
    _, text = written(replace(tables, questions=tables.questions.from_pylist(rows, tables.questions.schema)), tmp_path)
    assert "<script>" not in text and "&lt;script&gt;alert(1)&lt;/script&gt; \\| \\*a\\* \\#\\# b" in text


def test_settings_are_in_a_file_beside_the_card(tables, tmp_path):
    _, text = written(given(tables, settings={"split": {"seed": "very-special"}, "x": {"y": 1}}), tmp_path, card=ABOUT)
    beside = json.loads((tmp_path / "huggingface" / "settings.json").read_text(encoding="utf-8"))
    assert beside["settings"] == {"split": {"seed": "very-special"}, "x": {"y": 1}}
    assert beside["fingerprints"] == {"labels": "abc"} and beside["card"]["name"] == ABOUT.name
    assert "```json" not in text and '"y"' not in text
    identities = [f"{info.name}: {info.identity}" for info in tables.ordered_readers]
    assert beside["models"]["readers"] == identities and not any(info.identity in text for info in tables.readers)


def test_agreement_of_readers(plain):
    assert re.search(r"Krippendorff's alpha -?0\.\d\d for all 6 readers, -?0\.\d\d for the 3 labelers", plain[1])
    assert len(table_below(plain[1], "How it was made")) == 6


def test_what_people_did(tables, tmp_path):
    header, text = written(given(tables, verification=VERIFICATION), tmp_path)
    assert header["annotations_creators"] == ["machine-generated", "expert-generated"]
    assert "human-verified" in header["tags"]
    assert "4 people submitted 80 annotations of 60 questions." in text
    assert "| blind | 3 | 30 | 10 | 22 | 400 | 95.1% | 0.71 | 11 of 12 |" in text
    assert "| not blind | 3 | 30 | 10 | – | 400 | 95.1% | – | – |" in text
    assert "| 1 | Female | 30\\|31 | – |" in text
    assert "On a blind page nothing was ticked" in text
    not_blind = {**VERIFICATION, "kinds": VERIFICATION["kinds"][1:], "people": []}
    _, text = written(given(tables, verification=not_blind), tmp_path)
    assert "No page was blind." in text and "Evaluator" not in text
    _, text = written(given(tables, reviews="12 annotations by 2 people."), tmp_path)
    assert "Human verification: 12 annotations by 2 people." in text


def test_ids_cannot_end_a_code_span_or_a_cell():
    assert code("a`|<b>\n&c") == "`a\\|b &amp;c`"


def benchmark(folder, content_id="c0ffee"):
    rows = [
        {"corpus": corpus, "retriever": retriever, "reranker": "", "reader": reader, "k": k, "metric": metric,
         "strategy": "norm" if reader else "", "value": value}
        for corpus, retriever, reader, k, metric, value in (
            ("release", "bm25", "", 0, "nDCG@10", 0.25), ("release", "bm25", "", 0, "Hit@1", 0.5),
            ("release", "oracle", "", 0, "nDCG@10", 1.0), ("release", "bm25", "names", 1, "EM", 0.1),
            ("release", "bm25", "names", 5, "EM", 0.125), ("other", "bm25", "", 0, "nDCG@10", 0.75),
        )
    ]  # fmt: skip
    folder.mkdir()
    described = {
        "facts": {
            "release": f"v1 (content id {content_id})",
            "questions": "2 of split test",
            "without a relevant passage": "counts as 0",
        }
    }
    (folder / "run.json").write_text(json.dumps(described))
    (folder / "results.json").write_text(json.dumps(rows))
    return folder


def test_baselines_of_a_benchmark(tables, tmp_path):
    _, text = written(given(tables, content_id="c0ffee"), tmp_path, benchmark=benchmark(tmp_path / "b"))
    assert "(questions: 2 of split test; one without a relevant passage counts as 0)" in text
    assert table_below(text, "Baselines") == [
        ["bm25", "25.00", ""], ["oracle", "100.00", ""], ["bm25 + names (5 passages, norm)", "", "12.50"]
    ]  # fmt: skip


def test_a_benchmark_of_another_release_is_refused(tables, tmp_path):
    with pytest.raises(InputError, match="ran on the release v1 .* not on what is exported"):
        written(given(tables, content_id="dead"), tmp_path, benchmark=benchmark(tmp_path / "b"))
    with pytest.raises(InputError, match="a workspace: export a release"):
        written(tables, tmp_path, benchmark=tmp_path / "b")
    with pytest.raises(InputError, match="holds no results of quit benchmark run"):
        written(tables, tmp_path, benchmark=tmp_path)
    assert not (tmp_path / "huggingface").exists()


def test_a_card_with_everything_has_at_most_200_lines(tables, tmp_path):
    people = [{"evaluator": number, "gender": "–", "age": "30", "education": "PhD"} for number in range(30)]
    full = given(
        tables,
        content_id="c0ffee",
        release="v1",
        verification={**VERIFICATION, "people": people},
        sources=[{"name": f"s{number}", "file": "f", "licence": "MIT", "checksum": "1"} for number in range(40)],
        waivers=[{"gate": "unjudged-answer", "waiver": "w", "violations": 1, "examples": ["e"], "why": "y"}] * 2,
    )
    folder = benchmark(tmp_path / "b")
    rows = json.loads((folder / "results.json").read_text())
    rows += [{**rows[0], "retriever": f"dense:{number}"} for number in range(40)]
    (folder / "results.json").write_text(json.dumps(rows))
    _, text = written(full, tmp_path, card=ABOUT, benchmark=folder)
    assert text.count("\n") <= 200
    assert "and 34 more in `settings.json`" in text and "and 24 more" in text and "35 more systems" in text


def test_croissant_names_every_file_field_and_rights(tables, tmp_path):
    written(given(tables, release="v1"), tmp_path, card=ABOUT)
    folder = tmp_path / "huggingface"
    metadata = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert metadata["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert (metadata["license"], metadata["version"], metadata["datePublished"]) == ("CC BY-SA 4.0", "v1", "2026-11-22")
    assert [person["name"] for person in metadata["creator"]] == list(ABOUT.authors)
    assert metadata["url"] == ABOUT.homepage and metadata["citeAs"] == ABOUT.citation
    sums = {entry["path"]: entry["sha256"] for entry in manifest["files"] if entry["path"].endswith(".parquet")}
    objects = [entry for entry in metadata["distribution"] if entry["@type"] == "cr:FileObject"]
    assert {entry["contentUrl"]: entry["sha256"] for entry in objects} == sums
    sets = {entry["@id"] for entry in metadata["distribution"] if entry["@type"] == "cr:FileSet"}
    for records in metadata["recordSet"]:
        assert {field["source"]["fileSet"]["@id"] for field in records["field"]} <= sets
        assert records["field"][0]["name"] == "split"
