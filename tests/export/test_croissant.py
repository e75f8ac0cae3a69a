"""``croissant.json``: read by mlcroissant, compared with figures worked out by hand, and with what a venue requires."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from quit.common.environments import ensure_environment
from quit.dataset.workspace import dataset_of
from quit.engine.planning import last_build
from quit.errors import MissingDependency
from quit.export import export
from quit.export.croissant import _record_set, semantic_version
from quit.review.people import verification
from quit.settings import Review, load_card
from quit.settings.card import Card
from tests.paths import ROOT
from tests.release import small
from tests.review.test_figures import live_rows
from tests.rows import write_lines
from tests.running import call_quit, run_process

PLAIN = Card()
CARD = Path(__file__).with_name("card.toml")
READING = """
import json, sys, mlcroissant
dataset = mlcroissant.Dataset(f"{sys.argv[1]}/croissant.json", mapping=json.loads(sys.argv[2]))
sets = {each.id: list(dataset.records(each.id)) for each in dataset.metadata.record_sets}
labels = {row["passages/id"]: row["passages/label"] for row in sets["passages"]}
assert {row["hints/question_id"] for row in sets["hints"]} == {row["questions/id"] for row in sets["questions"]}
assert {row["qrels/corpus-id"]: row["qrels/score"] for row in sets["qrels"]} == labels
assert {each["splits/name"].encode() for each in sets.pop("splits")} == {row["hints/split"] for row in sets["hints"]}
issues = dataset.metadata.ctx.issues
print(json.dumps({"issues": [*issues.warnings, *issues.errors], "rows": {name: len(sets[name]) for name in sets}}))
"""


def metadata_of(tables, out, card=PLAIN, **facts):
    export(replace(tables, provenance={**tables.provenance, **facts}), ["huggingface"], out, card=card, overwrite=True)
    return json.loads((out / "huggingface" / "croissant.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_mlcroissant_reads_the_starter_and_files_of_a_repository_and_warns_of_nothing(workspace, tables, tmp_path):
    packages, versions = ["mlcroissant==1.1.1", "pandas", "pyarrow"], ["--constraint", str(ROOT / "constraints.txt")]
    try:
        python = ensure_environment("croissant", packages, options=versions) / "python"
    except MissingDependency as error:
        pytest.skip(str(error))
    folder = tmp_path / "huggingface"
    for repository, dataset in (("", dataset_of(last_build(workspace))), ("org/rivers", tables)):
        card = load_card(CARD).model_copy(update={"repository": repository})
        metadata_of(dataset, tmp_path, card, release="v1")
        mapping = json.dumps({"repo": str(folder)} if repository else {})
        reading = run_process(python, "-W", "ignore", "-c", READING, folder, mapping)
        assert "WARNING" not in reading.err, reading.err
        rows = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["facts"]["rows"]
        assert reading.json() == {"issues": [], "rows": {name: sum(counts.values()) for name, counts in rows.items()}}


def test_who_labelled_is_what_the_reviews_say(tables, tmp_path):
    """The figures of ``live_rows`` are worked out in tests/review/test_figures.py."""
    people = write_lines(tmp_path / "people.jsonl", [{"annotator": "ada", "gender": "Female", "age": 19}])
    metadata = metadata_of(tables, tmp_path, verification=verification(live_rows(), Review(people=str(people))))
    assert metadata["rai:annotationsPerItem"] == (
        "Blind pages: 3 annotations of 2 questions, 1 of these by two or more people. "
        "Pages that are not blind: 2 annotations of 2 questions, 0 of these by two or more people."
    )
    assert metadata["rai:dataAnnotationAnalysis"][1:] == [
        "Blind pages: 50.0% of pairs of verdicts on the same answer agree; Krippendorff's alpha 0.00.",
        "Pages that are not blind: no answer was judged by two people.",
    ]
    assert metadata["rai:annotatorDemographics"] == "evaluator 1, gender Female, age 19"
    models = metadata["rai:machineAnnotationTools"]
    assert models[::3] == ["labeler labeler-x: labeler-x@1", "reader reader-x: reader-x@1", "judge rules"]
    assert metadata["rai:dataCollection"] == "Questions and hints of TriviaHG t.json, WikiHint w.json."
    steps = ["Leakage", "Hints", "Types and difficulty", "Splits", "Passages", "Labels", "Verification"]
    assert [each["prov:label"] for each in metadata["prov:wasGeneratedBy"]] == steps
    plain = metadata_of(tables, tmp_path)
    lacking = {"rai:dataAnnotationPlatform", "rai:annotationsPerItem", "rai:annotatorDemographics"}
    assert metadata.keys() - plain.keys() == lacking
    assert plain["license"] == [f"https://spdx.org/licenses/{name}.html" for name in ("CC-BY-4.0", "MIT")]


def test_an_import_says_of_its_labels_alone_how_they_were_made(tables, tmp_path):
    labels = {"rule": "as published: yes", "differences": 1, "passages": 9, "examples": []}
    facts = {"imported": {"labels": labels, "unknown": [], "repeated_answers": 0, "unread": {}}}
    metadata = metadata_of(tables, tmp_path, **facts)
    [made] = metadata["prov:wasGeneratedBy"]
    assert made["prov:label"] == "Labels" and "rai:dataPreprocessingProtocol" not in metadata
    assert made["description"] == metadata["rai:dataAnnotationProtocol"]
    assert "The labels are the published ones: as published: yes." in made["description"]


def test_a_column_of_a_type_without_a_name_is_a_fault():
    with pytest.raises(KeyError, match="date32"):
        _record_set("days", pa.schema([("day", pa.date32())]))


def test_a_version_has_three_numbers():
    versions = {"v1": "1.0.0", "2.1": "2.1.0", "2026.11.02": "2026.11.2", "v1-draft": None, "spring": None, "": None}
    assert {name: semantic_version(name) for name in versions} == versions


def test_what_neurips_requires_is_named_with_its_setting_until_it_is_written(tables, tmp_path):
    release = small.freeze(tmp_path / "v1", small.rows())
    check = ("release", "check", release.path, "--for", "neurips")
    assert "[card] biases: Whom and what" in call_quit(*check, code=8).out
    required = {}
    for code, options, about in ((8, (), PLAIN), (0, ("--card", CARD), load_card(CARD))):
        answer = call_quit(*check, *options, "--json", code=code).json()
        required[code] = {row["field"]: row["there"] for row in answer["required"]}
        exported = metadata_of(tables, tmp_path, about, release="v1")
        assert {field for field, there in required[code].items() if there} <= exported.keys()
        assert {gate["state"] for gate in answer["gates"]} <= {"passed", "not asked"}
    assert {field for field, there in required[8].items() if not there} == {
        *("name", "description", "license", "url", "distribution", "creator", "datePublished"),
        *("rai:dataBiases", "rai:personalSensitiveInformation", "rai:dataSocialImpact"),
    }
    assert all(required[0].values()) and len(required[0]) == 16
    assert "\n- Biases of the questions: Mostly &lt;Europe&gt;. " in (tmp_path / "huggingface/README.md").read_text()
    assert exported["rai:dataBiases"].startswith("Biases of the questions: Mostly <Europe>. Biases of the selection: ")
    call_quit("release", "check", release.path, "--for", "icml", code=4)
    named = call_quit(*check, "--card", CARD, "--blind", "--json", code=8).json()
    assert [row["field"] for row in named["required"] if not row["there"]] == ["creator"]
    text = CARD.read_text(encoding="utf-8").replace('authors = ["Ada Ray", "Bo Lind"]', "").replace("contact", "# ")
    (tmp_path / "blind.toml").write_text(text, encoding="utf-8")
    call_quit(*check, "--card", tmp_path / "blind.toml", "--blind")
    call_quit("release", "check", release.path, "--blind", code=4)


def test_what_acl_rolling_review_asks_is_answered_by_the_card_the_program_and_people(tables, tmp_path):
    release = small.freeze(tmp_path / "v1", small.rows())
    answer = call_quit("release", "check", release.path, "--for", "arr", "--json", code=8).json()
    lacking = {row["field"][:2] for row in answer["required"] if not row["there"]}
    assert lacking == {"A2", "B2", "B4", "D2", "D3", "D4", "D5"} and len(answer["required"]) == 12
    texts = {"social_impact": "S.", "licence": "mit", "personal_information": "P.", "annotator_pay": "15 € an hour.",
             "consent": "C.", "ethics": "E.", "outputs_licence": "O."}  # fmt: skip
    (tmp_path / "card.toml").write_text("[card]\n" + "".join(f'{name} = "{text}"\n' for name, text in texts.items()))
    check = ("release", "check", release.path, "--for", "arr", "--card", tmp_path / "card.toml", "--json")
    assert [row["field"] for row in call_quit(*check, code=8).json()["required"] if not row["there"]] == [
        "D5 annotators"
    ]
    people = write_lines(tmp_path / "people.jsonl", [{"annotator": "ada", "gender": "Female", "age": 19}])
    beside = {"verification": verification(live_rows(), Review(people=str(people)))}
    reviews = {"reviews": 5, "annotators": ["1"], "settled": 4, "open": 0}
    small.freeze(tmp_path / "v2", small.rows(), "v2", beside, reviews=reviews)
    call_quit(check[0], check[1], tmp_path / "v2", *check[3:])
    metadata_of(tables, tmp_path, load_card(tmp_path / "card.toml"), release="v1")
    card = (tmp_path / "huggingface/README.md").read_text()
    assert (
        "Annotators' pay: 15 € an hour. Consent of annotators: C. Ethics: E. Terms of the models' replies: O." in card
    )
