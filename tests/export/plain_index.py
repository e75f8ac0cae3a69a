"""What the paper's index scripts make of the release JSON, one record at a time: the truth and the baseline of
``paper-index``."""

import json
import random
from pathlib import Path

LABELERS = ("gemma-3-1b", "qwen-3-4b", "llama-31-8b")
READERS = ("llama-32-1b", "gemma-3-4b", "qwen-3-8b")


def plain_index(release_json: Path, out: Path) -> None:
    """Write the seven files from ``{train,dev,test}.json``, everything in memory, as those scripts do."""
    corpus: list[str] = []
    for split in ("train", "dev", "test"):
        questions = json.loads((release_json / f"{split}.json").read_text(encoding="utf-8"))
        records, index = [], []
        for question in questions:
            contexts = []
            for subset, permutations in question["subsets"].items():
                for permutation, answers in permutations.items():
                    text = " ".join(question["hints"][int(place)]["hint"] for place in permutation).strip()
                    name = f"{question['id']}_{subset}_{permutation}"
                    label = 2 if any(answers[labeler] in question["answers"] for labeler in LABELERS) else 1
                    answers = {reader: answers[reader] for reader in READERS}
                    contexts.append({"id": name, "text": text, "rag_answers": answers, "label": label})
            records.append({"question": question["question"], "answers": question["answers"], "contexts": contexts})
            index += [{"id": each["id"], "contents": each["text"], "title": question["id"]} for each in contexts]
        folder = out / split
        folder.mkdir(parents=True)
        for name, rows in (("index.jsonl", index), ("retriever.jsonl", records)):
            with (folder / name).open("w", encoding="utf-8") as file:
                for row in rows:
                    file.write(json.dumps(row) + "\n")
    for split in ("train", "test", "dev"):
        with (out / split / "index.jsonl").open(encoding="utf-8") as file:
            corpus += file.readlines()
    random.seed(42)
    random.shuffle(corpus)
    with (out / "corpus.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(corpus)
