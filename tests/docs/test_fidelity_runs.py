"""Every command of docs/research/fidelity.md runs as it is printed, on small data, and gives every row of the tables
that it is for; the settings that the page names are so.

Data (``fidelity/``) and checkpoints lie where the page's names point: ``R`` or ``facebook/contriever`` is a file or
folder of that name in the working folder. Checkpoints are tiny ones of the same classes. The profile ``paper`` keeps
its models' names and asks a scripted server.
"""

import json
import re
import shutil
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from quit.models.encoders.sentence import load_encoder
from quit.qa.papers.comparison import compare
from quit.qa.papers.items import items
from quit.qa.settings import QaSettings, load
from quit.settings.loading import PROFILES
from tests.docs.pages import Block, Reader, blocks
from tests.paths import ROOT
from tests.qa.benchmark import tiny
from tests.qa.corpora.worlds import musique_record
from tests.release import published, small
from tests.rows import write_lines
from tests.servers.rude import RudeServer

PAGE = ROOT / "docs" / "research" / "fidelity.md"
BLOCKS = [block for block in blocks(PAGE) if block.kind == "sh"]
TOPICS = ("river", "city", "lake", "desert", "island", "mountain", "forest", "bridge")
WORDS = " ".join((*TOPICS, "what is the of which a a0 a1 true false <extra_id_10>"))


def _copy(name: str) -> Callable[[Path], object]:
    """Return what copies a file or folder from ``fidelity/``."""
    source = Path(__file__).with_name("fidelity") / name
    return lambda path: shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)


def _musique(path: Path) -> None:
    """Two questions over more documents than a graph has neighbours."""
    paragraphs = [(f"{topic} {n}", f"The {topic} is beside the a{n}.") for n in range(13) for topic in TOPICS]
    records = [musique_record("2hop__1", paragraphs, [1, 0]), musique_record("2hop__2", paragraphs[::-1], [2, 0])]
    write_lines(path, records)


def _release(path: Path) -> None:
    """A release with two questions to train on, one to develop and one to test on."""
    more = ((small.SPLIT, "train"), (small.QUESTIONS, "Which lake is high?"), (small.GOLD, "Titicaca"),
            (small.HINTS, ["Reeds grow there.", "Boats cross it."]),
            (small.KEYS, ("79b3b75b3130720b", 0.5002917433578223)))  # fmt: skip
    with ExitStack() as patched:
        for part, value in more:
            patched.enter_context(patch.dict(part, {"q4": value}))
        small.freeze(path, small.rows())


def _model(architecture: str, words: str | None = None, **options: Any) -> Callable[[Path], object]:
    return lambda path: tiny.model(path, architecture, words, **options)


def _contriever(path: Path) -> None:
    tiny.model(path, "BertModel")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "architectures": ["Contriever"]}))


def _late(path: Path) -> None:
    bert = path.with_name(f"{path.name}-bert")
    tiny.model(bert, "BertModel")
    tiny.late(path, bert)


def _dense(path: Path) -> None:
    tiny.encoder(path.with_name(f"{path.name}-made"), WORDS, "cosine").rename(path)


_t5 = partial(tiny.t5, words=WORDS)
NLI = {"id2label": {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}}
INPUTS: dict[str, Callable[[Path], object]] = {
    "QUIT": lambda path: published.write(path, published.splits()), "R": _release, "MODEL": _dense,
    "BEIR": _copy("beir"), "MUSIQUE": _musique,
    "TRIVIAHG": _copy("triviahg.json"), "WIKIHINT": _copy("wikihint.json"), "WIKI": _copy("2wiki.json"),
    **dict.fromkeys(("DPR", "ANCE", "TAS-B", "MPNET", "CONTRIEVER"), _dense),
    "ARMS": _copy("arms.jsonl"), "QUESTIONS": _copy("questions.jsonl"),
    **dict.fromkeys(("CORPUS", "MSMARCO", "WIKIPEDIA"), _copy("documents.jsonl")),
    "facebook/dpr-question_encoder-single-nq-base": _model("DPRQuestionEncoder", WORDS),
    "facebook/dpr-ctx_encoder-single-nq-base": _model("DPRContextEncoder", WORDS),
    "facebook/contriever": _contriever, "BAAI/bge-large-en-v1.5": _dense, "colbert-ir/colbertv2.0": _late,
    "bert-base-uncased": _model("BertModel"), "t5-large": _t5, "Soyoung97/RankT5-3b": _t5, "bigscience/T0_3B": _t5,
    "castorini/monot5-3b-msmarco-10k": _t5, "naver/splade_v2_max": _model("BertForMaskedLM"),
    "nreimers/mmarco-mMiniLMv2-L12-H384-v1": _model("BertForSequenceClassification", num_labels=1),
    "FacebookAI/roberta-large-mnli": _model("BertForSequenceClassification", num_labels=3, **NLI),
}  # fmt: skip
"""What the page names -> what lies there: it is called with the path."""
PRINTED = {
    "FT_DPR": "dpr/models/*-10pos-*/",
    "FT_COLBERT": "colbert/models/*-50pos-*/",
    "FT_MONOT5": "monot5/models/*-10pos-*/",
}
"""What the page calls the folders that its commands print -> where they are."""
REPLACED = {"paper": "paper.toml", "convergence": "convergence.toml", "ID": "musique-2hop_1", "NAME": "llama-31-8b"}
"""What is given in place of a word."""
REPLACED_SETTINGS = {
    'equivalence = "bem"': 'equivalence = "embedded"',
    "human_coverage = 1.0": "human_coverage = 0.0",
    "rerank_first = 1000": "rerank_first = 30\nc = 30\nm = 3",
}
"""What the profile ``paper`` has -> what serves here."""
SMALLER = """
[passages]
hints = 2
[split]
method = "share"
[finetune]
max_steps = 2
[benchmark]
resamples = 100
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A working folder with the profile ``paper``, asked of a server that knows half of the answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with RudeServer(reply=_reply) as server:
        text = (PROFILES / "paper.toml").read_text(encoding="utf-8")
        text = re.sub(r"https?://[\w.:]+/v1", server.base_url, text)
        for paper, here in REPLACED_SETTINGS.items():
            text = text.replace(paper, here)
        (tmp_path / "paper.toml").write_text(text + SMALLER, encoding="utf-8")
        own = re.sub("(?m)^(description|profile) = .*", "", (PROFILES / "convergence.toml").read_text(encoding="utf-8"))
        (tmp_path / "convergence.toml").write_text(text + own, encoding="utf-8")
        yield tmp_path


def _reply(payload: Any) -> str:
    text = json.dumps(payload["messages"])
    if "Is this question complex?" in text:
        return "yes"
    meant = re.findall(r"Which (\w+) is meant", text)
    return f"The {meant[-1]}shire" if meant and "Context" in text and zlib.crc32(text.encode()) % 2 else "NO ANSWER"


def _laid_out(folder: Path, block: str) -> None:
    """Make what a block names, except what one of its commands makes."""
    text = block + (folder / "paper.toml").read_text(encoding="utf-8") * ("-p paper" in block)
    for name, make in INPUTS.items():
        if re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])", text) and f"--out {name}\n" not in f"{block}\n":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            make(folder / name)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=[f"line {block.line}" for block in BLOCKS])
def test_the_pages_commands_run(block: Block, world: Path) -> None:
    _laid_out(world, block.text)
    reader = Reader(world)
    for line in block.text.splitlines():
        for name, place in PRINTED.items():
            if name in line and not (world / name).exists():
                (world / name).symlink_to(next(world.glob(place)))
        text = re.sub(r"\b((?:paper|convergence)(?!\S)|ID|NAME)\b", lambda word: REPLACED[word[0]], line)
        reader.printed = ""
        reader.do(replace(block, text=text))
        if target := text.partition(" > ")[2]:
            (world / target.strip()).write_text(reader.printed, encoding="utf-8")
    _check_rows(world, block.text)
    if "FT_DPR" in block.text:
        _check_encoders(world)


def _check_rows(folder: Path, block: str) -> None:
    """Every row that is said to run here, of the tables that a block's commands are for, has values."""
    for item in items():
        places: list[tuple[str, Path]] = []
        for run in item.runs if item.columns else ():
            out = re.search(r"(?:--out|>|table quit-1|table convergence-\d) (\S+)", run.command)
            if out and run.command in block and " build " not in run.command:
                others = {"musique": "WQA", "2wiki": "MQA"}.get(run.name.split("-")[0])
                parts = " ".join(part for part in item.parts if part != others)
                places.append((parts, folder / out[1].replace("NAME", REPLACED["NAME"])))
        rows = compare(item, places) if places else []
        assert rows or not places, item.id
        assert not [row.row.labels for row in rows if row.missing and not row.row.why], item.id


def _check_encoders(folder: Path) -> None:
    """Compare what the page says of encoders with what the page's checkpoints are loaded as."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    dpr = ("facebook/dpr-question_encoder-single-nq-base", "facebook/dpr-ctx_encoder-single-nq-base", "FT_DPR")
    rows = [*((name, "cls", "dot") for name in dpr), ("facebook/contriever", "mean", "dot")]
    sentence = "(`FT_DPR` too) have `benchmark.pooling` cls and `benchmark.similarity` dot, Contriever mean and dot"
    assert sentence in PAGE.read_text(encoding="utf-8")
    for name, *shown in rows:
        model = load_encoder(str(folder / name), device="cpu")
        [pooling] = {part.pooling_mode for part in model.modules() if isinstance(part, Pooling)}
        assert [pooling, model.similarity_fn_name] == shown, name


def test_settings_that_the_page_names_exist_and_have_the_values_that_it_says() -> None:
    """In the first column `` `a.b = "c"` `` (*paper*) is the value of that profile alone, unmarked the default one."""
    page = PAGE.read_text(encoding="utf-8")
    default, paper = load("embedded").settings, load("paper").settings
    files = {"csv", "json", "jsonl", "png", "txt"}
    named = sorted(set(re.findall(r"[` ]([a-z_]+)\.([a-z_]+)(?==| =|`)", page)))
    settings = [(part, key) for part, key in named if part in QaSettings.model_fields and key not in files]
    assert len(settings) > 30
    for part, key in settings:
        assert hasattr(getattr(default, part), key), f"{part}.{key}"
    here = [row.split(" | ")[0] for row in page.splitlines() if row.startswith("| ")]
    values_on_page = [
        value for cell in here for value in re.findall(r'`([a-z_]+)\.([a-z_]+) = "([^"`]*)"`( \(\*paper\*\))?', cell)
    ]
    assert len(values_on_page) >= 7
    for part, key, value, mark in values_on_page:
        values = [getattr(getattr(settings, part), key) for settings in (default, paper)]
        assert (values[1], values[0] != value) == (value, True) if mark else values[0] == value, f"{part}.{key}"
