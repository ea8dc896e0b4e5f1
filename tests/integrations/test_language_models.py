"""Metrics for Inspect and lm-evaluation-harness, against the parts of their interfaces in use.

Run for real in inspect_ai 0.3.285 and lm-evaluation-harness 0.4.13.
"""

import asyncio
import sys
import tomllib
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from tests.architecture.source import ROOT

import abstain as ab
from abstain.errors import MissingInputError, UnknownNameError
from abstain.integrations._inspect_registry import register
from abstain.integrations.language_models import (
    choice_confidence,
    harness_aggregation,
    inspect_metric,
    inspect_scorer,
)
from abstain.integrations.trackers import DEFAULT_METRICS, tracker_name


@pytest.fixture
def inspect_ai(monkeypatch):
    """Stand in for `inspect_ai.scorer`: decorators that take options, and grades."""

    def registered(**options):
        known[options["name"]] = options

        def registering(made):
            return lambda **given: SimpleNamespace(**options, given=given, call=made(**given))

        return registering

    known = {}
    grades = {"C": 1.0, "I": 0.0, "N": 0.0}
    scorer = ModuleType("inspect_ai.scorer")
    scorer.metric = scorer.scorer = registered
    scorer.value_to_float = lambda: lambda value: grades.get(value, value)
    scorer.accuracy = lambda: SimpleNamespace(name="accuracy")
    util = ModuleType("inspect_ai.util")
    util.registry_create = lambda kind, name: (kind, name)
    for module in (ModuleType("inspect_ai"), scorer, util):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return known


def sample(value, **metadata):
    return SimpleNamespace(score=SimpleNamespace(value=value, metadata=metadata or None))


def scored_for(value, reason, **metadata):
    return SimpleNamespace(
        score=SimpleNamespace(value=value, reason=reason, metadata=metadata or None)
    )


def test_reasons_of_scores_separate_refusals_from_grader_failures(inspect_ai):
    compute = inspect_metric("augrc").call
    graded = [
        scored_for("C", None, confidence=0.9),
        scored_for("I", None, confidence=0.7),
        scored_for("C", None, confidence=0.6),
    ]
    refused = [scored_for("I", "refusal", confidence=1.0), scored_for(np.nan, "no_response")]
    failed = [scored_for(np.nan, "grader_failed"), scored_for("I", "scoring_failed", confidence=1)]
    assert compute(graded + failed) == compute(graded)
    expected = ab.augrc([0.9, 0.7, 0.6, 0.6, 0.6], [0, 1, 0, 1, 1])
    assert compute(graded + refused) == pytest.approx(expected)


def test_an_aggregation_is_the_metric():
    rng = np.random.default_rng(0)
    confidence, right = rng.random(50), rng.integers(2, size=50)
    for name, function in (("augrc", ab.augrc), ("failure_auroc", ab.failure_auroc)):
        result = harness_aggregation(name)(zip(confidence, right, strict=True))
        assert result == function(confidence, 1 - right)
    with pytest.raises(UnknownNameError):
        harness_aggregation("augcr")
    assert np.isnan(harness_aggregation("augrc")([]))


def test_refusals_are_tied_with_the_least_confident():
    result = harness_aggregation("aurc")([(0.9, 1), (None, 0), (0.3, 1), (None, 0)])
    assert result == ab.aurc([0.9, 0.3, 0.3, 0.3], [0, 1, 0, 1])


def test_a_choice():
    assert choice_confidence([-1.0, -1.0]) == 0.5
    with pytest.raises(MissingInputError, match="at least two entries"):
        choice_confidence([-1.0])


@pytest.mark.usefixtures("inspect_ai")
def test_a_metric_of_inspect():
    made = inspect_metric("augrc")
    assert (made.name, made.given) == ("augrc", {"confidence": "confidence"})
    scores = [sample("C", confidence=0.9), sample("N"), sample(0.5, confidence=0.4)]
    assert made.call(scores) == ab.augrc([0.9, 0.4, 0.4], [0, 1, 0.5])
    with pytest.raises(MissingInputError, match=r"have no 'confidence', which .*logprobs=True"):
        made.call([sample("C")])
    assert inspect_metric("augrc", confidence="p").call([sample("I", p=1), sample("C", p=0)]) == (
        ab.augrc([1, 0], [1, 0])
    )


def test_inspect_is_told_what_needs_a_confidence_and_a_grade(inspect_ai):
    register()
    inspect_ai = dict(inspect_ai)
    confident = inspect_ai.pop("confident")
    assert [m.name for m in confident["metrics"]] == [
        "accuracy",
        *map(tracker_name, DEFAULT_METRICS),
    ]
    assert {"augrc", "selective_risk_at_80cov", "cwsa_at_0_5", "ece"} <= set(inspect_ai)
    # What needs classes, or several samples of a kind that a log does not tell.
    assert not {"accuracy", "brier", "aurc_ba", "oscr"} & set(inspect_ai)
    # A point or "@" in a name would be the one of a file to Inspect.
    assert all(name.isidentifier() for name in inspect_ai)


def test_the_entry_point_names_a_module_that_there_is():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["inspect_ai"] == {"abstain": register.__module__}


@pytest.mark.usefixtures("inspect_ai")
def test_a_scorer_of_inspect_notes_the_confidence():
    async def inner(state, target):
        return SimpleNamespace(value="C", metadata={"kept": target})

    made = inspect_scorer(inner, ["accuracy"], confidence="least_logprob", name="sure")
    assert (made.name, made.metrics) == ("sure", ["accuracy"])
    tokens = [SimpleNamespace(logprob=x) for x in (-0.5, -2.0)]
    choice = SimpleNamespace(logprobs=SimpleNamespace(content=tokens))
    for choices, noted in (
        ([choice], {"confidence": -2.0}),
        ([SimpleNamespace(logprobs=None)], {}),
        ([], {}),
    ):
        state = SimpleNamespace(output=SimpleNamespace(choices=choices))
        score = asyncio.run(made.call(state, "4"))
        assert score.metadata == {"kept": "4"} | noted
