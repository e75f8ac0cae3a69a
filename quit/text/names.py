"""Names in a text, by quotation marks and capitals alone."""

from __future__ import annotations

import re
from itertools import pairwise

_QUOTED = re.compile(r"[\"“]([^\"“”]{3,60})[\"”]|(?<!\w)['‘]([^'‘’]{3,60})['’](?!\w)")
_TOKEN = re.compile(r"[\w'’.\-]+|[^\w\s]")
_JOINING = frozenset({"of", "the", "de", "and", "in", "for"})


def names_in(text: str) -> list[str]:
    """Return the distinct names of a text in order: quoted titles, then runs of capitalised words and numbers.

    A word such as "of" or "and" joins the run before it to a capital after it. A run goes on over a full stop
    ("Paris. The"), and takes words of a title in single quotes again, except the first. One letter is no name, nor is
    a capitalised word by itself that opens the text. Replies of embedded readers and the weights of convergence rest on
    these rules.
    """
    names = [(match.group(1) or match.group(2)).strip(" ,.") for match in _QUOTED.finditer(text)]
    tokens = _TOKEN.findall(text)
    run: list[str] = []
    for index, (token, next_token) in enumerate(pairwise([*tokens, "", ""])):
        joins = bool(run) and token in _JOINING and next_token[:1].isupper()
        if token[:1].isupper() or token[:1].isdigit() or joins:
            run.append(token)
        else:
            if run and not (len(run) == 1 and index == 1):
                names.append(" ".join(run).strip(".'’-"))
            run = []
    return list(dict.fromkeys(name for name in names if len(name) > 1))
