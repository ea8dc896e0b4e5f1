"""The catalogue entries of the AURC family."""

from abstain._foundation.scored import Measured, Scored
from abstain.metrics._aurc import ESTIMATORS, achievable
from abstain.metrics._entry import Metric, Need
from abstain.metrics.excess_aurc import excess_aurc, normalized
from abstain.metrics.rank_weights import rank_weighted_risk, trapezoid_weight

_ZHOU = "Zhou et al. (2025), {}, https://arxiv.org/abs/2410.15361"
_MEANING = "Averaged over all coverages, {value} of the accepted samples are wrong."


def _estimator(
    name: str, title: str, estimator: str, source: str, meaning: str, *, high: float = 1.0
) -> Metric:
    phi = ESTIMATORS[estimator]

    def compute(s: Scored) -> Measured:
        return Measured(rank_weighted_risk(s.groups, phi))

    return Metric(
        name=name,
        title=title,
        family="area",
        compute=compute,
        lower_is_better=True,
        low=0.0,
        high=high,
        meaning=meaning,
        source=source,
        convention=estimator,
        headline=3 if name == "aurc" else None,
        # SELE is printed as it is.
        per_thousand="sele" not in estimator,
        averages_ties=estimator != "trapezoid",
        duplication="limit",
    )


ENTRIES = (
    _estimator(
        "aurc",
        "AURC",
        "trapezoid",
        "Geifman et al. (2019), as Jaeger et al. (2023), eq. 31, https://arxiv.org/abs/2211.15259",
        _MEANING,
    ),
    _estimator("aurc_plugin", "AURC, plug-in", "plugin", _ZHOU.format("eq. 12-13"), _MEANING),
    _estimator("aurc_log", "AURC, log estimator", "log", _ZHOU.format("eq. 18"), _MEANING),
    _estimator(
        "sele",
        "SELE",
        "sele",
        "Franc et al. (2023), https://jmlr.org/papers/v24/21-0048.html",
        "AUGRC plus half the error rate over n, {value}: a lower bound of the AURC.",
    ),
    _estimator(
        "two_sele",
        "2 x SELE",
        "2sele",
        "Franc et al. (2023), https://jmlr.org/papers/v24/21-0048.html",
        "Twice SELE, {value}: above the AURC unless the most confident samples fail.",
        high=2.0,
    ),
    Metric(
        name="e_aurc",
        title="E-AURC",
        family="area",
        compute=excess_aurc,
        lower_is_better=True,
        low=0.0,
        high=1.0,
        meaning="A perfect score would lower the AURC of this classifier by {value}.",
        source="Geifman et al. (2019), https://arxiv.org/abs/1805.08206",
        convention="trapezoid, optimum of the same estimator",
        per_thousand=True,
        headline=4,
        duplication="limit",
    ),
    Metric(
        name="normalized_aurc",
        title="normalized AURC",
        family="area",
        compute=normalized,
        lower_is_better=True,
        low=0.0,
        high=float("inf"),
        meaning="Between a perfect score (0) and a random one (1), this one stands at {value}.",
        source="Cattelan and Silva (2024), https://arxiv.org/abs/2305.15508",
        convention="trapezoid",
        duplication="limit",
    ),
    Metric(
        name="achievable_aurc",
        title="achievable AURC",
        family="area",
        compute=achievable,
        lower_is_better=True,
        low=0.0,
        high=1.0,
        meaning="With the best working points only, the area under the risk curve is {value}.",
        source="code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts",
        convention="hull, hyperbolic segments",
        per_thousand=True,
    ),
    Metric(
        name="auarc",
        title="area under the accuracy-rejection curve",
        family="area",
        compute=lambda s: Measured(1.0 - rank_weighted_risk(s.groups, trapezoid_weight)),
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning="Averaged over all rejection rates, {value} of the accepted samples are right.",
        source="Nadeem et al. (2009), https://proceedings.mlr.press/v8/nadeem10a.html",
        needs=frozenset({Need.UNIT_LOSS}),
        convention="trapezoid",
        duplication="limit",
    ),
)
