"""The order of the stages."""

from quit.stages.collect import collect_stage
from quit.stages.describe import describe_stage
from quit.stages.enumerate import enumerate_stage
from quit.stages.filter import filter_stage
from quit.stages.judge import judge_stage
from quit.stages.label import label_stage
from quit.stages.probe import probe_stage
from quit.stages.rank import rank_stage
from quit.stages.read import read_stage
from quit.stages.roles import roles_stage
from quit.stages.split import split_stage
from quit.stages.stage import number_stages
from quit.stages.update import update_stage

STAGES = number_stages(
    collect_stage,  # sources -> questions, hints, candidates (3.1.1)
    filter_stage,  # hints -> usable hints: questions whose hints give the answer away are left out (3.1.2)
    rank_stage,  # usable hints -> ranked hints by convergence, of which the best are selected (3.1.2)
    describe_stage,  # questions, ranked hints -> question type and difficulty (3.1.3)
    probe_stage,  # questions -> readers' answers without hints: do they know them already? (3.1.4)
    split_stage,  # probe answers -> train, dev, test; stable as data grows (3.1.4)
    enumerate_stage,  # splits -> passages: ordered selections of the hints, by default all (3.2.1)
    read_stage,  # passages -> answers of labelers and readers (3.2.2)
    judge_stage,  # distinct answers -> verdicts (GPT-Eval, 3.2.2)
    label_stage,  # answers, verdicts -> labels: 2 fully, 1 partially relevant (3.2.2)
    update_stage,  # labels, people's decisions -> labels, and the filter again for new valid answers (3.2.4)
    roles_stage,  # labels, probe answers -> why label 2: hints that suffice, add, harm
)
"""The stages in the order in which they run."""
