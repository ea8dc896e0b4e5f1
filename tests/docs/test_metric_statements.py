"""The statements of the pages about metrics agree with the verdicts of `study requirements`."""

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

#: Maximum number of samples. A verdict depends on all orders of up to this number of samples.
MAX_SAMPLES: Final = 5

Verdict = Callable[[JudgedMetric], bool]


def depends_on_accuracy_and_ranking(judgment: JudgedMetric) -> bool:
    return judgment.verdicts[COMPLETE].holds


def never_gets_worse(judgment: JudgedMetric) -> bool:
    return judgment.verdicts[NEVER_WORSE].holds


def ignores_accuracy_or_ranking(judgment: JudgedMetric) -> bool:
    return not judgment.verdicts[COMPLETE].holds


def may_get_worse(judgment: JudgedMetric) -> bool:
    return not judgment.verdicts[NEVER_WORSE].holds


def weights_all_pairs_equally(judgment: JudgedMetric) -> bool:
    return judgment.verdicts[PAIRS].holds


#: Pattern of a statement, and the verdict that the statement requires.
STATEMENTS: Final[tuple[tuple[str, Verdict], ...]] = (
    (r"(?:rewards|counts) (?:both )?accuracy and ranking", never_gets_worse),
    (r"blind to (?:the )?accuracy|blind to it", ignores_accuracy_or_ranking),
    (r"does not depend on the number of failures", ignores_accuracy_or_ranking),
    (r"[Cc]omparable (?:across error|between classifiers)", ignores_accuracy_or_ranking),
    (r"the accuracy moves it at the same failure AUROC", depends_on_accuracy_and_ranking),
    (r"a more accurate classifier can have the lower value", may_get_worse),
    (r"every pair counts alike", weights_all_pairs_equally),
)


def paragraphs() -> Iterator[tuple[str, str]]:
    """Yield the name of each metric in the headings of `metrics.md` and the text of its section."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        text = " ".join(body.partition("\n## ")[0].split())
        for name in re.findall(r"`(\w+(?:@\w+)?)`", heading):
            yield name, text


def statements() -> list[tuple[str, str, Verdict]]:
    """Return each statement about a metric with the verdict that it requires."""
    return [
        (name, match[0], verdict)
        for name, text in paragraphs()
        for pattern, verdict in STATEMENTS
        for match in re.finditer(rf"(?<!not )(?<!Not )(?:{pattern})", text)
    ]


@pytest.mark.parametrize(("name", "statement", "verdict"), statements())
def test_statement_agrees_with_the_verdict(name, statement, verdict):
    assert verdict(judge_metric(metric_named(name), MAX_SAMPLES)), f"{name}: {statement!r}"


def test_statements_are_found():
    names = {name for name, _, _ in statements()}
    assert {"normalized_aurc", "f1_auc", "failure_auroc", "prr"} <= names


def metric_at_accuracy(name: str, accuracy: float, *, confident_failures: float = 0.0) -> float:
    """Compute a metric of many samples with a failure AUROC of 0.9 and the given accuracy."""
    normal = ndtri(np.arange(0.5, 40_000) / 40_000)
    if confident_failures:
        n_confident = int(confident_failures * normal.size)
        shift = np.r_[np.full(n_confident, 100.0), np.full(normal.size - n_confident, -100.0)]
        confidence = np.r_[normal, normal + shift]
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
def test_values_in_the_page(name, confident_failures, values):
    results = [
        metric_at_accuracy(name, accuracy, confident_failures=confident_failures)
        for accuracy in (0.6, 0.99)
    ]
    assert results == pytest.approx(values, abs=5e-4)
    text = next(text for metric, text in paragraphs() if metric == name)
    assert all(f"{value:.3f}" in text for value in values)
