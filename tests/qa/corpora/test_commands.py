"""The commands as a user runs them: from files to a corpus, an index, a graph, a report, and one clean line for an
error."""

import json
from pathlib import Path

from quit.qa.corpora.graph import NeighbourhoodGraph
from quit.qa.indexes.built import BuiltCorpus
from tests.qa.corpora.worlds import musique_record
from tests.rows import write_lines
from tests.running import call_quit


def test_from_files_to_a_report(tmp_path: Path) -> None:
    rivers = [(name, f"{name} flows through {city}.") for name, city in (("Nile", "Cairo"), ("Tiber", "Rome"))]
    cities = [(city, f"{city} has a river.") for city in ("Cairo", "Rome", "Oslo")]
    source = write_lines(tmp_path / "m.jsonl", [musique_record("2hop__1", rivers + cities, [0, 2])])
    corpus, index, graph = tmp_path / "C", tmp_path / "I", tmp_path / "G"

    def quit_(*arguments: object, code: int = 0) -> str:
        result = call_quit(*arguments, code=code)
        assert "Traceback" not in result.err, result.err
        return result.err if code else result.out

    build = "corpus", "build", "-s", f"musique:{source}", "-o", corpus
    text = quit_(*build)
    assert "5 documents of 5 paragraphs" in text and "licence: CC BY 4.0" in text
    assert "nothing to do" in quit_(*build) and quit_(*build, "-q") == ""
    assert "5 documents of 5 paragraphs" in (text := quit_("corpus", "show", corpus)) and "CC BY 4.0" in text
    assert json.loads(quit_("corpus", "show", corpus, "--json")) == BuiltCorpus.open(corpus).manifest
    export = "corpus", "export", corpus, "--out", tmp_path / "E", "--format"
    assert len(quit_(*export, "beir, trec").splitlines()) == 2 and list((tmp_path / "E").rglob("*qrels*"))
    [documents] = (tmp_path / "E").rglob("corpus.jsonl")
    titles = [json.loads(line)["title"] for line in documents.read_text().splitlines()]
    assert titles == [title for title, _ in rivers + cities]
    quit_(*export, "beir")  # the same bytes
    documents.write_text("{}\n")
    assert "was changed" in quit_(*export, "beir", code=3)
    quit_(*export, "beir", "--overwrite")
    assert "Did you mean 'beir'" in quit_(*export, "bier", code=4)
    quit_("index", "build", "-c", corpus, "-o", index, "-q")
    assert "recall@2 1.0000 on 5 documents" in quit_("graph", "build", "-c", corpus, "-o", graph, "-k", 2)
    opened = BuiltCorpus.open(corpus)
    near = NeighbourhoodGraph.open(graph, opened).neighbours(0, 2)
    assert opened.titles(near)[0] == "Cairo"  # the real MiniLM: the Nile's document is nearest to that of its city
    rows = json.loads(quit_("index", "evaluate", "-c", corpus, index, "-g", graph, "--json"))
    assert [row["dataset"] for row in rows] == ["musique", "musique/sub-questions"]
    quit_("index", "build", "-c", corpus, "-o", tmp_path / "other" / index.name, "-q")
    rows = json.loads(quit_("index", "evaluate", "-c", corpus, index, tmp_path / "other" / index.name, "--json"))
    assert len({row["stage"] for row in rows}) == 3  # two of one name, and both together
    assert json.loads(quit_("graph", "show", graph, "--json"))["documents"] == 5
    mine = dict(zip(opened.ids([0, 1]), [opened.ids([2]), ["gone"]], strict=True))
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    text = quit_("graph", "import", tmp_path / "mine.json", "-c", corpus, "-o", tmp_path / "M")
    assert "1 edges" in text and "encoder imported, method imported; 1 of the 4 documents of mine.json unknown" in text
    assert quit_("graph", "show", tmp_path / "M") == text
    assert json.loads(quit_("index", "evaluate", "-c", corpus, index, "-g", tmp_path / "M", "--json"))
    assert "holds no corpus" in quit_("graph", "build", "-c", tmp_path, "-o", tmp_path / "H", code=3)
    assert "holds no finished index" in quit_("index", "evaluate", "-c", corpus, graph, code=3)
