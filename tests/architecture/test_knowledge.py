"""One thing is known in one place: no file outside `metrics/` names a metric by a string.

Nor does one outside `thresholds/` name a rule.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from tests.architecture.source import FILES, SourceFile

from abstain.metrics import METRICS
from abstain.metrics.catalogue import FAMILIES
from abstain.thresholds import RULES

#: Where such a word means something else, or is what a caller leaves out. Only to be shortened.
OTHER_WORDS = {
    # What is asked for unless something else is: the metrics of a command, a study, a benchmark.
    "benchmark/specification/config.py": "default",
    "integrations/trackers.py": "default",
    # Classes and scorers that other libraries find by a metric's name.
    "integrations/sklearn/scorers.py": "its name",
    "integrations/torchmetrics/named.py": "its name",
    # A likelihood that a temperature is fitted by.
    "evaluation/criterion.py": "option",
    # Areas that are found for all resamples at once, losses, and fields of records.
    "inference/replicates.py": "area",
    "predictions/losses.py": "loss",
    "plots/curves.py": "column",
    "report/subjects/evaluation/charts.py": "column",
    "report/subjects/evaluation/document.py": "column",
    # Figures, and so files, that have a metric's name.
    "studies/finetuning/results.py": "file",
    # Weights by rank and losses that a network is trained on.
    "training/_logits.py": "objective",
    "training/_weights.py": "objective",
    "training/classifiers.py": "objective",
    "training/rank_weighted.py": "objective",
    "typing.py": "estimator",
    # What a population or a study knows without data: truths, and the estimators of a weight.
    "simulate/beta_scores.py": "truth",
    "simulate/continuous_loss.py": "truth",
    "simulate/gaussians.py": "truth",
    "simulate/population.py": "truth",
    "studies/_words.py": "estimator",
    "studies/estimators/__init__.py": "estimator",
    "studies/estimators/words.py": "estimator",
    "studies/weights/positions.py": "estimator",
}

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


#: What a rule is called and much else is too: a quantity that is asked for or drawn.
COMMON = {"coverage", "cost", "risk"}

#: Where a rule is named outside `thresholds/`. Only to be shortened.
RULES_NAMED: set[str] = set()


def is_metric(word: str) -> bool:
    return word in METRICS or any(family.named(word) for family in FAMILIES)


def is_rule(word: str) -> bool:
    return word in RULES.keys() - COMMON


def named(file: SourceFile, known: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Find the strings of a file that are a known name, but for its docstrings."""
    docs = {
        node.body[0].value
        for node in file.walk()
        if isinstance(node, _DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)
    }
    words = (node for node in file.walk() if isinstance(node, ast.Constant) and node not in docs)
    for node in words:
        if isinstance(node.value, str) and known(node.value):
            yield node.lineno, node.value


OUTSIDE = [file for file in FILES if file.top != "metrics"]


@cache
def found() -> dict[str, list[tuple[int, str]]]:
    """By a test and not by the import, which every process and lane of the tests does."""
    return {file.name: words for file in OUTSIDE if (words := list(named(file, is_metric)))}


def test_metrics_are_named_by_their_entries_alone():
    strangers = found().keys() - OTHER_WORDS.keys()
    assert not {name: found()[name] for name in strangers}


def test_rules_are_named_by_their_entries_alone():
    naming = {
        file.name: rules
        for file in FILES
        if file.top != "thresholds" and (rules := list(named(file, is_rule)))
    }
    assert not {name: naming[name] for name in naming.keys() - RULES_NAMED}
    assert naming.keys() == RULES_NAMED, "cured: take these files off the list"


@pytest.mark.parametrize("name", sorted(OTHER_WORDS))
def test_what_is_cured_is_off_the_list(name):
    assert name in found(), f"take {name} off the list: it names no metric any more"


def test_the_files_that_are_looked_at_are_there():
    assert len(OUTSIDE) > 200
    assert sum(map(len, found().values())) > len(found()) > 0
