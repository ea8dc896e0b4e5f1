"""Made-up results of a benchmark: small, plausible, with names of the caller's choice."""

import numpy as np
from tests.plots.comparisons import made_up

from abstain._foundation.notes import Note
from abstain.inference.intervals import no_interval
from abstain.thresholds import DecisionRule, RuleCheck, StageCheck
from abstain_bench.results import (
    BenchmarkResults,
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    SelectedSetting,
    ThresholdRow,
)
from abstain_bench.runs.store import ExposureFacts
from abstain_bench.runs.studies import studies_of

_NONE = no_interval(0.95, "made up")
_RULE = DecisionRule("given", 0.5)

NAMES = ("msr", "pe", "confidnet", "mine")
METRICS = ("augrc", "aurc", "failure_auroc")


def exposures(own="unseen", severities=(1, 2)):
    return [
        ExposureFacts("iid", "iid", "iid", "iid"),
        *(ExposureFacts(f"fog-{s}", "fog", f"fog {s}", "corruption", "fog", s) for s in severities),
        ExposureFacts(own, own, own, "sub-class"),
        ExposureFacts("digits", "digits", "digits", "new-class"),
    ]


def made_results(names=NAMES, *, own="unseen", model="small-conv", seed=0, words=None, **more):
    """Return results of four studies of the main table; `words` stands for every other text."""
    rng = np.random.default_rng(seed)
    studies = studies_of(exposures(own))
    methods = tuple(
        MethodFacts(
            name,
            words or f"The {name}",
            words or ("confidnet" if name == "confidnet" else "cross-entropy"),
            words or "Somebody (2020), https://arxiv.org/abs/1610.02136, section 2",
            words or "how confident the model is",
            added=name == "mine",
        )
        for name in names
    )
    data = tuple((("study", study.name),) for study in studies)
    metrics = more.get("metrics", METRICS)
    comparisons = {
        metric: made_up(names, (metric,), data, seed=seed + i, literature=False, draws=60)
        for i, metric in enumerate(metrics)
    }
    headline = [study for study in studies if study.headline]
    facts = {
        "config": {"benchmark": {"task": words or "glyphs"}, "model": {"name": model}},
        "seeds": [1, 2],
        "versions": {"abstain": words or "0.6", "torch": "2.13"},
        "classes": [words or "A", words or "B"],
        "train": 5200,
        "seconds": 81.0,
    }
    return BenchmarkResults(
        facts,
        studies,
        methods,
        tuple(metrics),
        tuple(
            SelectedSetting(metric, name, words or "cross-entropy", words or "dropout0.3", 0.031,
                   {words or "dropout0": 0.044, "dropout0.3": 0.031}, 2, words or "")
            for metric in metrics
            for name in names
        ),
        comparisons,
        tuple(_thresholds(studies, names, rng)),
        {(study.name, name): _curve(rng) for study in headline for name in names},
        tuple(e for study in headline for name in names for e in _extremes(study, name, rng)),
        {words or "vim": words or "the network has no features"},
        (Note("few", words or "12 failures only", data[0], names[0], "warning"),),
        tuple(
            CalibrationRow(s.name, name, "mean", 0.2 if i else None, float(rng.random()))
            for s in headline
            for i, name in enumerate(names)
        ),
        {("accuracy", "digits"): words or "nothing to count"},
    )  # fmt: skip


def _thresholds(studies, names, rng):
    for study in studies:
        if study.headline or study.severity:
            for name in names:
                risk = 0.04 + 0.03 * study.severity + 0.01 * rng.random()
                verdict = "broken" if risk > 0.05 else "holds"
                verdicts = ("holds", "broken") if name == names[-1] else (verdict, verdict)
                coverage = 0.9 - 0.1 * study.severity
                stage = StageCheck("", 400, coverage, _NONE, risk, _NONE)
                checks = tuple(
                    RuleCheck(study.name, _RULE, 450, (stage,), coverage * risk, _NONE,
                              risk - 0.05, _NONE, own)
                    for own in verdicts
                )  # fmt: skip
                yield ThresholdRow(study.name, name, "mean", 0.05, 0.1, checks)


def _curve(rng):
    coverage = np.linspace(0.1, 1, 12)
    risk = 0.1 * coverage ** (1 + rng.random())
    return CurvePoints(coverage, risk, coverage * risk, "1")


def _extremes(study, name, rng):
    for kind, quantile in (("overconfident", 0.99), ("underconfident", 0.01)):
        for rank in (1, 2):
            label = -1 if study.kind == "new-class" else int(rng.integers(0, 2))
            yield Extreme(
                study.name, name, "run-seed1", 1, kind, rank, study.exposures[-1],
                int(rng.integers(0, 50)), label, 1, 3.2, quantile,
            )  # fmt: skip
