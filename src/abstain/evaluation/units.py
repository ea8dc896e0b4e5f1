"""Who is compared on what: methods scored on the same samples, by data set and run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.evaluate import join, scores_of, splits_of
from abstain.evaluation.uncertainty import clusters_of
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, IntArray, Split


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
    """

    data: Split
    run: str
    scored: Mapping[str, Scored]
    names: Array | None
    labels: Array | None
    cluster: IntArray | None
    group: Array | None

    @property
    def n(self) -> int:
        """Number of samples."""
        return next(iter(self.scored.values())).n

    def same_samples(self, other: "Unit") -> bool:
        """Tell whether another run saw these very samples in this order.

        Also where nothing tells them apart: to add up rows of different samples is no mistake,
        while to take the same samples for different ones would make the means look too sure.
        """
        if self.n != other.n or _named_apart(self.names, other.names):
            return False
        return not _differ(self.labels, other.labels)


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
    together = np.concatenate([np.asarray(own) for own in names])
    return np.unique(together, return_inverse=True)[1].astype(np.int64)


def _differ(one: Array | None, two: Array | None) -> bool:
    """Tell whether both are known and not the same."""
    return one is not None and two is not None and not np.array_equal(one, two)


def _named_apart(one: Array | None, two: Array | None) -> bool:
    """Tell whether names say that samples differ.

    Whole numbers without any in common do not: they number the rows of one file.
    """
    if one is None or two is None or np.array_equal(one, two):
        return False
    numbers = all(all(name.isdecimal() for name in own) for own in (one, two))
    return not numbers or bool(np.isin(one, two).any())


@dataclass(frozen=True)
class Roles:
    """What the columns that split the data mean.

    Attributes
    ----------
    runs, methods : str or None
        The column whose values are runs, and the one whose values are methods (classifiers).
    clustered : bool
        Whether the groups of the predictions are clusters.
    """

    runs: str | None = None
    methods: str | None = None
    clustered: bool = False


def units_of(
    predictions: Predictions | Mapping[Split, Predictions],
    roles: Roles,
    scores: Sequence[str] | None,
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
    choice = _Choice(scores, loss, roles.clustered)
    first: dict[Split, Predictions] = {}
    units = []
    for (data, run), models in parts.items():
        like = first.setdefault(data, next(iter(models.values())))
        ordered = {model: _in_order_of(like, part) for model, part in models.items()}
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
    scores: Sequence[str] | None
    loss: "str | CostMatrix | AnyArray | None"
    clustered: bool


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
    aligned = {
        model: _aligned(first, part, _named(data, run, model)) for model, part in models.items()
    }
    scored: dict[str, Scored] = {}
    for model, part in aligned.items():
        losses = per_sample_loss(part, choice.loss)
        own = [(s.name, join(part, s, losses)) for s in scores_of(part, choice.scores)]
        alone = len(own) == 1
        for name, s in own:
            scored[(model if alone else f"{model} / {name}") if model else name] = s
    labels = None if first.labels is None else np.asarray(first.labels)
    cluster = clusters_of(first) if choice.clustered else None
    group = np.asarray(first.group).astype(str) if choice.clustered else None
    return Unit(data, run, scored, _names_of(first), labels, cluster, group)


def _names_of(part: Predictions) -> Array | None:
    return None if part.ids is None else np.asarray(part.ids).astype(str)


def _in_order_of(first: Predictions, part: Predictions) -> Predictions:
    """Put samples into the order of the first part where the names of both are the same."""
    mine, theirs = _names_of(first), _names_of(part)
    if part is first or mine is None or theirs is None or mine.size != theirs.size:
        return part
    if np.unique(mine).size < mine.size or not np.array_equal(np.sort(mine), np.sort(theirs)):
        return part
    rows = np.empty(mine.size, np.int64)
    rows[np.argsort(mine)] = np.argsort(theirs)
    ordered = part.subset(rows)
    # Names that are row numbers of two files may be the same for other samples.
    return part if _differ(first.labels, ordered.labels) else ordered


def _aligned(first: Predictions, part: Predictions, name: str) -> Predictions:
    """Put the samples of a part into the order of the first, by their names where they have."""
    if part is first:
        return part
    part = _in_order_of(first, part)
    apart = _differ(first.labels, part.labels) or _named_apart(_names_of(first), _names_of(part))
    if part.n != first.n or apart:
        msg = (
            f"{name} must hold the same samples as the other methods, so that they can be "
            f"compared in pairs; got {part.n} and {first.n} samples that do not match in name or "
            "in order and label. Name the samples by an id column, or compare data sets apart."
        )
        raise InputError(msg)
    mine, theirs = (np.ones(p.n) if p.weight is None else p.weight for p in (first, part))
    if not np.array_equal(mine, theirs):
        msg = f"{name} must give the samples the same weights as the other methods do"
        raise InputError(msg)
    return part


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
        msg = f"a comparison needs at least two methods; got only {methods[0]!r}"
        raise InputError(msg)
    runs: dict[Split, set[str]] = {}
    for unit in units:
        runs.setdefault(unit.data, set()).add(unit.run)
    if len({frozenset(own) for own in runs.values()}) > 1:
        msg = "every data set must have the same runs; some runs are missing for some data sets"
        raise InputError(msg)
    return tuple(replace(unit, scored={m: unit.scored[m] for m in methods}) for unit in units)
