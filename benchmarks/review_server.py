"""Time push and pull against a real Label Studio server: 2,600 tasks with 25 answers each.

    python benchmarks/review_server.py [--tasks 2600] [--url URL]

Starts a server of its own (SQLite) unless one is named (token in LABEL_STUDIO_API_KEY). Prints JSON with seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the file is run by its path

from benchmarks.measuring import timed
from quit.annotation.client import connect
from quit.annotation.push import push
from quit.annotation.server import LocalServer
from quit.annotation.sync import pull
from quit.engine.workspace import Workspace
from quit.review.items import ReviewAnswer, ReviewItem
from quit.review.store import ReviewStore
from quit.settings import load


def items(count: int) -> list[ReviewItem]:
    """Return questions with twenty-five answers, two of them accepted."""
    hint = "Hint {} of question {} says something that is about as long as hints usually are in these collections."
    return [
        ReviewItem(
            f"q{number:05d}",
            "dev",
            f"Who is number {number}?",
            (f"Gold {number}",),
            tuple(hint.format(place, number) for place in range(5)),
            tuple(
                ReviewAnswer(
                    f"answer {place}",
                    (f"Answer {place}", f"The answer {place}"),
                    300 - place,
                    ("a", "b"),
                    place < 2,
                    0.3,
                    False,
                )
                for place in range(25)
            ),
        )
        for number in range(count)
    ]


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=2600)
    parser.add_argument("--url", default=None)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    server = None if arguments.url else LocalServer(folder, port=0)
    settings = load("embedded").settings
    store = ReviewStore(Workspace.create(folder / "W"))
    asked = items(arguments.tasks)
    figures: dict[str, float] = {"tasks": arguments.tasks, "load_before": os.getloadavg()[0]}

    try:
        account = server.start() if server else None
        client = connect(folder, settings.review, account.url if account else arguments.url)
        with timed(figures, "push_s"):
            push(store, client, settings, asked)
        with timed(figures, "push_again_s"):
            push(store, client, settings, asked)
        changed = [
            replace(item, question=f"{item.question}!") if place < 100 else item for place, item in enumerate(asked)
        ]
        with timed(figures, "push_100_changed_s"):
            push(store, client, settings, changed)
        project = store.project["id"]
        every: Any = {"all": True, "excluded": []}
        client.ask(
            lambda studio: studio.actions.create(id="predictions_to_annotations", project=project, selected_items=every)
        )
        with timed(figures, "pull_all_s"):
            pull(store, client, settings)
        figures["rows"] = len(store.read())
        time.sleep(60)  # a pull reads again what changed in the minute before the newest change: now 100 tasks
        push(store, client, settings, asked)
        pull(store, client, settings)
        with timed(figures, "pull_nothing_s"):
            pull(store, client, settings)
        with timed(figures, "pull_full_s"):
            pull(store, client, settings, full=True)
    finally:
        if server:
            server.stop()
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
