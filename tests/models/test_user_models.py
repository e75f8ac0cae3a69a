"""A user's own models: a reader of ten lines against a scripted server, objects, and what they can do wrong."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import quit
from quit.engine.planning import as_looked_at
from quit.errors import InputError, ServerError, SettingsError, Stopped
from quit.models import user_classes, user_models
from quit.models.generation import CachedGenerator, GenerationCache, Meter
from quit.models.generation.ledger import Ledger
from quit.models.language_models import language_judge, language_reader, make_generator
from quit.models.protocols import JudgeItem, Prompt, Reply, Verdict
from quit.models.user_classes import register_models
from quit.models.user_models import AT_ONCE
from quit.settings import Settings, load, without
from tests.paths import FEW, STARTER
from tests.report import tiny
from tests.running import call_quit
from tests.servers.rude import RudeServer


class ServerReader:
    """A reader of ten lines: the first word of what a server replies."""

    identity = "1"

    def __init__(self, url: str, model: str = "rude") -> None:
        self.url, self.model = url, model

    def answer(self, prompts: Sequence[Prompt]) -> list[str]:
        return [self._complete(" ".join([*prompt.hints, prompt.question])) for prompt in prompts]

    def _complete(self, text: str) -> str:
        body = {"model": self.model, "messages": [{"role": "user", "content": text}]}
        reply = httpx.post(f"{self.url}/chat/completions", json=body, timeout=60).json()
        return str(reply["choices"][0]["message"]["content"]).split(",")[0]


Keyless = type("Keyless", (ServerReader,), {"__init__": lambda self: {}["API_KEY"]})


class Offline(ServerReader):
    """Its server does not answer."""

    def __init__(self) -> None:
        raise ConnectionRefusedError


class Scripted:
    """Gives what a function makes of each item, and remembers the calls."""

    identity = "1"

    def __init__(self, reply: Callable[[object], object], settings: object = None) -> None:
        self.reply, self.settings = reply, {"settings": settings}
        self.calls: list[tuple[int, int]] = []

    def _all(self, items: Sequence[object], sample: int) -> list[object]:
        self.calls.append((len(items), sample))
        return [self.reply(item) for item in items]


class ScriptedReader(Scripted):
    def answer(self, prompts: Sequence[Prompt], sample: int = 0) -> list[object]:
        return self._all(prompts, sample)


class ScriptedJudge(Scripted):
    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[object]:
        return self._all(items, sample)


def _settings(model: object, name: str = "mine") -> Settings:
    return load("embedded", register_models({name: model})).settings


def _reader(settings: Settings, cache: GenerationCache | None = None, ledger: Ledger | None = None):
    spec = next(spec for spec in settings.readers if spec.name == "mine")
    generator = make_generator(spec, settings, Meter(), ledger or Ledger())
    return language_reader(spec, settings, CachedGenerator(generator, cache))


def _prompts(count: int) -> list[Prompt]:
    return [Prompt(f"q{row}", f"Question {row}?", ("A hint.",)) for row in range(count)]


@pytest.mark.parametrize(
    ("reply", "raw", "answer"),
    [
        ("Answer: Lesotho", "Answer: Lesotho", "Lesotho"),
        ("It is Lesotho, I think.", "It is Lesotho, I think.", "NO ANSWER"),
        ("\x1b[31mLesotho", "Lesotho", "Lesotho"),
        ("", "", "NO ANSWER"),
        (Reply("so: Lesotho", "It is Lesotho, I think."), "so: Lesotho", "It is Lesotho, I think."),
        (Reply("nothing", ""), "nothing", "NO ANSWER"),
        (Reply("none", "No answer."), "none", "NO ANSWER"),
    ],
)
def test_a_string_is_cleaned_and_a_reply_is_taken_as_it_is(reply: object, raw: str, answer: str, tmp_path) -> None:
    with GenerationCache(tmp_path / "replies.sqlite") as cache:
        reader = _reader(_settings(ScriptedReader(lambda _: reply)), cache)
        first = reader.answer(_prompts(1))
        assert (first[0].raw, first[0].answer) == (raw, answer)
        assert reader.answer(_prompts(1)) == first


def test_other_answers_from_the_same_reply_are_of_another_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = _settings(ScriptedReader(str))
    identity = _reader(settings).identity
    monkeypatch.setattr(user_models, "VERSION", 1)
    assert _reader(settings).identity != identity


@pytest.mark.parametrize("verdict", [True, False, None, np.True_, Verdict(True, 0.75, "yes", "far away")])
def test_a_judge_gives_verdicts_or_truth_values(verdict: Verdict | bool | None, tmp_path) -> None:
    expected = verdict if isinstance(verdict, Verdict) else Verdict(verdict, None, "")
    model = ScriptedJudge(lambda item: verdict if item.gold_answers == ("Rome", "Roma") else "?")
    settings = _settings(model)
    assert (settings.judge.name, settings.judge.kind) == ("mine", "python")
    with GenerationCache(tmp_path / "replies.sqlite") as cache:
        judge = language_judge(
            settings.judge, CachedGenerator(make_generator(settings.judge, settings, Meter(), Ledger()), cache)
        )
        for _ in range(2):
            assert judge.verdicts([JudgeItem("q", "Where?", ("Rome", "Roma"), "In Rome")], 3) == [expected]
    assert model.calls == [(1, 3)]


def test_replies_are_kept_in_portions_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        if len(model.calls) == 2 and prompt.question_id == "q100":
            raise TimeoutError("nobody there")
        return prompt.question_id

    model = ScriptedReader(reply)
    settings = _settings(model)
    with GenerationCache(tmp_path / "replies.sqlite") as cache:
        with pytest.raises(ServerError, match="mine: ScriptedReader.answer raised TimeoutError: nobody there"):
            _reader(settings, cache).answer(_prompts(150))
        replies = _reader(settings, cache).answer(_prompts(150))
        assert [reply.answer for reply in replies] == [f"q{row}" for row in range(150)]
        assert model.calls == [(AT_ONCE, 0), (AT_ONCE, 0), (AT_ONCE, 0), (150 - 2 * AT_ONCE, 0)]
        _reader(settings, cache).answer(_prompts(2), sample=1)
    assert model.calls[-1] == (2, 1)


def test_no_answer_begins_after_an_interrupt_and_none_is_lost(tmp_path: Path) -> None:
    ledger = Ledger()
    model = ScriptedReader(lambda prompt: ledger.stop() or prompt.question_id)
    settings = _settings(model)
    with GenerationCache(tmp_path / "replies.sqlite") as cache:
        with pytest.raises(Stopped, match="interrupted. All replies are kept"):
            _reader(settings, cache, ledger).answer(_prompts(150))
        _reader(settings, cache).answer(_prompts(150))
    assert model.calls == [(AT_ONCE, 0), (AT_ONCE, 0), (150 - 2 * AT_ONCE, 0)]


def test_the_identity_follows_name_identity_and_settings(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "class Reader:\n    identity = '1'\n    def __init__(self, x): pass\n    def answer(self, prompts): pass\n"
    others = [(source, 2), (source.replace("'1'", "'2'"), 1), (source + "HELPS = 1\n", 1)]
    identities = set()
    for number, (text, extra) in enumerate([(source, 1), *others]):
        (tmp_path / f"own_{number}.py").write_text(text)
        overrides = ["readers.0.kind=python", f"readers.0.class=own_{number}:Reader", f"readers.0.extra.x={extra}"]
        settings = load("embedded", overrides).settings
        identities.add(user_classes.user_model_identity(settings.readers[0]).replace(f"own_{number}", "own"))
    assert len(identities) == 3 and all(identity.startswith("python/own:Reader@") for identity in identities)
    of_objects = {_settings(ScriptedReader(str, settings)).readers[-1].class_ for settings in (1, 1, 2)}
    assert len(of_objects) == 2


def test_a_class_imports_its_neighbours_when_it_needs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vendor").mkdir()
    Path("neighbour.py").write_text("")
    Path("vendor/vendored.py").write_text("")
    source = "import sys\nsys.path.append('vendor')\nclass Reader:\n    def answer(self, prompts):\n"
    Path("later.py").write_text(
        source + "        import neighbour, vendored\n        return ['Oslo' for _ in prompts]\n"
    )
    settings = load("embedded", ["readers.0.kind=python", "readers.0.class=later:Reader"]).settings
    assert user_classes.user_model(settings.readers[0]).answer([None]) == ["Oslo"]


@pytest.mark.parametrize("source", ["import sys\nsys.exit(0)\n", "def\n", "raise KeyError('x')\n"])
def test_a_module_that_cannot_be_imported_is_named_with_the_line(source: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name := f"broken_{len(source)}.py").write_text(source)
    settings = load("embedded", ["readers.0.kind=python", f"readers.0.class={name[:-3]}:Reader"]).settings
    with pytest.raises(SettingsError, match=rf"cannot be imported \([A-Za-z]+: .*{name}, line \d\)*\. Write it"):
        user_classes.user_model_identity(settings.readers[0])


def _object(**attributes: object) -> Any:
    """Return an object of a new class of this module with these attributes."""
    values = {"__module__": __name__, "answer": lambda self, prompts: ["Oslo" for _ in prompts]}
    model = type("Reader", (), values)()
    model.__dict__.update(attributes)
    return model


def test_an_identity_and_the_settings_stand_for_an_object() -> None:
    def identity(**attributes: object) -> str:
        return _settings(_object(**attributes)).readers[-1].class_ or ""

    first = identity(identity="mine 1", client=object())
    assert first == identity(identity="mine 1", client=object(), calls=7)
    others = ({"identity": "mine 2"}, {"identity": "mine 1", "settings": {"words": 2}})
    assert len({first, *(identity(**attributes) for attributes in others)}) == 3


@pytest.mark.parametrize("attributes", [{}, {"identity": ""}, {"identity": 1}])
def test_a_class_without_an_identity_is_refused_with_the_line_that_it_lacks(attributes: dict[str, object]) -> None:
    line = 'Reader has no identity.* Add this line to the class, and change it with the replies: identity = "Reader 1"'
    with pytest.raises(SettingsError, match=line):
        _settings(_object(**attributes))


@pytest.mark.parametrize("value", [object(), {1}, b"", [len], np.float32(1)])
def test_settings_that_json_cannot_hold_are_refused(value: object) -> None:
    with pytest.raises(SettingsError, match="Reader: JSON cannot hold its `settings`"):
        _settings(_object(identity="mine 1", settings={"value": value}))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ScriptedReader(lambda prompt: 1 / 0), "mine: ScriptedReader.answer raised ZeroDivisionError"),
        (ScriptedReader(lambda prompt: sys.exit(0)), "mine: ScriptedReader.answer raised SystemExit: 0"),
        (ScriptedReader(lambda prompt: 7), "returned what is no reply: int, expected str or Reply"),
        (ScriptedReader(lambda prompt: "Leso\ud83d"), "returned what is no reply.*surrogates"),
        (ScriptedReader(lambda prompt: Reply("x", None)), "no reply: a Reply whose answer is None"),  # type: ignore
        (type("Few", (ScriptedReader,), {"answer": lambda self, prompts: []})(str), "0 replies to 1 item"),
    ],
)
def test_what_a_class_does_wrong_is_named(model: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _reader(_settings(model)).answer(_prompts(1))


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(1, None, ""),  # type: ignore
        Verdict(True, "high", ""),  # type: ignore
        Verdict(True, None, None),  # type: ignore
        Verdict(True, math.nan, ""),
        Verdict(True, 1.5, ""),
    ],
)
def test_a_verdict_that_no_table_can_hold_is_named(verdict: Verdict) -> None:
    settings = _settings(ScriptedJudge(lambda item: verdict))
    generator = CachedGenerator(make_generator(settings.judge, settings, Meter(), Ledger()), None)
    with pytest.raises(
        InputError, match="no reply: a Verdict whose (correct is 1|probability is ('high'|nan|1.5)|raw is None)"
    ):
        language_judge(settings.judge, generator).verdicts([JudgeItem("q", "Where?", ("Rome",), "Roma")])


@pytest.mark.parametrize(
    ("name", "extra", "message"),
    [
        ("no_such_module:Reader", "{}", "cannot be imported .No module named 'no_such_module'.*package.module:Name"),
        ("tests.models.test_user_models:Reader", "{}", "cannot be imported .*has no attribute 'Reader'"),
        ("tests.models.test_user_models:FEW", "{}", "is not a class"),
        ("tests.models.test_user_models:Scripted", "{}", "has no method answer"),
        ("tests.models.test_user_models:ServerReader", "{x = 1}", "made with its `extra`: TypeError: .*'x'"),
        ("tests.models.test_user_models:Keyless", "{}", "Keyless cannot be made with its `extra`: KeyError: 'API_KEY'"),
        ("object:gone", "{}", 'only that Python process has.*in its threads.*class = "package.module:Name"'),
    ],
)
def test_a_class_that_cannot_be_used_is_named(name: str, extra: str, message: str) -> None:
    values = ("name=mine", "kind=python", f'class="{name}"', f"extra={extra}")
    with pytest.raises(SettingsError, match=message):
        _reader(load("embedded", [f"readers.0.{value}" for value in values]).settings).answer(_prompts(1))


def test_a_class_that_does_not_reach_its_server_may_be_tried_again() -> None:
    name = "tests.models.test_user_models:Offline"
    settings = load("embedded", ["readers.0.kind=python", f"readers.0.class={name}"]).settings
    with pytest.raises(ServerError, match="Offline cannot be made with its `extra`: ConnectionRefusedError"):
        user_classes.user_model(settings.readers[0])


def test_an_object_without_a_method_or_in_other_processes_is_refused() -> None:
    with pytest.raises(SettingsError, match="'mine' .object. needs one of the methods"):
        register_models({"mine": object()})
    with pytest.raises(SettingsError, match=r"run.runner=threads only. .*package.module:Name"):
        register_models({"mine": ScriptedReader(str)}, overrides=["run.runner=ray"])


def test_objects_that_cannot_be_told_apart_are_refused() -> None:
    """Else both names would be answered by the second."""
    with pytest.raises(SettingsError, match="'a' and 'b' have the same identity.*attribute `settings`"):
        register_models({name: ScriptedReader(lambda prompt, name=name: name) for name in "ab"})


def test_an_object_takes_the_place_of_a_reader_or_is_one_more() -> None:
    second = ScriptedReader(str, "second")
    second.role = "reader"
    settings = load("embedded", register_models({"minilm-late": ScriptedReader(str), "b": second})).settings
    assert len(settings.readers) == 7
    by_name = {reader.name: (reader.kind, reader.role) for reader in settings.readers}
    assert (by_name["minilm-late"], by_name["b"]) == (("python", "labeler"), ("python", "reader"))


def test_an_object_that_judges_replaces_the_judge_of_the_last_build() -> None:
    first, second = (ScriptedJudge(lambda item: True, name) for name in "ab")
    remembered = register_models({"a": first})
    own = register_models({"b": second}, "embedded", remembered)
    for overrides, name in ((remembered, "a"), ([*without(remembered, own), *own], "b")):
        assert load("embedded", overrides).settings.judge.name == name
    with pytest.raises(SettingsError, match="'a' and 'b' are both judges"):
        register_models({"a": first, "b": second})


@pytest.mark.slow
def test_a_build_asks_a_class_once_whoever_asks(few_source: Path, tmp_path: Path, monkeypatch) -> None:
    """By name in a profile, then as an object; later commands need neither."""
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    gold = {row["question"]: row["answers"][0] for row in map(json.loads, few_source.read_text("utf-8").splitlines())}

    def reply(payload: object) -> str:
        text = payload["messages"][0]["content"]
        return next(answer for question, answer in gold.items() if text.endswith(question)) + ", of course"

    with RudeServer(reply=reply) as server:
        values = ("name=mine", "role=labeler", "kind=python", "class=tests.models.test_user_models:ServerReader")
        named = [*values, f'extra.url="{server.base_url}"']
        sets = [part for value in named for part in ("--set", f"readers.2.{value}")]
        call_quit("build", "-w", tmp_path / "A", "-s", f"jsonl:{few_source}", "-p", FEW, *sets)
        requests = len(server.requests)
        rows = call_quit("query", "-w", tmp_path / "A", "--json", "SELECT label, count(*) AS n FROM labels GROUP BY 1")
        assert rows.json() == [{"label": 2, "n": 4 * len(gold)}]
        # Two hints make four passages; the probe asks three times.
        assert requests == len(gold) * (4 + 3)
        model = ServerReader(server.base_url, "other")
        tables = quit.build(tmp_path / "C", few_source, str(FEW), models={"mine": model}, progress=False)
        assert len(server.requests) == 2 * requests
        monkeypatch.setattr(user_classes, "_OBJECTS", {})
        [row] = tables.sql("SELECT DISTINCT producer FROM answers WHERE reader = 'mine'").to_pylist()
        assert row["producer"].startswith("python/tests.models.test_user_models:ServerReader@")
        assert "up to date" in call_quit("build", "-w", tmp_path / "C").err
        again = call_quit("build", "-w", tmp_path / "C", "--fresh-replies", code=SettingsError.exit_code)
        assert "mine was given to quit.build as an object" in again.err


LOOKS = (
    "status",
    "plan",
    "workspace gc",
    "doctor",
    "release check",
    "release create --name v1",
    "export -f csv",
    "review status",
    "evaluate",
)


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module ``marked`` in the current folder that writes a file, which is returned, when it is imported."""
    reader = "class Reader:\n    identity = '1'\n    def answer(self, prompts): return ['Oslo'] * len(prompts)\n"
    (tmp_path / "marked.py").write_text(f"open('imported', 'a').write('x')\n{reader}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "imported"
    sys.modules.pop("marked", None)


CLASS = ["readers.0.kind=python", "readers.0.class=marked:Reader"]


def test_to_look_at_a_workspace_runs_none_of_its_code(tmp_path: Path, marked: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    workspace.set_build({"profile": str(FEW), "overrides": CLASS, "sources": ["jsonl:" + str(STARTER)]})
    for command in LOOKS:
        call_quit(*command.split(), "-w", workspace, code=None)
        assert not marked.exists(), command
    assert "Not compared: marked:Reader" in call_quit("status", "-w", workspace).err


def test_what_is_only_looked_at_is_a_fact_of_its_settings(tmp_path: Path, marked: Path) -> None:
    """In one process a workspace is looked at, and another planned or built: a class is imported for that one alone."""
    settings = load("embedded", CLASS).settings
    looked_at = as_looked_at(tiny.workspace(tmp_path / "W"), settings)
    assert user_classes.user_model_identity(looked_at.readers[0]) == "python/marked:Reader"
    assert not marked.exists() and looked_at.model_dump() == settings.model_dump()
    assert user_classes.user_model_identity(settings.readers[0]).startswith("python/marked:Reader@")
    assert marked.exists()


@pytest.mark.slow
def test_a_built_class_is_known_by_its_tables_where_it_is_not_imported(
    few_source: Path, tmp_path: Path, marked: Path
) -> None:
    sets = [part for value in CLASS for part in ("--set", value)]
    built = call_quit("build", "-w", "W", "-s", f"jsonl:{few_source}", "-p", FEW, *sets).err
    assert f"marked:Reader is imported from {tmp_path / 'marked.py'}" in built
    marked.unlink()
    sys.modules.pop("marked")
    made = call_quit("release", "create", "-w", "W", "--name", "v1")
    assert not marked.exists() and "Not compared: marked:Reader" in made.err
    call_quit("export", "-w", "W", "-f", "csv", "--out", "out")
    assert not marked.exists()
