"""The stages of the pipeline: section 3 of *Inferential Question Answering*, one module per stage.

| Section | Module | What it does |
|---|---|---|
| 3.1.1 | ``collect`` | pools source records into a collection of questions with hints |
| 3.1.2 | ``filter`` | discards questions whose hints give an answer away (``leaks``) |
| 3.1.2 | ``rank`` | ranks hints by convergence, and keeps the best |
| 3.1.3 | ``describe`` | names each question's TREC type and difficulty |
| 3.1.4 | ``probe`` | asks readers without context: do they know the answer already? |
| 3.1.4 | ``split`` | train, dev and test, stable as data grows |
| 3.2.1 | ``enumerate`` | lists every ordered selection of the hints (``passages``) |
| | ``select`` | chooses the passages that labelers are asked about (``labels.partial = "estimated"`` only) |
| 3.2.2 | ``read``, ``judge``, ``label`` | labels passages by what the labelers answer and the judge accepts |
| 3.2.4 | ``update`` | changes labels after people have reviewed them |
"""

from quit.stages.collect import collect_stage
from quit.stages.describe import describe_stage
from quit.stages.enumerate import enumerate_stage
from quit.stages.filter import filter_stage
from quit.stages.judge import judge_stage
from quit.stages.label import label_stage
from quit.stages.probe import probe_stage
from quit.stages.rank import rank_stage
from quit.stages.read import read_stage
from quit.stages.select import select_stage
from quit.stages.split import split_stage
from quit.stages.stage import in_order
from quit.stages.update import update_stage

STAGES = in_order(
    collect_stage,
    describe_stage,
    enumerate_stage,
    filter_stage,
    judge_stage,
    label_stage,
    probe_stage,
    rank_stage,
    read_stage,
    select_stage,
    split_stage,
    update_stage,
)
"""The stages in the order in which they run, which follows from the tables that they read and make."""
