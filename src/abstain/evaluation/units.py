"""Who is compared on what: methods scored on the same samples, by data set and run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation._alignment import (
    aligned,
    differ,
    in_order_of,
    named_apart,
    names_of,
    paired_by_name,
)
from abstain.evaluation._asked import Asked, scores_of
from abstain.evaluation.evaluate import join, splits_of
from abstain.evaluation.uncertainty import clusters_of
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Split


@dataclass(frozen=True, eq=False)
class Unit:
    """The methods on one data set in one run: the same samples in the same order for all.

    Attributes
    ----------
    data : tuple of (column, value)
        The data set.
    run : str
        The run, or empty.
    scored : mapping from method to Scored
        In the order of the methods.
    names, labels : ndarray of shape (n,) or None
        What tells the samples of one run from those of another.
    cluster : ndarray of shape (n,) or None
        Codes of samples that are not independent, when they are to be used.
    group : ndarray of shape (n,) or None
        The names of these clusters.
    matched : str
        How the samples of several classifiers were matched: by "name" or by "order"; empty for
        one classifier.
    own_weights : bool
        Whether the methods may weigh the samples differently.
    given : frozenset of str
        The methods whose scores are columns of the data.
    """

    data: Split
    run: str
    scored: Mapping[str, Scored]
    names: Array | None
    labels: Array | None
    cluster: IntArray | None
    group: Array | None
    matched: str = ""
    own_weights: bool = False
    given: frozenset[str] = frozenset()

    @property
    def n(self) -> int:
        """Number of samples."""
        return next(iter(self.scored.values())).n

    @cached_property
    def weight(self) -> FloatArray | None:
        """The weights, shape (n,) where they are the same for all methods, else (n, k)."""
        given = [s.weight for s in self.scored.values()]
        own = [np.ones(self.n) if weight is None else weight for weight in given]
        if all(np.array_equal(own[0], weight) for weight in own[1:]):
            return given[0]
        return np.column_stack(own)

    def counted(self, method: str) -> tuple[int, int]:
        """Return how many samples a method is judged by, and how many of them fail."""
        s = self.scored[method]
        if s.weight is None or not self.own_weights:
            return s.n, s.failures
        kept = s.weight > 0
        return int(np.count_nonzero(kept)), int(np.count_nonzero(s.loss[kept]))

    def same_samples(self, other: "Unit") -> bool:
        """Tell whether another run saw these very samples in this order.

        Also where nothing tells them apart: to add up rows of different samples is no mistake,
        while to take the same samples for different ones would make the means look too sure.
        """
        if self.n != other.n or named_apart(self.names, other.names):
            return False
        return not differ(self.labels, other.labels)


def independent(units: Sequence[Unit]) -> IntArray | None:
    """Return codes of what is independent over all rows of the runs of one data set.

    A cluster is the same in every run, and so is a sample; None where every row stands alone.
    """
    first = units[0]
    if len(units) == 1:
        return first.cluster
    if first.group is not None:
        return _coded([unit.group for unit in units])
    if all(first.same_samples(unit) for unit in units[1:]):
        return np.tile(np.arange(first.n), len(units))
    names = [unit.names for unit in units]
    once = all(own is not None and np.unique(own).size == own.size for own in names)
    return _coded(names) if once else None


def _coded(names: Sequence[Array | None]) -> IntArray:
    first = np.asarray(names[0])
    if all(np.array_equal(first, np.asarray(own)) for own in names[1:]):
        codes = np.unique(first, return_inverse=True)[1].astype(np.int64)
        return np.tile(codes, len(names))
    together = np.concatenate([np.asarray(own) for own in names])
    return np.unique(together, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class Roles:
    """What the columns that split the data mean.

    Attributes
    ----------
    runs, methods : str or None
        The column whose values are runs, and the one whose values are methods (classifiers).
    clustered : bool
        Whether the groups of the predictions are clusters.
    own_weights : bool
        Whether the methods may weigh the samples differently.
    """

    runs: str | None = None
    methods: str | None = None
    clustered: bool = False
    own_weights: bool = False


def units_of(
    predictions: Predictions | Mapping[Split, Predictions],
    roles: Roles,
    scores: Asked,
    loss: "str | CostMatrix | AnyArray | None",
) -> tuple[Unit, ...]:
    """Arrange the splits by data set and run, and score every method on the same samples."""
    parts: dict[tuple[Split, str], dict[str, Predictions]] = {}
    for split, part in splits_of(predictions).items():
        data, run, model = _placed(split, roles)
        own = parts.setdefault((data, run), {})
        if model in own:
            msg = f"two parts of the data are {_named(data, run, model)}; split them further"
            raise InputError(msg)
        own[model] = part
    _refuse_one_loss_for_all(loss, parts.values())
    choice = _Choice(scores, loss, roles)
    first: dict[Split, Predictions] = {}
    units = []
    for (data, run), models in parts.items():
        like = first.setdefault(data, next(iter(models.values())))
        ordered = {model: in_order_of(like, part) for model, part in models.items()}
        units.append(_unit(data, run, ordered, choice))
    return _refuse_gaps(units)


def _refuse_one_loss_for_all(
    loss: "str | CostMatrix | AnyArray | None", models_of_each: Iterable[Mapping[str, Predictions]]
) -> None:
    """Refuse an array of losses for several parts, whose rows it cannot all describe."""
    several = sum(map(len, models_of_each)) > 1
    if several and loss is not None and not isinstance(loss, (str, CostMatrix)):
        msg = (
            "`loss` is one array, but there are several runs, methods or data sets; give each "
            "`Predictions` its own `loss`"
        )
        raise InputError(msg)


@dataclass(frozen=True)
class _Choice:
    scores: Asked
    loss: "str | CostMatrix | AnyArray | None"
    roles: Roles


def _placed(split: Split, roles: Roles) -> tuple[Split, str, str]:
    """Take a split apart into data set, run and model."""
    known = dict(split)
    for role, column in (("runs", roles.runs), ("methods", roles.methods)):
        if column is not None and column not in known:
            there = ", ".join(map(repr, known)) or "none"
            msg = (
                f"`{role}` must be a column that splits the data (those are: {there}); "
                f"got {column!r}"
            )
            raise InputError(msg)
    special = {roles.runs, roles.methods} - {None}
    data = tuple((column, value) for column, value in split if column not in special)
    run = known[roles.runs] if roles.runs is not None else ""
    return data, run, known[roles.methods] if roles.methods is not None else ""


def _named(data: Split, run: str, model: str = "") -> str:
    words = [f"{column} = {value}" for column, value in data]
    words += [f"run {run!r}"] if run else []
    words += [f"method {model!r}"] if model else []
    return ", ".join(words) or "all samples"


def _unit(data: Split, run: str, models: Mapping[str, Predictions], choice: _Choice) -> Unit:
    first = next(iter(models.values()))
    clustered, own = choice.roles.clustered, choice.roles.own_weights
    parts = {
        model: aligned(first, part, _named(data, run, model), own_weights=own)
        for model, part in models.items()
    }
    scored: dict[str, Scored] = {}
    given = []
    for model, part in parts.items():
        losses = per_sample_loss(part, choice.loss)
        joined = [(s.name, join(part, s, losses)) for s in scores_of(part, choice.scores)]
        alone = len(joined) == 1
        for name, s in joined:
            method = (model if alone else f"{model} / {name}") if model else name
            scored[method] = s
            given += [method] if name in (part.confidence or {}) else []
    labels = None if first.labels is None else np.asarray(first.labels)
    cluster = _cluster(first, parts) if clustered else None
    group = np.asarray(first.group).astype(str) if clustered else None
    by_name = all(paired_by_name(first, part) for part in parts.values())
    matched = "" if len(parts) == 1 else "name" if by_name else "order"
    names = names_of(first)
    given_names = frozenset(given)
    return Unit(data, run, scored, names, labels, cluster, group, matched, own, given_names)


def _cluster(first: Predictions, parts: Mapping[str, Predictions]) -> IntArray:
    """Return the clusters, which must be the same for all methods."""
    codes = clusters_of(first)
    for model, part in parts.items():
        if part is not first and not np.array_equal(part.group, first.group):
            msg = f"method {model!r} must put the samples into the same groups as the others do"
            raise InputError(msg)
    return codes


def _refuse_gaps(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Return the units with their methods in one order, or refuse those that lack something."""
    methods = list(units[0].scored)
    for unit in units:
        if odd := sorted(set(methods) ^ set(unit.scored)):
            msg = (
                f"every data set and run must have the same methods; {_named(unit.data, unit.run)} "
                f"differs in {', '.join(odd)}. Name the scores to compare."
            )
            raise InputError(msg)
    if len(methods) < 2:
        columns = ", ".join(column for column, _ in units[0].data)
        hint = f" If the values of {columns} are the methods, say so (methods)." if columns else ""
        msg = f"a comparison needs at least two methods; got only {methods[0]!r}.{hint}"
        raise InputError(msg)
    runs: dict[Split, set[str]] = {}
    for unit in units:
        runs.setdefault(unit.data, set()).add(unit.run)
    if len({frozenset(own) for own in runs.values()}) > 1:
        msg = "every data set must have the same runs; some runs are missing for some data sets"
        raise InputError(msg)
    return tuple(replace(unit, scored={m: unit.scored[m] for m in methods}) for unit in units)
