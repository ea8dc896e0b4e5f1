"""What the four papers have under which number: facts that citations are checked against."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Paper:
    """A paper's numbered things.

    `sections` has the appendices too; `others` has propositions, definitions and listings.
    """

    file: str
    equations: dict[int, str]
    sections: frozenset[str]
    tables: frozenset[str]
    figures: frozenset[str]
    others: frozenset[str] = field(default_factory=frozenset)


def _named(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _numbers(first: int, last: int, letter: str = "") -> frozenset[str]:
    return frozenset(f"{letter}{i}" for i in range(first, last + 1))


ZHOU = Paper(
    file="zhou2025_population_aurc.txt",
    equations={
        1: "selective classifier",
        2: "selective risk",
        3: "population AURC, definition",
        4: "population AURC as a weighted risk",
        5: "its weight",
        6: "population rank",
        7: "population weight",
        8: "population AURC, reweighted",
        9: "mean of the population weight",
        10: "empirical AURC",
        11: "plug-in estimator",
        12: "plug-in weight",
        13: "plug-in weight, closed form",
        14: "mean of the plug-in weight",
        15: "Monte-Carlo: conditional expectation",
        16: "Monte-Carlo: Beta distribution of a rank",
        17: "Monte-Carlo: its mean is the plug-in weight",
        18: "log weight",
        19: "mean of the log weight",
        20: "log weight is below the plug-in weight",
        21: "bias of the plug-in weight",
        22: "bias of the log weight",
        23: "squared error of the plug-in weight, given the sample rank",
        24: "scale of the squared error, plug-in weight",
        25: "convergence: Cauchy-Schwarz",
        26: "convergence: mean squared error",
        27: "consistency of the plug-in weight",
        28: "bias of the SELE weight",
        29: "squared error of the log weight, given the sample rank",
        30: "scale of the squared error, log weight",
        31: "mean squared error over the ranks",
        32: "SELE",
        33: "SELE as weights",
        34: "counterexample to 2 x SELE",
        35: "counterexample to 2 x SELE, weight",
        36: "counterexample to 2 x SELE, estimate",
        37: "expectation over a posterior",
        38: "expectation over a posterior, exchanged",
    },
    sections=_named("1 2 3 3.1 3.2 3.3 3.4 3.5 3.6 4 5 A A.1 A.2 A.3 A.4 A.5 A.6"),
    tables=_named("1 S2"),
    figures=_numbers(1, 6) | _numbers(6, 28, "S"),
    others=_named("3.1 3.2 3.3 3.4 3.5 3.6 A.1 A.2 A.3 A.4"),
)

TRAUB = Paper(
    file="traub2024_augrc_full.txt",
    equations={
        1: "selective classifier",
        2: "selective risk",
        3: "generalized risk",
        4: "AURC",
        5: "e-AURC",
        6: "AUGRC",
        7: "AUGRC from accuracy and ranking",
        8: "AUGRC from accuracy and ranking, derivation",
        9: "AUGRC falls with the ranking",
        10: "AUGRC falls with the accuracy",
        11: "F1-AUC of the best ranking",
    },
    sections=_named(
        "1 2 2.1 2.2 2.3 2.4 3 4 4.1 4.2 5 A A.1 A.1.1 A.1.2 A.1.3 A.2 A.2.1 A.2.2 A.3"
    ),
    tables=_numbers(1, 4),
    figures=_numbers(1, 7),
)

JAEGER = Paper(
    file="jaeger2023_fd_shifts.txt",
    equations={
        1: "selective classifier",
        2: "failure label",
        **dict.fromkeys(range(3, 7), "the classifier and its labels"),
        **dict.fromkeys(range(7, 16), "metrics of the classifier"),
        **dict.fromkeys(range(16, 20), "counts of failure detection"),
        20: "sensitivity of failure detection",
        21: "FPR of failure detection",
        22: "precision of failure detection",
        23: "failure AUROC",
        24: "average precision of successes",
        25: "average precision of failures",
        26: "AUROC of outliers",
        27: "NLL",
        28: "Brier score",
        29: "risk",
        30: "coverage",
        31: "AURC",
        32: "e-AURC",
        33: "SGR",
        34: "MSR",
        35: "PE",
        36: "MLS",
        37: "MCD-MSR",
        38: "MCD-PE",
        39: "MCD-EE",
        40: "MCD-MI",
        41: "MCD-MLS",
    },
    sections=_named(
        "1 2 3 3.1 3.2 4 4.1 4.2 4.3 5 A B B.1 B.2 B.2.1 B.2.2 B.2.3 B.2.4 B.2.5 C D "
        "E E.1 E.2 E.3 E.4 F G G.1 H I J J.1 J.2 J.3 J.4 J.5"
    ),
    tables=_numbers(1, 16),
    figures=_numbers(1, 11),
    others=_named("1"),
)

SHAHNAZARI = Paper(
    file="shahnazari2025_cwsa.txt",
    # None of its formulas has a number, and none of its tables.
    equations={},
    sections=_named(
        "1 2 2.1 2.2 2.3 2.4 2.5 2.6 3 3.1 3.2 3.3 3.4 3.5 4 4.1 4.2 4.3 4.4 5 5.1 5.2 5.3 5.4 5.5 5.6 5.7 "
        "A A.1 A.2 A.3 A.4 A.5 A.6"
    ),
    tables=frozenset(),
    figures=frozenset(),
)

#: By the first author, as citations begin.
PAPERS = {"Zhou": ZHOU, "Traub": TRAUB, "Jaeger": JAEGER, "Shahnazari": SHAHNAZARI}

#: What an equation must be about to be cited for these metrics of the catalogue.
METRIC_TOPICS = {
    "augrc": "AUGRC",
    "excess_augrc": "AUGRC from accuracy and ranking",
    "augrc_ranking": "AUGRC from accuracy and ranking",
    "augrc_classifier": "AUGRC from accuracy and ranking",
    "generalized_risk@80cov": "generalized risk",
    "aurc": "AURC",
    "aurc_plugin": "plug-in weight",
    "aurc_log": "log weight",
    "failure_auroc": "failure AUROC",
    "fpr_at_95tpr": "of failure detection",
}

#: The same for what functions cite in their docstrings; several topics for several equations.
FUNCTION_TOPICS = {
    "abstain.curves.generalized_risk_coverage_curve": ("generalized risk",),
    "abstain.evaluation.posterior_expectation": ("posterior",),
    "abstain.metrics.augrc": ("AUGRC",),
    "abstain.metrics.augrc_terms": ("AUGRC from accuracy and ranking",),
    "abstain.metrics.excess_augrc": ("AUGRC from accuracy and ranking",),
    "abstain.metrics.generalized_risk": ("generalized risk",),
    "abstain.metrics.aurc": ("plug-in weight", "log weight"),
    "abstain.metrics.monte_carlo_aurc": ("Monte-Carlo",),
    "abstain.metrics.population_aurc": ("population AURC",),
    "abstain.metrics.population_weight": ("population weight",),
    "abstain.metrics.rank_weights": ("plug-in weight", "log weight"),
    "abstain.metrics.sample_contributions": ("plug-in weight",),
    "abstain.metrics.weight_bias": ("bias",),
    "abstain.metrics.weight_error_scale": ("scale",),
    "abstain.metrics.mean_weight_error_scale": ("mean squared error over the ranks",),
    "abstain.metrics.weight_mse_given_rank": ("given the sample rank",),
    "abstain.metrics.failure_auroc": ("failure AUROC", "of failure detection"),
    "abstain.metrics.fpr_at_tpr": ("failure AUROC", "of failure detection"),
    "abstain.simulate.two_sele_counterexample": ("counterexample",),
    "abstain_bench.studies.study_convergence": ("convergence",),
    "abstain_bench.studies.study_population_forms": ("population AURC",),
    "abstain_bench.studies.study_posterior": ("posterior",),
    "abstain_bench.studies.study_weights": (
        "bias",
        "scale",
        "Monte-Carlo",
        "squared error",
        "consistency",
    ),
}
