"""The catalogue of methods in the order of tables, by family."""

from dataclasses import replace
from functools import partial
from typing import Any

from abstain.confidence import FITTED, SCORES
from abstain_bench.runs.methods.entry import (
    LastLayerScore,
    Method,
    fit_pnorm,
    fit_temperature,
    fitted_on_train,
)
from abstain_bench.runs.methods.fd_shifts import additional_fd_shifts_methods

# ----------------------------------------------------------------- logits of a plain classifier
_PLAIN = "cross-entropy"
_GUO = "temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599"
#: Names the maximum softmax response of tempered logits "TEMP-MLS".
_TRAUB = "Traub et al. (2024), https://arxiv.org/abs/2407.01032, A.2"


_on_logits = partial(Method, objective=_PLAIN, needs=frozenset())


def _logit_method(name: str) -> Method:
    entry = SCORES[name]
    return _on_logits(name, entry.title, entry.source, score=name, meaning=entry.meaning)


def _alias(method: Method, name: str, title: str, source: str) -> Method:
    """Return a method under another name."""
    meaning = f"another name of `{method.name}`: {method.meaning}"
    return replace(
        method, name=name, title=title, source=source, meaning=meaning, same_as=method.name
    )


_MSR = SCORES["msr"]
_TEMP_MSR = _on_logits(
    "temp_msr",
    f"{_MSR.title}, with a temperature",
    f"{_MSR.source}; {_GUO}",
    score=fit_temperature,
    fitted_on="validation",
    meaning=f"{_MSR.meaning}; the logits divided by the most likely temperature",
)
_NORM = FITTED["pnorm"]

_POST_HOC = (
    *map(_logit_method, ("msr", "mls", "pe")),
    _TEMP_MSR,
    _alias(_TEMP_MSR, "temp_mls", "TEMP-MLS of FD-Shifts", f"{_TRAUB}; {_GUO}"),
    *map(_logit_method, ("energy", "margin", "gini")),
    _on_logits(
        "pnorm",
        _NORM.title,
        _NORM.source,
        score=fit_pnorm,
        fitted_on="validation",
        meaning=f"{_NORM.meaning}; selected by AUGRC",
    ),
    _logit_method("gen"),
)

# ----------------------------------------------------------------------- passes with dropout on
_GAL = "dropout: Gal & Ghahramani (2016), https://arxiv.org/abs/1506.02142"


def _dropout_method(short: str) -> Method:
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


_DROPOUT = tuple(map(_dropout_method, ("msr", "mls", "pe", "ee", "mi", "waic")))

# ------------------------------------------------- networks with a learned confidence
_CORBIERE = "Corbière et al. (2019), https://arxiv.org/abs/1910.04851"
_LIU = "Liu et al. (2019), https://arxiv.org/abs/1907.00208"
_DEVRIES = "DeVries & Taylor (2018), https://arxiv.org/abs/1802.04865"
_JAEGER = "Jaeger et al. (2023), https://arxiv.org/abs/2211.15259"
_learned_method = partial(Method, needs=frozenset({"learned"}), score="learned")
_mean_learned_method = partial(Method, needs=frozenset({"learned", "samples"}), score="mcd_learned")
_GAMBLERS = "deep-gamblers"
_RENORMALIZED = "of the classes without abstention"


def _gambler_method(name: str, title: str) -> Method:
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


_DG_TEMP_MSR = replace(
    _TEMP_MSR,
    name="dg_temp_msr",
    title="DeepGamblers, maximum softmax response, with a temperature",
    source=f"{_LIU}; {_JAEGER}",
    objective=_GAMBLERS,
    meaning=f"{_MSR.meaning}; {_RENORMALIZED}, divided by the most likely temperature",
)

_LEARNED = (
    _learned_method(
        "confidnet",
        "ConfidNet",
        _CORBIERE,
        "confidnet",
        meaning="the learned probability of the true class, as log-odds",
    ),
    _mean_learned_method(
        "mcd_confidnet",
        "Monte-Carlo ConfidNet",
        f"{_CORBIERE}; {_JAEGER} (in the code only: tcp_mcd)",
        "confidnet",
        meaning="the mean of that probability over passes with dropout on, as log-odds",
    ),
    _learned_method(
        "dg_res",
        "DeepGamblers, reservation score",
        _LIU,
        _GAMBLERS,
        meaning="the probability of not abstaining, as log-odds",
    ),
    _gambler_method("msr", "maximum softmax response"),
    _gambler_method("pe", "predictive entropy"),
    _gambler_method("mcd_msr", "Monte-Carlo maximum softmax response"),
    _gambler_method("mcd_pe", "Monte-Carlo predictive entropy"),
    _gambler_method("mcd_ee", "Monte-Carlo expected entropy"),
    _mean_learned_method(
        "dg_res_mcd",
        "DeepGamblers, Monte-Carlo reservation score",
        f"{_LIU}; {_JAEGER} (in the code only: dg_mcd)",
        _GAMBLERS,
        meaning="the mean probability of not abstaining over passes with dropout on, as log-odds",
    ),
    _DG_TEMP_MSR,
    _alias(_DG_TEMP_MSR, "dg_temp_mls", "DG-TEMP-MLS of FD-Shifts", f"{_LIU}; {_TRAUB}"),
    _learned_method(
        "devries",
        "DeVries & Taylor",
        _DEVRIES,
        "devries",
        meaning="the output of the confidence branch, as log-odds",
    ),
)

# ----------------------------------------------- features of the last layer of a plain classifier
# Without shrinkage, features that are 0 for all training images (ReLU) give a singular covariance.
_SHRINKAGE: dict[str, Any] = {"shrinkage": "ledoit_wolf"}


def _feature_method(
    kind: str, *, note: str = "", last_layer: bool = False, **options: Any
) -> Method:
    entry = FITTED[kind]
    return Method(
        kind,
        entry.title,
        entry.source,
        _PLAIN,
        frozenset({"features", "last_layer"} if last_layer else {"features"}),
        fitted_on_train(kind, last_layer=last_layer, **options),
        "train",
        f"{entry.meaning}{note}",
    )


def _reshaped_feature_method(kind: str) -> Method:
    """Return a score of features that are modified per sample before the last layer."""
    return replace(
        _feature_method(kind, last_layer=True),
        score=lambda data: LastLayerScore(kind, data.weight, data.bias),
        fitted_on="",
    )


def _mahalanobis_variant(
    name: str, title: str, meaning: str, source: str = "", **options: Any
) -> Method:
    """Return the Mahalanobis distance with other options."""
    plain = _feature_method("mahalanobis", **options)
    return replace(
        plain,
        name=f"mahalanobis_{name}",
        title=f"{plain.title}, {title}",
        source=source or plain.source,
        meaning=meaning,
    )


_FEATURE_SPACE = (
    _feature_method("mahalanobis", note=" (Ledoit-Wolf shrinkage)", **_SHRINKAGE),
    _mahalanobis_variant(
        "normalized",
        "normalized features",
        "the same for features divided by their norm (Ledoit-Wolf shrinkage)",
        normalize=True,
        **_SHRINKAGE,
    ),
    _mahalanobis_variant(
        "margin",
        "second minus first",
        "distance to the second nearest class mean minus distance to the nearest (Ledoit-Wolf "
        "shrinkage)",
        to="margin",
        **_SHRINKAGE,
    ),
    _mahalanobis_variant(
        "predicted",
        "predicted class",
        "minus the squared distance to the mean of the predicted class, by the pseudo-inverse of "
        "the covariance of all features (MAHA of FD-Shifts)",
        f"{_JAEGER}, as its code computes it",
        shrinkage="pinv",
        covariance="total",
        to="predicted",
    ),
    _feature_method("relative_mahalanobis", note=" (Ledoit-Wolf shrinkage)", **_SHRINKAGE),
    _feature_method("knn"),
    _feature_method("vim", last_layer=True),
    _feature_method("react", last_layer=True),
    _feature_method("she"),
    _reshaped_feature_method("ash"),
    _reshaped_feature_method("scale"),
)

# -------------------------------------------------------- several networks from different seeds
# `abstain_bench.runs.outputs.ensemble_outputs` stores the logits of the networks as samples.
_LAKSHMINARAYANAN = "Lakshminarayanan et al. (2017), https://arxiv.org/abs/1612.01474"
_HOULSBY = "Houlsby et al. (2011), https://arxiv.org/abs/1112.5745"
_ensemble_method = partial(Method, objective=_PLAIN, needs=frozenset({"ensemble"}))
_ENSEMBLES = (
    _ensemble_method(
        "ens_msr",
        "Ensemble, maximum softmax response",
        _LAKSHMINARAYANAN,
        score="mcd_msr",
        meaning="log-odds of the largest mean probability",
    ),
    _ensemble_method(
        "ens_pe",
        "Ensemble, predictive entropy",
        _LAKSHMINARAYANAN,
        score="mcd_pe",
        meaning="minus the entropy of the mean probabilities",
    ),
    _ensemble_method(
        "ens_mi",
        "Ensemble, mutual information",
        f"{_LAKSHMINARAYANAN}; {_HOULSBY}",
        score="mcd_mi",
        meaning="agreement of the networks: minus their mutual information with the class",
    ),
)

_DEFAULT_METHODS = (*_POST_HOC, *_DROPOUT, *_LEARNED, *_FEATURE_SPACE, *_ENSEMBLES)
_SOFTMAX_VARIANCE = replace(_dropout_method("sv"), is_default=False)

#: Every method, in the order of tables.
ENTRIES = (
    *_DEFAULT_METHODS,
    _SOFTMAX_VARIANCE,
    *additional_fd_shifts_methods((*_DEFAULT_METHODS, _SOFTMAX_VARIANCE)),
)
