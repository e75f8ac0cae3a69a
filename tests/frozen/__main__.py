"""Make what is frozen again and print what differs: ``python -m tests.frozen [PART ...] [--freeze ENTRY ...]``."""

import argparse
import fnmatch
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.frozen.parts import NEEDS_DATA, PARTS, WIKIHINT
from tests.frozen.values import differences, read, write

LENGTH = 400
"""Characters printed of a line."""


def main() -> int:
    """Compare the named parts (none: all). Exit with 1 where something differs and was not frozen."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    anew = "freeze these entries anew: 'build: table labels', 'export *'"
    parser.add_argument("--freeze", nargs="+", default=[], metavar="ENTRY", help=anew)
    parser.add_argument("--out", type=Path, help="folder to keep what is made, to compare it with another checkout's")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["QUIT_CACHE"] = f"{temporary}/cache"  # a kept reply or vector would hide a change
        os.environ["PREFECT_HOME"] = f"{temporary}/prefect"
        same = [_compare(part, (options.out or Path(temporary)) / part, options) for part in options.parts or PARTS]
    return 0 if all(same) else 1


def _compare(part: str, folder: Path, asked: argparse.Namespace) -> bool:
    """Print what differs in a part, freeze what was named, and say whether all else is as it was."""
    if part in NEEDS_DATA and not WIKIHINT.exists():
        print(f"{part}: left out, {WIKIHINT.name} is not here")
        return True
    folder.mkdir(parents=True)
    began = time.monotonic()
    now, frozen = PARTS[part](folder), read(part)
    named = {entry for entry in (*frozen, *now) if any(fnmatch.fnmatchcase(entry, name) for name in asked.freeze)}
    same = True
    for entry in dict.fromkeys([*frozen, *now]):
        lines = [] if entry in named else list(differences(frozen.get(entry), now.get(entry), f"{part}: {entry}"))
        same = same and not lines
        for line in lines:
            print(line[:LENGTH])
    if named:
        kept = {entry: value for entry, value in frozen.items() if entry not in named}
        write(part, kept | {entry: now[entry] for entry in named & now.keys()})
    seconds = time.monotonic() - began
    outcome = "as frozen" if same else "differs"
    print(f"{part}: {outcome}, {len(now)} entries in {seconds:.0f} s, {len(named)} frozen anew", flush=True)
    return same


if __name__ == "__main__":
    sys.exit(main())
