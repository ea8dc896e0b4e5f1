"""Define the catalogue of methods, grouped in the order of tables.

The catalogue includes the 22 scores of FD-Shifts, some of which are computed only if they are
requested.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from abstain.confidence import FITTED, SCORES
from abstain_bench.runs.methods.entry import (
    LastLayerScore,
    Method,
    fit_pnorm,
    fit_temperature,
    fitted_on_train,
    fitted_react_with_temperature,
)

_CODE: Final = "the code of FD-Shifts, https://github.com/IML-DKFZ/fd-shifts"
_PLAIN: Final = "cross-entropy"
_FEATURES: Final = frozenset({"features"})
_LAST_LAYER: Final = _FEATURES | {"last_layer"}
#: Percentile at which FD-Shifts clips features.
_PERCENTILE: Final = 99
#: Number of training samples among which FD-Shifts searches the nearest neighbors.
_NEIGHBORS: Final = 1000

#: Methods for networks that are trained with cross-entropy, by the name of the score in FD-Shifts.
_METHOD_BY_FD_SHIFTS_NAME: Final[Mapping[str, str]] = {
    "det_mcp": "msr",
    "det_pe": "pe",
    "det_mls": "mls",
    "temp_mls": "temp_msr",
    "energy_mls": "energy",
    "mcd_mcp": "mcd_msr",
    "mcd_pe": "mcd_pe",
    "mcd_ee": "mcd_ee",
    "mcd_mi": "mcd_mi",
    "mcd_sv": "mcd_sv",
    "mcd_waic": "mcd_waic",
    "mcd_mls": "mcd_mls",
    "maha": "mahalanobis_predicted",
    "dknn": "knn_1000",
    "vim": "vim_centered",
    "react_det_mcp": "react_99_msr",
    "react_det_mls": "react_99_mls",
    "react_temp_mls": "react_99_temp_msr",
    "react_energy_mls": "react_99_energy",
}
#: Methods that use the learned confidence of a network, by objective and name in FD-Shifts.
_EXTERNAL_METHODS: Final[Mapping[str, Mapping[str, str]]] = {
    "confidnet": {"ext": "confidnet", "ext_mcd": "mcd_confidnet", "ext_waic": "confidnet_waic"},
    "deep-gamblers": {"ext": "dg_res", "ext_mcd": "dg_res_mcd", "ext_waic": "dg_res_waic"},
    "devries": {"ext": "devries", "ext_mcd": "mcd_devries", "ext_waic": "devries_waic"},
}


class _Affixes(NamedTuple):
    """Texts that distinguish methods of an objective from the same methods for cross-entropy."""

    name_prefix: str
    title_prefix: str
    meaning_suffix: str


#: Objectives that train a classifier together with the confidence.
_AFFIXES: Final[Mapping[str, _Affixes]] = {
    "deep-gamblers": _Affixes("dg_", "DeepGamblers", "; of the classes without abstention"),
    "devries": _Affixes("devries_", "DeVries & Taylor", ""),
}
#: Proper names at the beginning of titles, which remain capitalized after a prefix.
_PROPER: Final = ("Monte-Carlo", "Mahalanobis", "ReAct")


def fd_shifts_scores(objective: str) -> dict[str, str]:
    """Return a method for each score of FD-Shifts that applies to an objective.

    Examples
    --------
    >>> from abstain_bench.runs.methods.catalogue import fd_shifts_scores
    >>> methods = fd_shifts_scores("devries")
    >>> len(methods), methods["react_det_mls"], methods["ext_waic"]
    (22, 'devries_react_99_mls', 'devries_waic')
    """
    prefix = _AFFIXES[objective].name_prefix if objective in _AFFIXES else ""
    methods = {name: f"{prefix}{method}" for name, method in _METHOD_BY_FD_SHIFTS_NAME.items()}
    return methods | dict(_EXTERNAL_METHODS.get(objective, {}))


def additional_fd_shifts_methods(existing: Iterable[Method]) -> Iterator[Method]:
    """Yield the methods of FD-Shifts that are missing in `existing`."""
    by_name = {method.name: method for method in existing}
    feature_methods = {method.name: method for method in _feature_methods()}
    yield from (method for name, method in feature_methods.items() if name not in by_name)
    cross_entropy_methods = by_name | feature_methods
    for objective, affixes in _AFFIXES.items():
        for name in _METHOD_BY_FD_SHIFTS_NAME.values():
            if f"{affixes.name_prefix}{name}" not in by_name:
                yield _with_objective(cross_entropy_methods[name], objective)
    for name in ("confidnet", "dg_res", "devries"):
        yield _waic(by_name[name])
    devries = by_name["devries"]
    yield replace(
        devries,
        name="mcd_devries",
        title="Monte-Carlo DeVries & Taylor",
        source=f"{devries.source}; {_CODE}",
        needs=devries.needs | {"samples"},
        score="mcd_learned",
        meaning="the mean output of the confidence branch over passes with dropout on, as log-odds",
        is_default=False,
    )


_fd_shifts_method = partial(Method, objective=_PLAIN, is_default=False)


def _feature_methods() -> Iterator[Method]:
    """Yield the feature-based scores with the options that FD-Shifts uses."""
    knn = FITTED["knn"]
    vim = FITTED["vim"]
    react = FITTED["react"]
    yield _fd_shifts_method(
        "knn_1000",
        "Distance to the 50th neighbor among 1,000",
        f"{knn.source}; as in {_CODE}",
        needs=_FEATURES,
        score=fitted_on_train("knn", n_first=_NEIGHBORS, normalize=False),
        fitted_on="train",
        meaning="minus the distance to the 50th nearest of the first 1,000 training samples",
    )
    yield _fd_shifts_method(
        "vim_centered",
        "Virtual-logit matching (ViM), centered",
        f"{vim.source}; as in {_CODE}",
        needs=_LAST_LAYER,
        score=fitted_on_train("vim", last_layer=True, centered=True),
        fitted_on="train",
        meaning=f"{vim.meaning}; relative to the mean of the training features",
    )
    react_title = f"ReAct at {_PERCENTILE}%"
    react_source = f"{react.source}; as in {_CODE}"
    logits = "of the logits of features that are clipped at the 99th percentile"
    for base, title in (
        ("msr", "maximum softmax response"),
        ("mls", "maximum logit"),
        ("energy", "energy"),
    ):
        yield _fd_shifts_method(
            f"react_99_{base}",
            f"{react_title}, {title}",
            react_source,
            needs=_LAST_LAYER,
            score=fitted_on_train("react", last_layer=True, base=base, percentile=_PERCENTILE),
            fitted_on="train",
            meaning=f"the {title} {logits}",
        )
    yield _fd_shifts_method(
        "react_99_temp_msr",
        f"{react_title}, maximum softmax response, with a temperature",
        react_source,
        needs=_LAST_LAYER,
        score=fitted_react_with_temperature(_PERCENTILE),
        fitted_on="train and validation",
        meaning=f"the maximum softmax response {logits}, divided by their most likely temperature",
    )


def _with_objective(method: Method, objective: str) -> Method:
    """Return a cross-entropy method as a method for another training objective."""
    affixes = _AFFIXES[objective]
    score_title = method.title
    if not score_title.startswith(_PROPER):
        score_title = score_title[0].lower() + score_title[1:]
    return replace(
        method,
        name=f"{affixes.name_prefix}{method.name}",
        title=f"{affixes.title_prefix}, {score_title}",
        source=method.source if _CODE in method.source else f"{method.source}; as in {_CODE}",
        objective=objective,
        meaning=f"{method.meaning}{affixes.meaning_suffix}",
        is_default=False,
    )


def _waic(method: Method) -> Method:
    """Return the mean of a learned confidence over the passes, minus its standard deviation."""
    return replace(
        method,
        name=f"{method.name}_waic",
        title=f"{method.title}, WAIC",
        source=f"{method.source}; as in {_CODE} (ext_waic)",
        needs=method.needs | {"samples"},
        score="learned_waic",
        meaning="the mean of the learned confidence over passes with dropout on, minus the "
        "standard deviation",
        is_default=False,
    )


# ----------------------------------------------------------------- logits of a plain classifier
_GUO = "temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599"
#: This paper names the maximum softmax response after temperature scaling "TEMP-MLS".
_TRAUB = "Traub et al. (2024), https://arxiv.org/abs/2407.01032, A.2"


_on_logits = partial(Method, objective=_PLAIN, needs=frozenset())


def _logit_method(name: str) -> Method:
    entry = SCORES[name]
    return _on_logits(name, entry.title, entry.source, score=name, meaning=entry.meaning)


def _alias(method: Method, name: str, title: str, source: str) -> Method:
    """Return an alias, which is a method with the same scores under another name."""
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
# A ReLU can be 0 for all training images. Without shrinkage, the covariance is then singular.
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
    """Return a method that modifies the features before the final layer."""
    return replace(
        _feature_method(kind, last_layer=True),
        score=lambda data: LastLayerScore(kind, data.weight, data.bias),
        fitted_on="",
    )


def _mahalanobis_variant(
    name: str, title: str, meaning: str, source: str = "", **options: Any
) -> Method:
    """Return a method that computes the Mahalanobis distance with other options."""
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
