"""The commands as a user runs them: from files to a corpus, an index, a graph, a report, and one clean line for an
error."""

import json
from pathlib import Path

from quit.corpora.graph import NeighbourhoodGraph
from quit.retrieval.built import BuiltCorpus
from tests.conftest import call_quit
from tests.corpora.worlds import musique_record
from tests.rows import write_lines


def test_from_files_to_a_report(tmp_path: Path) -> None:
    rivers = [(name, f"{name} flows through {city}.") for name, city in (("Nile", "Cairo"), ("Tiber", "Rome"))]
    cities = [(city, f"{city} has a river.") for city in ("Cairo", "Rome", "Oslo")]
    source = write_lines(tmp_path / "m.jsonl", [musique_record("2hop__1", rivers + cities, [0, 2])])
    corpus, index, graph = tmp_path / "C", tmp_path / "I", tmp_path / "G"
    done = call_quit("corpus", "build", "-s", f"musique:{source}", "-o", corpus)
    assert done.returncode == 0, done.stderr
    assert "5 documents of 5 paragraphs" in done.stdout and "licence: CC BY 4.0" in done.stdout
    assert "nothing to do" in call_quit("corpus", "build", "-s", f"musique:{source}", "-o", corpus).stdout
    assert call_quit("index", "build", "-c", corpus, "-o", index, "-q").returncode == 0
    done = call_quit("graph", "build", "-c", corpus, "-o", graph, "-k", 2)
    assert done.returncode == 0 and "recall@2 1.0000 on 5 documents" in done.stdout, done.stderr
    opened = BuiltCorpus.open(corpus)
    near = NeighbourhoodGraph.open(graph, opened).neighbours(0, 2)
    assert opened.titles(near)[0] == "Cairo"  # the real MiniLM: the Nile's document is nearest to that of its city
    done = call_quit("index", "evaluate", "-c", corpus, index, "-g", graph, "--json")
    rows = json.loads(done.stdout)
    assert [row["dataset"] for row in rows] == ["musique", "musique/sub-questions"]
    done = call_quit("graph", "report", graph, "-c", corpus, "-i", index, "-o", tmp_path / "R")
    assert done.returncode == 0 and (tmp_path / "R" / "reach.png").is_file(), done.stderr
    assert json.loads(call_quit("graph", "show", graph, "--json").stdout)["documents"] == 5
    for arguments, code, said in (
        (("graph", "build", "-c", corpus, "-o", tmp_path / "H", "-k", 5), 4, "5 documents: k must be 1 to 4"),
        (("graph", "build", "-c", tmp_path, "-o", tmp_path / "H"), 3, "holds no corpus"),
        (("corpus", "build", "-s", "musique:none", "-o", corpus), 3, "does not exist"),
        (("index", "evaluate", "-c", corpus, graph), 3, "holds no finished index"),
    ):
        done = call_quit(*arguments)
        assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr
