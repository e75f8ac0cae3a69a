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
from quit.text.normalize import squad_normalised
from tests.comparing import files_of
from tests.export.conftest import make_tables, truth_of
from tests.export.hub import TOKEN, hub
from tests.rows import table_of
from tests.running import run_process
from tests.servers.rude import RudeServer

PROMPTS = {"no_hints": "probe", "all_hints": "reader", "passage": "reader"}
# Of a model to each question: 0 and 1 are its first gold answer to every tool, 2 is another valid answer, and only
# lm-evaluation-harness leaves out the label of 3.
REPLIES = ['Gold "0"', "THE gold 1!\n", "Oro 2", "Answer: gold 3", "NO ANSWER", "", "gold 66", "It is Gold 7."]


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
    truth, rows = exported[0], pq.read_table(exported[1] / "evaluation").to_pylist()
    assert [(row["id"], row["question"]) for row in rows] == list(truth.questions.items())[:8]
    for number, row in enumerate(rows):
        assert truth.labels[row["passage_id"]] == 2 and truth.texts[row["passage_id"]] == row["passage"]
        assert truth.texts[f"q {number}_01234_01234"] == row["all_hints"]
        assert (row["answer"], row["answers"]) == (f'Gold "{number}"', truth.valid[row["id"]])


@pytest.mark.parametrize("task", PROMPTS)
def test_the_prompts_are_the_readers_and_lm_eval_normalises_as_the_judge(exported, task):
    config, tasks = (yaml.safe_load((exported[1] / n).read_text()) for n in (f"lm_eval/quit_{task}.yaml", "eval.yaml"))
    system, *turns = (text.replace("{context}", f"{{{task}}}") for _, text in load_prompt(PROMPTS[task]).turns)
    shots = [text for shot in config.get("fewshot_config", {"samples": ()})["samples"] for text in shot.values()]
    given = (config["description"].strip(), *shots, config["doc_to_text"])
    assert given == (system, *turns[:-1], re.sub("{(.*?)}", "{{\\1}}", turns[-1]))
    text = "".join(turn + "\n" * (1 + number % 2) for number, turn in enumerate(turns)).strip()
    solvers = {one["id"]: [solver["args"].get("template") for solver in one["solvers"]] for one in tasks["tasks"]}
    assert solvers[task] == [system, text.replace("{question}", "{prompt}"), None]
    for text in ("The U.S.A.", "an  “Eiffel  tower”!", "rock-n-roll", "x_y", "Theatre", " Édouard", "10", "a 1 the 0"):
        patterns = config["metric_list"][0]["regexes_to_ignore"]
        assert reduce(lambda text, pattern: re.sub(pattern, "", text), patterns, text).lower() == squad_normalised(text)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["lm_eval", "inspect_ai"])
def test_right_replies_are_counted(exported, tmp_path, tool):
    pytest.importorskip(tool, reason=f"{tool} is not installed")

    def reply(sent):
        return REPLIES[int(re.findall("“(.)”", sent["messages"][-1]["content"])[-1])]

    with RudeServer(reply=reply) as model, hub() as server:
        server.repositories["org/data"] = {"private": False, "files": files_of(exported[1])}
        variables = {"HF_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "HF_ENDPOINT": server.address}
        variables |= {"HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN, "OPENAI_BASE_URL": model.base_url}
        words = "eval hf/org/data --model openai-api/openai/m --display none --log-format json --log-dir out"
        if tool == "lm_eval":
            words = "run --include_path huggingface/lm_eval --tasks quit quit_first_answer --apply_chat_template"
            words += f" --model local-chat-completions --model_args base_url={model.base_url}/chat/completions"
            words += " --output_path out"
        run_process(sys.executable, "-m", tool, *words.split(), cwd=exported[1].parent, OPENAI_API_KEY="x", **variables)
    logs = [json.loads(path.read_text()) for path in exported[1].with_name("out").rglob("*.json")]
    if tool == "lm_eval":
        scores = {name: row["exact_match,first_line"] for name, row in logs[0]["results"].items()}
        groups = {"quit": 4 / 8, "quit_first_answer": 3 / 8}
        assert scores == {f"{group}_{task}": score for group, score in groups.items() for task in PROMPTS}
    else:
        assert [log["results"]["scores"][0]["metrics"]["mean"]["value"] for log in logs] == 3 * [2 / 8]
