"""Draw ``docs/images/architecture.svg`` from the code's lists of stages, sources and exports. ``--check`` only says
whether it is current."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from quit.export import FORMATS
from quit.sources import SOURCES
from quit.stages.order import STAGES

TARGET = Path(__file__).parent / "images" / "architecture.svg"
MODELS = {
    "leak_rules": "leak rules",
    "equivalence": "equivalence",
    "encoder": "encoder",
    "convergence": "convergence",
    "candidates": "candidates",
    "question_types": "question types",
    "difficulty": "difficulty",
    "reader": "one reader each",
    "judge": "judge",
    "labelers": "three labelers' names",
}
"""A stage's models, as the picture calls them."""
HIDDEN = {"encoder", "labelers", "candidates"}
"""What stands behind other models, or is a name only."""

WIDTH, LEFT, BOX, ROW, GAP = 1150, 365, 470, 38, 8
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .head { font-weight: 600 } .small { font-size: 11.5px; fill: #57606a }
    .page { fill: #ffffff } .stage { fill: #ddeeff; stroke: #0072b2 } .people { fill: #fff3d6; stroke: #b27a00 }
    .out { fill: #dff5ec; stroke: #009e73 } .arrow { stroke: #57606a; fill: none; marker-end: url(#tip) } \
#tip path { fill: #57606a }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .small { fill: #9da7b1 } .page { fill: #0d1117 } \
.stage { fill: #12304a } .people { fill: #3d2f0c }
      .out { fill: #0d3b2e } .arrow { stroke: #9da7b1 } #tip path { fill: #9da7b1 }
    }
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{styled}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a box with round corners."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return a straight arrow."""
    return f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" class="arrow"/>'


def draw() -> str:
    """Return the picture: sources, stages with what they ask and what they make, and what comes out."""
    middle, right = LEFT + BOX / 2, LEFT + BOX
    made: list[str] = []
    y = 48
    made += [text(LEFT - 24, 28, "asks", "head", "end"), text(middle, 28, "stage", "head", "middle"),
        text(right + 24, 28, "makes tables", "head")]  # fmt: skip
    for stage in STAGES:
        people = stage.name == "update"
        made.append(box(LEFT, y, BOX, ROW, "people" if people else "stage"))
        made.append(text(LEFT + 12, y + 24, f"{stage.number}  {stage.name}", "head"))
        made.append(text(LEFT + 112, y + 24, stage.doc.partition(" (")[0].rstrip("."), "small"))
        asked = [MODELS[name] for name in stage.models if name not in HIDDEN]
        if stage.name == "collect":
            asked = list(SOURCES)
        if people:
            asked = ["people, in Label Studio"]
        elif stage.overrides:
            asked.append("people's overrides")
        if asked:
            made += [text(LEFT - 24, y + 24, ", ".join(asked), "", "end"), arrow(LEFT - 20, y + 20, LEFT - 4, y + 20)]
        tables = [name for name in stage.outputs if name != "rejects"]
        half = len(tables) if len(tables) < 4 else (len(tables) + 1) // 2
        lines = [", ".join(tables[:half]), ", ".join(tables[half:])] if tables[half:] else [", ".join(tables)]
        for number, line in enumerate(lines):
            made.append(text(right + 24, y + (24 if len(lines) == 1 else 17 + 15 * number), line, "small"))
        made.append(arrow(right, y + 20, right + 18, y + 20))
        made.append(arrow(middle, y + ROW, middle, y + ROW + GAP - 1))
        y += ROW + GAP
    outs = [
        ("release", "frozen, checked, verified"),
        ("exports", f"{len(FORMATS)} formats"),
        ("report, browse", "what people look at"),
        ("QA systems", "corpora, graphs, benchmark"),
    ]
    y += 4
    made.append(box(20, y, WIDTH - 40, 34, "stage"))
    words = (
        "workspace: Parquet tables with fingerprints; what is up to date never runs again; "
        "what was left out is listed in rejects"
    )
    made.append(text(WIDTH / 2, y + 22, words, "", "middle"))
    width = (WIDTH - 40 - 3 * 16) / 4
    for number, (name, words) in enumerate(outs):
        x = 20 + number * (width + 16)
        made += [arrow(x + width / 2, y + 34, x + width / 2, y + 53), box(x, y + 56, width, 48, "out")]
        made += [
            text(x + width / 2, y + 76, name, "head", "middle"),
            text(x + width / 2, y + 94, words, "small", "middle"),
        ]
    height = y + 56 + 48 + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
            'aria-label="From sources through the stages to releases, exports, report and QA systems">',
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height:g}" class="page"/>',
            *made,
            "</svg>\n",
        ]
    )


def main(check: bool = False) -> bool:
    """Write the picture, or with ``check`` only compare; return whether it was out of date."""
    drawn = draw()
    stale = not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != drawn
    if stale and not check:
        TARGET.write_text(drawn, encoding="utf-8")
    return stale


if __name__ == "__main__":
    stale = main("--check" in sys.argv)
    print("architecture.svg" if stale else "up to date")
    sys.exit(stale and "--check" in sys.argv)
