"""Commands that pages show, run over a finished workspace: each must end well and print what it is for. The recipes for
models are built with a scripted server, but for those that ``quit models profile`` prints (tests/commands/test_models).
Other builds and servers: the tutorial's test."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from tests.docs.pages import Reader, blocks
from tests.paths import ROOT, starter_lines
from tests.rows import write_lines
from tests.running import call_quit
from tests.servers.rude import Fault, RudeServer

pytestmark = pytest.mark.slow

HOWTOS = ("operations", "report", "release", "export", "terminal", "library", "designs", "given-passages")
PAGES = ("README.md", *(f"docs/howto/{name}.md" for name in HOWTOS))


@pytest.fixture(scope="module")
def workspace(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished workspace with two releases, and beside it the first one's release JSON."""
    copy = tmp_path_factory.mktemp("shown") / "W"
    shutil.copytree(built, copy)
    for name in ("v1", "v2"):
        call_quit("release", "create", "-w", str(copy), "--name", name)
    published = ("-f", "release-json", "--paper-keys", "--out", str(copy.parent), "-q")
    call_quit("export", "-w", str(copy / "releases" / "v1"), *published)
    return copy


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_runs(page: str, workspace: Path, tmp_path: Path) -> None:
    for name in ("W", "workspace", "copy", *(["mine"] if page == "README.md" else [])):  # built by other pages
        (tmp_path / name).symlink_to(workspace)
    (tmp_path / "QUIT").symlink_to(workspace.parent / "release-json")
    lines = (ROOT / "docs" / "tutorial" / "hints.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "mine.jsonl").write_text("".join(line for line in lines if "everest" not in line), encoding="utf-8")
    records = [json.loads(line) for line in starter_lines(8)]
    documents = [
        {"id": f"d{record['id']}-{place}", "title": "", "text": hint if isinstance(hint, str) else hint["hint"]}
        for record in records
        for place, hint in enumerate(record["hints"])
    ]
    write_lines(tmp_path / "corpus.jsonl", documents)
    write_lines(tmp_path / "questions.jsonl", records)
    kinds = ("sh",) if "export" in page else ("sh", "python")  # tests/export/test_howto.py loads the exports
    assert Reader(tmp_path).read(ROOT / page, kinds) >= 3


def test_the_readmes_record_gets_label_2(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    [record] = [block.text for block in blocks(ROOT / "README.md") if block.kind == "json"]
    (tmp_path / "mine.jsonl").write_text(record, encoding="utf-8")
    call_quit("build", "-w", str(tmp_path / "mine"), "--source", str(tmp_path / "mine.jsonl"))
    labels = Workspace.open(tmp_path / "mine").read("labels")["label"].to_pylist()
    assert f"{labels.count(2)} of its {len(labels)} passages get label 2" in page


RECIPES = [("Ollama", {"gemma3:1b", "llama3.2:3b", "llama3.1:8b"}), ("Your own class", set())]


@pytest.mark.parametrize(("server", "models"), RECIPES)
def test_the_recipe_for_a_server_builds(
    server: str, models: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its profile and commands, as printed, with a server that answers every prompt; three hints, to be quick."""
    page = (ROOT / "docs" / "howto" / "language-models.md").read_text(encoding="utf-8")
    section = tmp_path / "section.md"
    section.write_text(page.partition(f"\n### {server}\n")[2].partition("\n##")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "docs" / "tutorial" / "hints.jsonl", tmp_path)
    ran = []
    with RudeServer(reply=lambda payload: "Lake Baikal") as scripted:
        scripted.models = Fault(body=json.dumps({"data": [{"id": model} for model in models]}).encode())
        monkeypatch.setenv("QUIT_BASE_URL", scripted.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.syspath_prepend(tmp_path)
        commands = "".join(block.text for block in blocks(section) if block.kind == "sh")
        for block in blocks(section):
            if block.kind in ("toml", "python"):
                suffix = "toml" if block.kind == "toml" else "py"
                [name] = set(re.findall(rf"\b\w+\.{suffix}\b", commands))
                text = re.sub(r"https?://[\w.:]+/v1", scripted.base_url, block.text)
                (tmp_path / name).write_text(text, encoding="utf-8")
        for words in (shlex.split(line, comments=True) for line in commands.splitlines()):
            if words[:1] == ["quit"]:
                smaller = ("--set", "passages.hints=3") if words[1] in ("plan", "build") else ()
                call_quit(*words[1:], *smaller)
                ran.append(words[1])
    assert ran[-1] == "build" and len(ran) == (2 if models else 1)
    texts = {request["messages"][-1]["content"] for request in scripted.answered}
    assert {request["model"] for request in scripted.answered} == models and (len(texts) >= 2 * 15 or not models)
    labels = Workspace.open(tmp_path / "workspace").read("labels").to_pylist()
    assert {(row["question_id"], row["label"]) for row in labels} == {("jsonl-baikal", 2), ("jsonl-venus", 1)}
