"""The catalogue of methods, in the order of tables: each family with what its entries share."""

from dataclasses import replace
from typing import Any

from abstain.confidence import FITTED, SCORES
from abstain_bench.runs.methods.entry import Method
from abstain_bench.runs.methods.fd_shifts import more_fd_shifts_methods
from abstain_bench.runs.methods.fits import (
    LastLayerScore,
    fit_pnorm,
    fit_temperature,
    fitted_on_train,
)

# ----------------------------------------------------------------- logits of a plain classifier
_PLAIN = "cross-entropy"
_NONE: frozenset[str] = frozenset()
_GUO = "temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599"
#: Who calls the largest probability of tempered logits "TEMP-MLS".
_TRAUB = "Traub et al. (2024), https://arxiv.org/abs/2407.01032, A.2"


def _named(name: str) -> Method:
    entry = SCORES[name]
    return Method(name, entry.title, entry.source, _PLAIN, _NONE, name, meaning=entry.meaning)


def _renamed(method: Method, name: str, title: str, source: str) -> Method:
    """Return a method under another name."""
    meaning = f"`{method.name}` by another name: {method.meaning}"
    return replace(
        method, name=name, title=title, source=source, meaning=meaning, same_as=method.name
    )


_MSR = SCORES["msr"]
_TEMP_MSR = Method(
    "temp_msr",
    f"{_MSR.title}, with a temperature",
    f"{_MSR.source}; {_GUO}",
    _PLAIN,
    _NONE,
    fit_temperature,
    "validation",
    f"{_MSR.meaning}; the logits divided by the most likely temperature",
)
_NORM = FITTED["pnorm"]

_POST_HOC = (
    *map(_named, ("msr", "mls", "pe")),
    _TEMP_MSR,
    _renamed(_TEMP_MSR, "temp_mls", "TEMP-MLS of FD-Shifts", f"{_TRAUB}; {_GUO}"),
    *map(_named, ("energy", "margin", "gini")),
    Method(
        "pnorm",
        _NORM.title,
        _NORM.source,
        _PLAIN,
        _NONE,
        fit_pnorm,
        "validation",
        f"{_NORM.meaning}; chosen by AUGRC",
    ),
    _named("gen"),
)

# ----------------------------------------------------------------------- passes with dropout on
_GAL = "dropout: Gal & Ghahramani (2016), https://arxiv.org/abs/1506.02142"


def _of_passes(short: str) -> Method:
    entry = SCORES[f"mcd_{short}"]
    return Method(
        entry.name,
        entry.title if "Monte-Carlo" in entry.title else f"Monte-Carlo {entry.title.lower()}",
        f"{entry.source}; {_GAL}",
        _PLAIN,
        frozenset({"samples"}),
        entry.name,
        meaning=entry.meaning,
    )


_DROPOUT = tuple(map(_of_passes, ("msr", "mls", "pe", "ee", "mi", "waic")))

# ------------------------------------------------- networks trained to know when they are wrong
_CORBIERE = "Corbière et al. (2019), https://arxiv.org/abs/1910.04851"
_LIU = "Liu et al. (2019), https://arxiv.org/abs/1907.00208"
_DEVRIES = "DeVries & Taylor (2018), https://arxiv.org/abs/1802.04865"
_JAEGER = "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259"
_LEARNED_SCORE = frozenset({"learned"})
_GAMBLERS = "deep-gamblers"
_RENORMALIZED = "of the classes without abstention"


def _gamblers(name: str, title: str) -> Method:
    entry = SCORES[name]
    return Method(
        f"dg_{name}",
        f"DeepGamblers, {title}",
        f"{_LIU}; {_JAEGER}",
        _GAMBLERS,
        frozenset({"samples"} if name.startswith("mcd_") else ()),
        name,
        meaning=f"{entry.meaning}; {_RENORMALIZED}",
    )


_DG_TEMP_MSR = Method(
    "dg_temp_msr",
    "DeepGamblers, maximum softmax response, with a temperature",
    f"{_LIU}; {_JAEGER}",
    _GAMBLERS,
    frozenset(),
    fit_temperature,
    "validation",
    f"{SCORES['msr'].meaning}; {_RENORMALIZED}, divided by the most likely temperature",
)

_LEARNED = (
    Method(
        "confidnet",
        "ConfidNet",
        _CORBIERE,
        "confidnet",
        _LEARNED_SCORE,
        "learned",
        meaning="the learned probability of the true class, as log-odds",
    ),
    Method(
        "mcd_confidnet",
        "Monte-Carlo ConfidNet",
        f"{_CORBIERE}; {_JAEGER} (in the code only: tcp_mcd)",
        "confidnet",
        _LEARNED_SCORE | {"samples"},
        "mcd_learned",
        meaning="the mean of that probability over passes with dropout on, as log-odds",
    ),
    Method(
        "dg_res",
        "DeepGamblers, reservation score",
        _LIU,
        _GAMBLERS,
        _LEARNED_SCORE,
        "learned",
        meaning="the probability of not abstaining, as log-odds",
    ),
    _gamblers("msr", "maximum softmax response"),
    _gamblers("pe", "predictive entropy"),
    _gamblers("mcd_msr", "Monte-Carlo maximum softmax response"),
    _gamblers("mcd_pe", "Monte-Carlo predictive entropy"),
    _gamblers("mcd_ee", "Monte-Carlo expected entropy"),
    Method(
        "dg_res_mcd",
        "DeepGamblers, Monte-Carlo reservation score",
        f"{_LIU}; {_JAEGER} (in the code only: dg_mcd)",
        _GAMBLERS,
        _LEARNED_SCORE | {"samples"},
        "mcd_learned",
        meaning="the mean probability of not abstaining over passes with dropout on, as log-odds",
    ),
    _DG_TEMP_MSR,
    _renamed(_DG_TEMP_MSR, "dg_temp_mls", "DG-TEMP-MLS of FD-Shifts", f"{_LIU}; {_TRAUB}"),
    Method(
        "devries",
        "DeVries & Taylor",
        _DEVRIES,
        "devries",
        _LEARNED_SCORE,
        "learned",
        meaning="the output of the confidence branch, as log-odds",
    ),
)

# ----------------------------------------------- what the last layer of a plain classifier sees
# Features that are 0 for every training image, as after a ReLU, leave no inverse without it.
_SHRUNK: dict[str, Any] = {"shrinkage": "ledoit_wolf"}


def _of_features(kind: str, *, also: str = "", last_layer: bool = False, **options: Any) -> Method:
    entry = FITTED[kind]
    return Method(
        kind,
        entry.title,
        entry.source,
        _PLAIN,
        frozenset({"features", "last_layer"} if last_layer else {"features"}),
        fitted_on_train(kind, last_layer=last_layer, **options),
        "train",
        f"{entry.meaning}{also}",
    )


def _shaped(kind: str) -> Method:
    """Return a score of features that are changed sample by sample, before the last layer."""
    return replace(
        _of_features(kind, last_layer=True),
        score=lambda data: LastLayerScore(kind, data.weight, data.bias),
        fitted_on="",
    )


def _variant(name: str, title: str, meaning: str, source: str = "", **options: Any) -> Method:
    """Return the Mahalanobis distance with other options under a name of its own."""
    plain = _of_features("mahalanobis", **options)
    return replace(
        plain,
        name=f"mahalanobis_{name}",
        title=f"{plain.title}, {title}",
        source=source or plain.source,
        meaning=meaning,
    )


_FEATURE_SPACE = (
    _of_features("mahalanobis", also=" (Ledoit-Wolf shrinkage)", **_SHRUNK),
    _variant(
        "normalized",
        "normalized features",
        "the same of features divided by their length (Ledoit-Wolf shrinkage)",
        normalize=True,
        **_SHRUNK,
    ),
    _variant(
        "margin",
        "second minus first",
        "how much farther the second nearest class mean is than the nearest (Ledoit-Wolf "
        "shrinkage)",
        to="margin",
        **_SHRUNK,
    ),
    _variant(
        "predicted",
        "predicted class",
        "minus the squared distance to the mean of the predicted class, by the pseudo-inverse of "
        "the covariance of all features (MAHA of FD-Shifts)",
        f"{_JAEGER}, as its code computes it",
        shrinkage="pinv",
        covariance="total",
        to="predicted",
    ),
    _of_features("relative_mahalanobis", also=" (Ledoit-Wolf shrinkage)", **_SHRUNK),
    _of_features("knn"),
    _of_features("vim", last_layer=True),
    _of_features("react", last_layer=True),
    _of_features("she"),
    _shaped("ash"),
    _shaped("scale"),
)

# -------------------------------------------------------- several networks from different seeds
# `abstain_bench.runs.outputs.ensemble_outputs` stores the logits of the networks as samples.
_LAKSHMINARAYANAN = "Lakshminarayanan et al. (2017), https://arxiv.org/abs/1612.01474"
_ENSEMBLES = tuple(
    Method(
        f"ens_{short}",
        f"Ensemble, {title}",
        source,
        _PLAIN,
        frozenset({"ensemble"}),
        f"mcd_{short}",
        meaning=meaning,
    )
    for short, title, source, meaning in (
        (
            "msr",
            "maximum softmax response",
            _LAKSHMINARAYANAN,
            "log-odds of the largest mean probability",
        ),
        (
            "pe",
            "predictive entropy",
            _LAKSHMINARAYANAN,
            "minus the entropy of the mean probabilities",
        ),
        (
            "mi",
            "mutual information",
            f"{_LAKSHMINARAYANAN}; Houlsby et al. (2011), https://arxiv.org/abs/1112.5745",
            "whether the networks agree: minus their mutual information with the class",
        ),
    )
)

_BY_DEFAULT = (*_POST_HOC, *_DROPOUT, *_LEARNED, *_FEATURE_SPACE, *_ENSEMBLES)
_SOFTMAX_VARIANCE = replace(_of_passes("sv"), is_default=False)

#: Every method, in the order of tables.
ENTRIES = (
    *_BY_DEFAULT,
    _SOFTMAX_VARIANCE,
    *more_fd_shifts_methods((*_BY_DEFAULT, _SOFTMAX_VARIANCE)),
)
