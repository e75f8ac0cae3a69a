"""A Label Studio server on this machine: its own environment, an embedded database in the workspace, one account.

The server's dependencies conflict with Prefect's, so it never shares an environment with the pipeline
(:mod:`quit.common.environments`).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from quit.common.children import SupervisedProcess
from quit.common.environments import ensure_environment
from quit.common.files import replacing, writing
from quit.common.starting import HOST, end, free_port, healthy, is_free, wait_until_healthy
from quit.common.telemetry import SILENT
from quit.errors import InputError, MissingDependency, ServerError, WorkspaceError

REQUIREMENTS = Path(__file__).with_name("server-requirements.txt")
EMAIL = "owner@quit.local"
START_SECONDS = 240.0
"""How long Label Studio may take to start."""
HELD_SECONDS = 900
"""How long an opened task is kept for the person who opened it; Label Studio's own value is a day."""


def _version() -> str:
    return re.findall(r"(?m)^label-studio==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"))[0]


def label_studio_programs(say: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of programs of the server's environment, made on first use (about two minutes; later at once).

    Raises :class:`MissingDependency` with the end of pip's output when it cannot be installed. Several processes may
    ask at once.
    """
    try:
        return ensure_environment("label-studio", REQUIREMENTS, log=say)
    except MissingDependency as error:
        raise MissingDependency(
            f"Label Studio {_version()} could not be installed: {error}\nCheck the connection to a package index and "
            "run the command again, or use a server you have: quit review push --url URL."
        ) from error


@dataclass(frozen=True)
class Account:
    """Where the local server is and how to get in. The password and the token are secrets. ``folder``: the workspace,
    which tells a copy of the file from its original."""

    url: str
    email: str
    password: str
    token: str
    version: str
    folder: str = ""
    pid: int | None = None

    def __repr__(self) -> str:
        return f"Account({self.url}, {self.email})"


def stored_account(workspace: Path) -> Account | None:
    """Return the account of the workspace's local server, or None where there never was one.

    Raises :class:`WorkspaceError` for a file that cannot be read.
    """
    path = _account_file(workspace)
    try:
        return Account(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise WorkspaceError(
            f"{path} cannot be read: {error}. Delete it; quit review serve creates it again."
        ) from error


def _account_file(workspace: Path) -> Path:
    return workspace / "reviews" / "server" / "account.json"


def store_account(workspace: Path, account: Account) -> None:
    """Keep the account of a workspace's server: in a file that its owner alone can read, at any moment, in a folder
    that git leaves out."""
    path = _account_file(workspace)
    with writing(path), replacing(path, private=True) as temporary:
        temporary.write_text(json.dumps(asdict(account), indent=1), encoding="utf-8")
        (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")


class LocalServer:
    """A Label Studio server whose data live in ``W/reviews/server``."""

    def __init__(self, workspace: Path, port: int = 8080) -> None:
        self.workspace = workspace
        self.folder = workspace / "reviews" / "server"
        self._port = port
        self._process: SupervisedProcess | None = None

    def start(self, say: Callable[[str], None] = lambda _: None) -> Account:
        """Start the server and wait until it answers; returns the account. A server that already runs is used as it is.

        ``port`` 0 takes a free one. Whether it is up is asked by plain HTTP: the SDK has no call for it. Raises
        :class:`ServerError` when it does not come up, :class:`InputError` when the port is taken,
        :class:`WorkspaceError` when the data belong to a newer Label Studio.
        """
        former = stored_account(self.workspace)
        if former and _number(former.version) > _number(_version()):
            raise WorkspaceError(
                f"The data in {self.folder} were written by Label Studio {former.version}; this program starts "
                f"{_version()}. Use the newer program, or an empty folder."
            )
        here = str(self.workspace.resolve())
        copied = former and former.folder != here and _account_file(Path(former.folder)).is_file()
        if former and former.pid and not copied and _alive(former.pid) and healthy(former.url):
            return former
        programs = label_studio_programs(say)
        port = self._port = self._port or free_port()
        if not is_free(port):
            raise InputError(f"Port {port} of {HOST} is in use by another program. Name another: --port 8081.")
        account = Account(
            url=f"http://{HOST}:{port}",
            email=EMAIL,
            password=former.password if former else secrets.token_urlsafe(12),
            token=former.token if former else secrets.token_hex(20),
            version=_version(),
            folder=here,
        )
        store_account(self.workspace, account)
        log = self.folder / "server.log"
        with log.open("ab") as out:
            program = [str(programs / "python"), "-I", str(Path(__file__).with_name("own_server.py"))]
            self._process = SupervisedProcess(
                [*program, "start", "--no-browser", "--internal-host", HOST, "--port", str(port)],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=self._environment(account),
            )
        store_account(self.workspace, replace(account, pid=self._process.pid))
        say(f"Starting Label Studio {account.version} at {account.url} (the first time a minute or two) ...")
        try:
            wait_until_healthy(self._process, f"Label Studio {account.version}", account.url, START_SECONDS, log)
        except ServerError:
            self.kill()
            raise
        return replace(account, pid=self._process.pid)

    def _environment(self, account: Account) -> dict[str, str]:
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("LABEL_STUDIO_", "DJANGO_"))
        }
        variables.pop("PYTHONPATH", None)
        return {
            **variables,
            **SILENT,
            "LABEL_STUDIO_BASE_DATA_DIR": str((self.folder / "data").resolve()),
            "LABEL_STUDIO_USERNAME": account.email,
            "LABEL_STUDIO_PASSWORD": account.password,
            "LABEL_STUDIO_USER_TOKEN": account.token,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
            "LABEL_STUDIO_TASK_LOCK_TTL": str(HELD_SECONDS),
            "fflag_fix_all_optic_79_task_count_is_wrong_short": "true",  # the page says "3 of 10"
            "OMP_NUM_THREADS": "1",
        }

    def runs_on(self, seconds: float) -> bool:
        """Wait ``seconds`` for the server; False at once where this object has not started it.

        Raises :class:`ServerError` when it ends meanwhile, which nobody asked of it.
        """
        if self._process is None:
            return False
        code = self._process.ended(seconds)
        if code is None:
            return True
        raise ServerError(
            f"Label Studio ended by itself (exit code {code}); {self.folder / 'server.log'} may say why. What was "
            "submitted is kept: run the same command again."
        )

    def stop(self) -> None:
        """Ask the server to end, and wait for it."""
        if self._process is not None:
            end(self._process)
            self._gone()

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10.0)
            self._gone()

    def _gone(self) -> None:
        self._process = None
        deadline = time.monotonic() + 10.0
        while not is_free(self._port) and time.monotonic() < deadline:
            time.sleep(0.02)  # what was killed with it may take a moment longer to let go of the port


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
