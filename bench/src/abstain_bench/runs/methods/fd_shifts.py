"""The 22 scores that FD-Shifts computes for each network, as entries of `METHODS`.

`catalogue.py` has the scores that trained networks have by default. This module adds the others.
They are computed for imported networks, and for trained networks on request.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from abstain.confidence import FITTED
from abstain_bench.runs.methods.entry import Method, fitted_on_train, fitted_react_with_temperature

_CODE: Final = "the code of FD-Shifts, https://github.com/IML-DKFZ/fd-shifts"
_PLAIN: Final = "cross-entropy"
_FEATURES: Final = frozenset({"features"})
_LAST_LAYER: Final = _FEATURES | {"last_layer"}
#: Percentile at which FD-Shifts clips features, and the number of training samples that it compares
#: features with.
_PERCENTILE: Final = 99
_NEIGHBORS: Final = 1000

#: Methods for networks trained with cross-entropy, by the name of the score in FD-Shifts.
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
#: The same for the confidence that a network learns, by objective.
_EXTERNAL_METHODS: Final[Mapping[str, Mapping[str, str]]] = {
    "confidnet": {"ext": "confidnet", "ext_mcd": "mcd_confidnet", "ext_waic": "confidnet_waic"},
    "deep-gamblers": {"ext": "dg_res", "ext_mcd": "dg_res_mcd", "ext_waic": "dg_res_waic"},
    "devries": {"ext": "devries", "ext_mcd": "mcd_devries", "ext_waic": "devries_waic"},
}
#: Objectives whose networks have their own classifier: prefixes of the names and titles of its
#: scores, and the end of their descriptions.
_PREFIXES: Final[Mapping[str, tuple[str, str, str]]] = {
    "deep-gamblers": ("dg_", "DeepGamblers", "; of the classes without abstention"),
    "devries": ("devries_", "DeVries & Taylor", ""),
}
#: Beginnings of titles that are proper names.
_PROPER: Final = ("Monte-Carlo", "Mahalanobis", "ReAct")


def fd_shifts_scores(objective: str) -> dict[str, str]:
    """Return the methods for the scores of FD-Shifts, for networks of an objective.

    Examples
    --------
    >>> from abstain_bench.runs.methods.fd_shifts import fd_shifts_scores
    >>> methods = fd_shifts_scores("devries")
    >>> len(methods), methods["react_det_mls"], methods["ext_waic"]
    (22, 'devries_react_99_mls', 'devries_waic')
    """
    prefix = _PREFIXES[objective][0] if objective in _PREFIXES else ""
    methods = {name: prefix + method for name, method in _METHOD_BY_FD_SHIFTS_NAME.items()}
    return methods | dict(_EXTERNAL_METHODS.get(objective, {}))


def additional_fd_shifts_methods(existing: Iterable[Method]) -> Iterator[Method]:
    """Yield the methods of FD-Shifts that the catalogue does not have yet."""
    by_name = {method.name: method for method in existing}
    plain = by_name | {method.name: method for method in _feature_methods()}
    yield from (method for name, method in plain.items() if name not in by_name)
    for objective, (prefix, _, _) in _PREFIXES.items():
        for name in _METHOD_BY_FD_SHIFTS_NAME.values():
            if prefix + name not in by_name:
                yield _with_objective(plain[name], objective)
    for name in ("confidnet", "dg_res", "devries"):
        yield _waic(by_name[name])
    yield replace(
        by_name["devries"],
        name="mcd_devries",
        title="Monte-Carlo DeVries & Taylor",
        source=f"{by_name['devries'].source}; {_CODE}",
        needs=by_name["devries"].needs | {"samples"},
        score="mcd_learned",
        meaning="the mean output of the confidence branch over passes with dropout on, as log-odds",
        is_default=False,
    )


_fd_shifts_method = partial(Method, objective=_PLAIN, is_default=False)


def _feature_methods() -> Iterator[Method]:
    """Yield the scores of features, with the options of FD-Shifts."""
    knn, vim, react = FITTED["knn"], FITTED["vim"], FITTED["react"]
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
    react_title, react_source = f"ReAct at {_PERCENTILE}%", f"{react.source}; as in {_CODE}"
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
    """Return a method for networks of another objective."""
    prefix, title, ending = _PREFIXES[objective]
    score_title = method.title
    if not score_title.startswith(_PROPER):
        score_title = score_title[0].lower() + score_title[1:]
    return replace(
        method,
        name=prefix + method.name,
        title=f"{title}, {score_title}",
        source=method.source if _CODE in method.source else f"{method.source}; as in {_CODE}",
        objective=objective,
        meaning=method.meaning + ending,
        is_default=False,
    )


def _waic(method: Method) -> Method:
    """Return the mean of a learned confidence over passes minus its standard deviation."""
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
