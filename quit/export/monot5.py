"""MonoT5 (Nogueira et al. 2020): ``train.tsv`` and ``dev.tsv`` of ``query <tab> positive <tab> negative``, as texts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quit.common.safe import one_line
from quit.dataset.dataset import Dataset
from quit.export.files import ExportFolder, Options
from quit.export.lines import Lines, PassageTexts, line_file
from quit.export.training import PAIRS, SPLITS, Selection


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the triples of train and dev; return the choices and what was escaped."""
    lines = Lines(dataset)
    selection = Selection(dataset, options.fine_tuning, options.encoder)
    texts = PassageTexts(lines, one_line)
    triples = {}
    for split in SPLITS:
        with line_file(folder, f"{split}.tsv") as put:
            triples[split] = 0
            for example in selection.examples(split):
                query = one_line(dataset.question_of[example.position])
                triple_lines = [f"{query}\t{texts.text(good)}\t{texts.text(bad)}\n" for good, bad in example.pairs()]
                triples[split] = put(pa.array(triple_lines))
    return {
        "triples": triples,
        "triple_rule": PAIRS,
        "fine_tuning": selection.facts(),
        "escaped": lines.escapes(texts=True),
    }
