"""Print the pins of this Python's environment, beside each package that is not the newest what holds it back."""

import json
import platform
import subprocess
import sys
from importlib.metadata import distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def listed(*options: str) -> dict[str, dict[str, str]]:
    """Return what pip lists, by name."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "list", "--format", "json", "--exclude-editable"]
    rows = json.loads(subprocess.run([*pip, *options], check=True, stdout=subprocess.PIPE).stdout)
    return {canonicalize_name(row["name"]): row for row in rows}


def holders(newest: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """Return name -> who asks for less than the newest version of it."""
    reasons: dict[str, list[str]] = {}
    for distribution in distributions():
        for requirement in map(Requirement, distribution.requires or ()):
            row, allowed = newest.get(canonicalize_name(requirement.name)), requirement.specifier
            if row and row["version"] in allowed and row["latest_version"] not in allowed:  # else of an unused extra
                who = f"{distribution.name} {distribution.version} asks for {allowed}"
                reasons.setdefault(canonicalize_name(row["name"]), []).append(who)
    return reasons


def main() -> None:
    newest = listed("--outdated")
    reasons = holders(newest)
    version = platform.python_version().rpartition(".")[0]
    print(f"# The newest of everything on Python {version}, without the extra review: its label-studio-sdk holds NumPy")
    print("# below 2.3, through opencv-python-headless. `make newest` renews this file.")
    for name, row in sorted(listed().items()):
        held = newest.get(name)
        why = "; ".join(
            dict.fromkeys(
                reasons.get(name, ["the installer was not offered it, or what it needs excludes another pin"])
            )
        )
        print(f"{name}=={row['version']}" + (f"  # {held['latest_version']} is out: {why}" if held else ""))


if __name__ == "__main__":
    main()
