"""The pages describe a metric as the verdicts of `study requirements` decide it."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pytest
from scipy.special import ndtri
from tests.docs.blocks import ROOT

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.metrics import METRICS, metric_named
from abstain_bench.studies.requirements.decisions import JudgedMetric, judge_metric
from abstain_bench.studies.requirements.verdicts import COMPLETE, NEVER_WORSE, PAIRS

#: All orders of up to so many samples decide a verdict.
SIZE: Final = 5

Verdict = Callable[[JudgedMetric], bool]


def accuracy_and_ranking_both_move_it(judgment: JudgedMetric) -> bool:
    return judgment.verdicts[COMPLETE].holds


def it_never_gets_worse(judgment: JudgedMetric) -> bool:
    return judgment.verdicts[NEVER_WORSE].holds


def it_ignores_a_factor(judgment: JudgedMetric) -> bool:
    return not judgment.verdicts[COMPLETE].holds


def it_may_get_worse(judgment: JudgedMetric) -> bool:
    return not judgment.verdicts[NEVER_WORSE].holds


#: What a paragraph states, and the verdict that it follows from.
STATEMENTS: Final[tuple[tuple[str, Verdict], ...]] = (
    (r"(?:rewards|counts) (?:both )?accuracy and ranking", it_never_gets_worse),
    (r"blind to (?:the )?accuracy|blind to it", it_ignores_a_factor),
    (r"does not depend on the number of failures", it_ignores_a_factor),
    (r"[Cc]omparable (?:across error|between classifiers)", it_ignores_a_factor),
    (r"the accuracy moves it at the same failure AUROC", accuracy_and_ranking_both_move_it),
    (r"a more accurate classifier can have the lower value", it_may_get_worse),
    (r"every pair counts alike", lambda judgment: judgment.verdicts[PAIRS].holds),
)


def paragraphs() -> Iterator[tuple[str, str]]:
    """Yield every metric that a heading of `metrics.md` names, with the text below it."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for part in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        text = " ".join(rest.partition("\n## ")[0].split())
        for name in re.findall(r"`(\w+(?:@\w+)?)`", heading):
            yield name, text


def stated() -> list[tuple[str, str, Verdict]]:
    """Return each statement about a metric with the verdict that it needs."""
    return [
        (name, match[0], verdict)
        for name, text in paragraphs()
        for pattern, verdict in STATEMENTS
        for match in re.finditer(rf"(?<!not )(?<!Not )(?:{pattern})", text)
    ]


@pytest.mark.parametrize(("name", "statement", "verdict"), stated())
def test_what_a_page_states_of_a_metric_is_what_the_study_decides(name, statement, verdict):
    assert verdict(judge_metric(metric_named(name), SIZE)), f"{name}: {statement!r}"


def test_statements_are_found():
    names = {name for name, _, _ in stated()}
    assert {"normalized_aurc", "f1_auc", "failure_auroc", "prr"} <= names


def at_accuracy(name: str, accuracy: float, *, confident_failures: float = 0.0) -> float:
    """Compute a metric of large samples whose failure AUROC is 0.9 at every accuracy."""
    normal = ndtri(np.arange(0.5, 40_000) / 40_000)
    if confident_failures:
        share = int(confident_failures * normal.size)
        wrong = np.r_[np.full(share, 100.0), np.full(normal.size - share, -100.0)]
        confidence = np.r_[normal, wrong + normal]
    else:
        confidence = np.r_[normal + np.sqrt(2) * ndtri(0.9), normal]
    loss = np.repeat([0, 1], normal.size)
    weight = np.where(loss, 1 - accuracy, accuracy)
    assert ab.failure_auroc(confidence, loss, weight=weight) == pytest.approx(0.9, abs=1e-6)
    return METRICS[name].compute(validate_samples(confidence, loss, weight)).value


@pytest.mark.parametrize(
    ("name", "confident_failures", "values"),
    [
        ("f1_auc", 0.0, (0.672, 0.616)),
        ("normalized_aurc", 0.0, (0.152, 0.128)),
        ("normalized_aurc", 0.1, (0.488, 0.794)),
    ],
)
def test_the_values_that_the_page_names(name, confident_failures, values):
    results = [at_accuracy(name, a, confident_failures=confident_failures) for a in (0.6, 0.99)]
    assert results == pytest.approx(values, abs=5e-4)
    text = next(text for metric, text in paragraphs() if metric == name)
    assert all(f"{value:.3f}" in text for value in values)
