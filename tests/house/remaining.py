"""What still stands against the rules of tests/house/test_layers.py; only to be shortened."""

#: Packages that import a module that another package keeps to itself.
FOREIGN_PRIVATES = frozenset(
    {
        "abstain.benchmark.results -> abstain.evaluation._compare_across",
        "abstain.benchmark.results -> abstain.evaluation._compare_data",
        "abstain.benchmark.results -> abstain.evaluation._compare_findings",
        "abstain.benchmark.results -> abstain.evaluation._pairs",
        "abstain.benchmark.results -> abstain.evaluation._plan",
        "abstain.benchmark.results -> abstain.evaluation._rows",
        "abstain.benchmark.results -> abstain.evaluation._sampled",
        "abstain.benchmark.results -> abstain.evaluation._standings",
        "abstain.benchmark.results -> abstain.metrics._influence_registry",
        "abstain.evaluation -> abstain.calibration._state",
        "abstain.evaluation -> abstain.confidence._kernels",
        "abstain.evaluation -> abstain.inference._run_shares",
        "abstain.evaluation -> abstain.metrics._cwsa_sweep",
        "abstain.evaluation -> abstain.metrics._influence_extremes",
        "abstain.evaluation -> abstain.metrics._influence_registry",
        "abstain.evaluation -> abstain.metrics._resampled",
        "abstain.evaluation -> abstain.metrics._resampled_bins",
        "abstain.evaluation -> abstain.metrics._tie_bounds",
        "abstain.integrations.torchmetrics -> abstain.metrics._cwsa",
        "abstain.report -> abstain.plots._drawable",
        "abstain.report -> abstain.plots._style",
        "abstain.report -> abstain.plots._verdicts",
        "abstain.streaming -> abstain.metrics._entry",
        "abstain.streaming -> abstain.metrics._registry",
        "abstain.studies -> abstain.benchmark._threads",
        "abstain.studies -> abstain.plots._drawable",
        "abstain.studies -> abstain.plots._labels",
        "abstain.studies -> abstain.plots._style",
        "abstain.training -> abstain.confidence._entry",
        "abstain.training -> abstain.confidence._kernels",
    }
)

#: Three siblings or more that share their first word, and are no folder yet.
FAMILIES = frozenset(
    {
        "evaluation/compare_*",
        "evaluation/rule_*",
        "inference/resampled_*",
        "metrics/cwsa_*",
        "metrics/influence_*",
        "report/benchmark_*",
        "report/comparison_*",
        "report/study_*",
        "report/terminal_*",
        "report/threshold_*",
        "studies/finetuning_*",
    }
)

#: Modules that import each other, inside functions too.
IN_CIRCLES = frozenset(
    {
        "abstain.confidence._fitted_kinds",
        "abstain.confidence.combined",
        "abstain.confidence.fitting",
        "abstain.confidence.ranked",
        "abstain.confidence.registry",
        "abstain.confidence.tuned_norm",
        "abstain.confidence.tuned_temperature",
    }
)
