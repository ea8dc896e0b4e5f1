"""Which parameter of `fit` goes where: to the classifier's own `fit`, or to the splitter."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from abstain.errors import InputError

_SWITCH = "`sklearn.set_config(enable_metadata_routing=True)`"


class Routed(NamedTuple):
    """Parameters by receiver."""

    estimator: Mapping[str, Any]
    splitter: Mapping[str, Any]


def router_of(owner: Any) -> MetadataRouter:
    """Return who may receive the parameters of `fit`, and what `score` asked for itself."""
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    to_split = MethodMapping().add(caller="fit", callee="split")
    router = MetadataRouter(owner=owner).add_self_request(owner)
    router.add(estimator=owner.estimator, method_mapping=to_fit)
    return router.add(splitter=owner.cv, method_mapping=to_split)


def routed(owner: Any, params: Mapping[str, Any]) -> Routed:
    """Send the parameters of `fit` to those that asked for them.

    Without metadata routing only `sample_weight` is known, and goes to the classifier.
    """
    given = {name: value for name, value in params.items() if value is not None}
    if not given:
        return Routed({}, {})
    if get_config()["enable_metadata_routing"]:
        found = process_routing(owner, "fit", **given)
        return Routed(found.estimator.fit, found.splitter.split)
    unknown = sorted(set(given) - {"sample_weight"})
    if unknown:
        msg = f"`fit` takes {unknown[0]!r} only with metadata routing: {_SWITCH}{_by_hand(unknown)}"
        raise InputError(msg)
    if not has_fit_parameter(owner.estimator, "sample_weight"):
        name = type(owner.estimator).__name__
        msg = (
            f"{name}.fit takes no `sample_weight`. Drop it; or, if {name} passes it on to another "
            f"estimator, use metadata routing: {_SWITCH}"
        )
        raise InputError(msg)
    return Routed(given, {})


def _by_hand(names: list[str]) -> str:
    return "; or pass cv=list(splitter.split(X, y, groups))" if names[0] == "groups" else ""
