"""What still stands against the rules of tests/house/test_layers.py; only to be shortened."""

#: Packages that import a module that another package keeps to itself.
FOREIGN_PRIVATES = frozenset(
    {
        "abstain.evaluation -> abstain.metrics._cwsa_sweep",
        "abstain.evaluation -> abstain.metrics._influence_extremes",
        "abstain.evaluation -> abstain.metrics._influence_registry",
        "abstain.evaluation -> abstain.metrics._resampled",
        "abstain.evaluation -> abstain.metrics._tie_bounds",
        "abstain.evaluation.comparison -> abstain.inference._run_shares",
        "abstain.evaluation.comparison -> abstain.metrics._influence_registry",
        "abstain.evaluation.comparison -> abstain.metrics._resampled",
        "abstain.evaluation.comparison -> abstain.metrics._resampled_bins",
        "abstain.integrations.torchmetrics -> abstain.metrics._cwsa",
        "abstain.report -> abstain.plots._drawable",
        "abstain.report.render -> abstain.plots._drawable",
        "abstain.report.render -> abstain.plots._style",
        "abstain.report.subjects.rule -> abstain.plots._drawable",
        "abstain.report.subjects.rule -> abstain.plots._verdicts",
        "abstain.streaming -> abstain.metrics._entry",
        "abstain.streaming -> abstain.metrics._registry",
        "abstain.studies -> abstain.plots._drawable",
        "abstain.studies.finetuning -> abstain.plots._drawable",
        "abstain.studies.finetuning -> abstain.plots._labels",
        "abstain.studies.finetuning -> abstain.plots._style",
    }
)

#: Three siblings or more that share their first word, and are no folder yet.
FAMILIES = frozenset(
    {
        "inference/resampled_*",
        "metrics/cwsa_*",
        "metrics/influence_*",
        "report/benchmark_*",
        "report/comparison_*",
        "report/study_*",
    }
)

#: Modules that import each other, inside functions too.
IN_CIRCLES: frozenset[str] = frozenset()
