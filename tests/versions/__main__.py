"""Make the archive of this version: ``python -m tests.versions``. Do it once a version, when it is published."""

import contextlib
import json
import os
import tarfile
import tempfile
from pathlib import Path

from quit.export import FORMATS
from quit.version import __version__
from tests.paths import starter_lines
from tests.running import call_quit
from tests.servers.builds import served, write_profile
from tests.servers.rude import RudeServer

SPLIT = {"method": "share", "train": "any", "train_share": 0.5}
SERVER = {"base_url_env": "QUIT_URL_OF_VERSIONS"}
MORE = {"passages": {"hints": 2}, "probe": {"repetitions": 1}, "split": SPLIT, "server": SERVER}


def make(folder: Path) -> None:
    """Build, release and export six questions in a folder; the reader knows each answer from any hint."""
    write_profile(folder / "profile.toml", served("http://127.0.0.1:9/v1", "kept", reader={"model": "rude"}, **MORE))
    lines = starter_lines()[:6]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    golds = {row["question"]: row["answers"][0] for row in map(json.loads, lines)}

    def reply(payload: dict) -> str:
        text = payload["messages"][-1]["content"]
        return next((gold for question, gold in golds.items() if "Context" in text and question in text), "NO ANSWER")

    with RudeServer(reply=reply) as server, contextlib.chdir(folder):
        caches = {"QUIT_CACHE": str(folder / "cache"), "QUIT_URL_OF_VERSIONS": server.base_url}
        call_quit("build", "-w", "W", "-p", "profile.toml", "-s", "questions.jsonl", **caches)
        call_quit("release", "create", "-w", "W", "--name", "v1", **caches)
        call_quit("export", "-w", "W/releases/v1", "-f", ",".join(FORMATS), "--out", "exports", **caches)
    build = folder / "W" / "build.json"
    build.write_text(build.read_text().replace(f"{folder}/", ""))  # that folder is not there later


def main() -> None:
    """Write ``tests/versions/VERSION.tar.xz``."""
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary))
        os.chdir(temporary)
        kept = [Path("profile.toml"), Path("questions.jsonl"), Path("W"), Path("exports"), *Path("cache").glob("gen*")]
        with tarfile.open(Path(__file__).parent / f"{__version__}.tar.xz", "w:xz") as archive:
            for path in kept:
                archive.add(path)


if __name__ == "__main__":
    main()
