"""A real S3 service on this machine for tests: moto's server, in an environment and a process of its own."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from quit.common.children import SupervisedProcess
from quit.common.environments import ensure_environment
from quit.errors import MissingDependency
from tests.running import until
from tests.servers.ports import free_port

REQUIREMENTS = Path(__file__).with_name("moto-requirements.txt")
REGION = "us-east-1"


def moto_environment() -> Path:
    """Return the folder of programs of an environment with moto's server, made at the first call (a minute); else skips
    the test."""
    try:
        return ensure_environment("moto", REQUIREMENTS)
    except MissingDependency as error:
        pytest.skip(str(error))


class MotoServer:
    """``moto_server`` on a free port, as a context manager. ``url``: its address; ``environment``: variables for its
    clients."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "moto.log"
        self.environment = self.keys("testing", "testing")
        self._process: SupervisedProcess | None = None

    def keys(self, identity: str, secret: str) -> dict[str, str]:
        """Return the variables that a client with these credentials needs."""
        keys = {"AWS_ACCESS_KEY_ID": identity, "AWS_SECRET_ACCESS_KEY": secret}
        place = {"AWS_ENDPOINT_URL": self.url, "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"}
        return {**keys, **place}

    def __enter__(self) -> MotoServer:
        variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        command = [str(moto_environment() / "moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]
        with self._log.open("wb") as output:
            self._process = SupervisedProcess(command, stdout=output, stderr=output, env=variables)
        until(self._answers, self._process, 300)
        return self

    def _answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/moto-api/", timeout=2).is_success
        return False

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def client(self, service: str) -> Any:
        """Return a botocore client of the service."""
        import botocore.session

        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        return botocore.session.get_session().create_client(service, REGION, endpoint_url=self.url, **keys)

    def bucket(self, name: str) -> str:
        """Make a bucket and return its URL."""
        self.client("s3").create_bucket(Bucket=name)
        return f"s3://{name}"

    def user(self, name: str, *actions: str) -> dict[str, str]:
        """Make a user who may do these actions on everything, and return the variables of a client with its keys."""
        identity = self.client("iam")
        identity.create_user(UserName=name)
        allowed = [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]
        if actions:
            policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
            identity.put_user_policy(UserName=name, PolicyName="allowed", PolicyDocument=policy)
        key = identity.create_access_key(UserName=name)["AccessKey"]
        return self.keys(key["AccessKeyId"], key["SecretAccessKey"])

    def enforce(self, wanted: bool = True) -> None:
        """From now on check who may do what (``False``: let everyone do everything)."""
        kind, count = {"Content-Type": "text/plain"}, "0" if wanted else "inf"
        httpx.post(f"{self.url}/moto-api/reset-auth", content=count, headers=kind).raise_for_status()
