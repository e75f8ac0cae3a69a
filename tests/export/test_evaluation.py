"""The tasks of ``--eval``: what they hold, and how lm-evaluation-harness and Inspect score them."""

import json
import re
import sys
from dataclasses import replace
from functools import reduce

import pyarrow.parquet as pq
import pytest
import yaml

from quit.export import export
from quit.models.prompting import load_prompt
from quit.text.normalize import normalize_answer
from tests.comparing import files_of
from tests.export.conftest import make_tables, truth_of
from tests.export.hub import TOKEN, hub
from tests.rows import table_of
from tests.running import run_process
from tests.servers.rude import RudeServer

PROMPTS = {"no_hints": "probe", "all_hints": "reader", "passage": "reader"}
REPLIES = ['Gold "0"', "THE gold 1!\n", "Oro 2", "Answer: gold 3", "NO ANSWER", "", "gold 66", "It is Gold 7."]
"""Of a model to each question: 0 and 1 are its first gold answer to every tool, 2 is another valid answer, and only
lm-evaluation-harness leaves out the label of 3."""
SAME = {"The U.S.A.": "usa", "an  “Eiffel  tower”!": "Eiffel Tower", "rock-n-roll": "rocknroll", "x_y": "XY"}
DIFFERENT = {"a b": "a c", "Theatre": "atre", "Édouard": "Edouard", "10": "1 0"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """What an export holds and its folder: a question for each reply, and one without a passage of label 2."""
    tables, out = make_tables({f"q {number}": "test" for number in range(9)}), tmp_path_factory.mktemp("evaluation")
    rows = [row for row in tables.valid_answers.to_pylist() if row["question_id"] != "q 8"]
    valid = table_of("valid_answers", rows + [{**rows[0], "question_id": f"q {n}", "answer": "Oro 2"} for n in (2, 8)])
    labels = [row | {"label": 1} if row["question_id"] == "q 8" else row for row in tables.labels.to_pylist()]
    tables = replace(tables, labels=table_of("labels", labels), valid_answers=valid)
    export(tables, ["huggingface"], out, evaluation=True)
    return truth_of(tables), out / "huggingface"


def test_questions_have_their_hints_a_passage_of_label_2_and_their_answers(exported):
    truth, folder = exported
    rows = pq.read_table(folder / "evaluation").to_pylist()
    assert [(row["id"], row["question"]) for row in rows] == list(truth.questions.items())[:8]
    for number, row in enumerate(rows):
        assert truth.labels[row["passage_id"]] == 2 and truth.texts[row["passage_id"]] == row["passage"]
        assert truth.texts[f"q {number}_01234_01234"] == row["all_hints"]
        assert (row["answer"], row["answers"]) == (f'Gold "{number}"', truth.valid[row["id"]])


@pytest.mark.parametrize("task", PROMPTS)
def test_the_prompts_are_the_readers(exported, task):
    config, tasks = (yaml.safe_load((exported[1] / n).read_text()) for n in (f"lm_eval/quit_{task}.yaml", "eval.yaml"))
    system, *turns = (text.replace("{context}", f"{{{task}}}") for _, text in load_prompt(PROMPTS[task]).turns)
    samples = config.get("fewshot_config", {"samples": ()})["samples"]
    last = re.sub("{(.*?)}", "{{\\1}}", turns[-1])
    assert (config["description"].strip(), config["doc_to_text"]) == (system, last)
    assert [text for shot in samples for text in shot.values()] == turns[:-1]
    [solvers] = [one["solvers"] for one in tasks["tasks"] if one["id"] == task]
    text = "".join(turn + "\n" * (1 + number % 2) for number, turn in enumerate(turns)).strip()
    given = [solver["args"].get("template") for solver in solvers]
    assert given == [system, text.replace("{question}", "{prompt}"), None]


def test_lm_eval_normalises_as_the_judge_does(exported):
    metric = yaml.safe_load((exported[1] / "lm_eval/quit_passage.yaml").read_text())["metric_list"][0]
    for pair in (SAME | DIFFERENT).items():
        forms = (reduce(lambda text, form: re.sub(form, "", text), metric["regexes_to_ignore"], text) for text in pair)
        assert [len({form.lower() for form in forms}), len({*map(normalize_answer, pair)})] == 2 * [
            2 - (pair[0] in SAME)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["lm_eval", "inspect_ai"])
def test_right_replies_are_counted(exported, tmp_path, tool):
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    last = "“(.)”[^“]*$"  # the number in the text of a question
    with (
        RudeServer(reply=lambda sent: REPLIES[int(*re.findall(last, str(sent["messages"])))]) as model,
        hub() as server,
    ):
        server.repositories["org/data"] = {"private": False, "files": files_of(exported[1])}
        variables = dict.fromkeys(("HF_HOME", "HF_DATASETS_CACHE", "XDG_CACHE_HOME"), str(tmp_path))
        variables |= dict.fromkeys(("OWN_API_KEY", "OPENAI_API_KEY", "HF_TOKEN"), TOKEN) | {"HF_HUB_OFFLINE": "0"}
        words = "eval hf/org/data --model openai-api/own/m --display none --log-format json --log-dir out"
        if tool == "lm_eval":
            words = (
                "run --include_path huggingface/lm_eval --tasks quit quit_first_answer --model local-chat-completions "
            )
            words += f"--model_args base_url={model.base_url}/chat/completions --apply_chat_template --output_path out"
        variables |= {"HF_ENDPOINT": server.address, "OWN_BASE_URL": model.base_url}
        run_process(sys.executable, "-m", tool, *words.split(), cwd=exported[1].parent, **variables)
    logs = [json.loads(path.read_text()) for path in exported[1].with_name("out").rglob("*.json")]
    if tool == "lm_eval":
        scores = {name: row["exact_match,first_line"] for name, row in logs[0]["results"].items()}
        assert scores == {
            f"quit{kind}_{task}": n / 8 for kind, n in (("", 4), ("_first_answer", 3)) for task in PROMPTS
        }
    else:
        assert [log["results"]["scores"][0]["metrics"]["mean"]["value"] for log in logs] == 3 * [2 / 8]
