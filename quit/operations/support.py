"""A bundle for asking for help: what is installed, how the workspace is, what failed. No secrets, no texts."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import platform
import re
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quit import __version__
from quit.common.files import replacing, writing
from quit.common.secrets import SECRET, anonymous
from quit.engine.workspace import Workspace
from quit.errors import InputError, QuitError
from quit.operations.doctor import examine
from quit.settings import load
from quit.status.stages import status

README = """Made by `quit workspace support`. Read it before you send it: it is plain text.

versions.json    programs and packages
doctor.json      checks of the installation
settings.json    effective settings with their origins
workspace.json   stages, rows, rejects by reason, manifests (counts and checksums), size on disk
usage.jsonl      what was asked of language models: counts, and addresses of servers
environment.json which variables are set (never what they hold, but for a few harmless ones)

Left out: questions, hints, answers, reviews, people's names, replies of models, tokens. Your home folder is written \
~, and whatever
looks like a token, a password or an e-mail address is struck out.
"""

_RELEVANT = re.compile(
    r"^(QUIT_|PREFECT_|HF_|LABEL_STUDIO_|RAY_|AWS_|CUDA_|OMP_|VLLM_|FSSPEC_|DO_NOT_TRACK|NO_COLOR|TOKENIZERS_)"
)
_SHOWN = "CUDA_VISIBLE_DEVICES DO_NOT_TRACK HF_HUB_OFFLINE NO_COLOR OMP_NUM_THREADS QUIT_CACHE QUIT_ENVS".split()


def bundle(target: Path, workspace: Path | None, profile: str) -> list[str]:
    """Write the bundle, a ZIP file readable by its owner alone; returns the names of its files.

    What cannot be read is said in its place, since a support bundle is made when something is broken. Raises
    ``InputError`` where ``target`` exists and ``WorkspaceError`` where the disk refuses.
    """
    if target.exists():
        raise InputError(f"{target} exists. Name another file.")
    files = {
        "README.txt": README,
        "versions.json": _json(_versions()),
        "doctor.json": _json(_try(lambda: [asdict(check) for check in examine(profile, workspace)])),
        "environment.json": _json(_environment()),
        "settings.json": _json(_try(lambda: _settings(workspace, profile))),
    }
    if workspace is not None:
        files["workspace.json"] = _json(_try(lambda: _workspace(workspace)))
        diary = _try(
            lambda: (Workspace.at(workspace).path / "usage.jsonl").read_text(encoding="utf-8", errors="replace")
        )
        if isinstance(diary, str):
            files["usage.jsonl"] = diary
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), anonymous(text), zipfile.ZIP_DEFLATED)
    with writing(target), replacing(target, private=True) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return list(files)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def _try(make: Any) -> Any:
    try:
        return make()
    except QuitError as error:
        return {"fault": str(error)}
    except Exception as error:  # it is made when something is broken
        return {"fault": f"{type(error).__name__}: {error}"}


def _versions() -> dict[str, Any]:
    packages = {
        package.metadata["Name"]: package.version
        for package in importlib.metadata.distributions()
        if package.metadata["Name"]
    }
    return {
        "quit": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }


def _environment() -> dict[str, str]:
    return {
        name: value if name in _SHOWN else "set" for name, value in sorted(os.environ.items()) if _RELEVANT.match(name)
    }


def _settings(workspace: Path | None, profile: str) -> list[dict[str, Any]]:
    overrides: list[str] = []
    opened = Workspace.at(workspace) if workspace is not None else None
    if opened is not None and opened.exists:
        known = opened.build or {}
        profile, overrides = known.get("profile", profile), known.get("overrides", [])
    return [
        {"key": key, "value": "[secret]" if _is_secret(key, value) else value, "origin": origin}
        for key, value, origin in load(profile, overrides).rows()
    ]


def _is_secret(key: str, value: Any) -> bool:
    """Whether a setting may hold a secret. Names of variables (``key_variable``) are none."""
    return (
        isinstance(value, str)
        and bool(SECRET.search(key.rpartition(".")[2]))
        and not value.isupper()
        and " " not in value
        and bool(value)
    )


def _workspace(path: Path) -> dict[str, Any]:
    opened = Workspace.open(path, upgrade=False)
    known = opened.build or {}
    stages = [
        {
            "run": stage.run,
            "state": stage.state,
            "rows": stage.rows,
            "rejects": stage.rejects,
            "shards": [stage.shards_done, stage.shards],
        }
        for stage in status(opened)
    ]
    manifests = {
        run: {key: value for key, value in manifest.items() if key not in ("settings", "sources")}
        for run, (_, manifest) in opened.current().items()
    }
    sizes: dict[str, dict[str, int]] = {}
    for file in opened.path.rglob("*"):
        if file.is_file():
            size = sizes.setdefault(file.relative_to(opened.path).parts[0], {"files": 0, "bytes": 0})
            size["files"] += 1
            size["bytes"] += file.stat().st_size
    return {
        "path": opened.address,
        "profile": known.get("profile"),
        "overrides": len(known.get("overrides", ())),
        "sources": [urlsplit(text).scheme for text in known.get("sources", ())],
        "stages": stages,
        "damaged": [str(file.relative_to(opened.path)) for file in opened.damaged()],
        "size": dict(sorted(sizes.items())),
        "manifests": manifests,
    }
