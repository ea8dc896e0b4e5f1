"""Runs of a comparison: methods scored on the same samples, by data set and run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation.names import split_name
from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.inputs import RequestedScores, check_splits, compute_scores, join
from abstain.evaluation.positive_weights import positive_weight_runs
from abstain.evaluation.scored_split import cluster_codes
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Split


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """The methods on one data set in one run, with the same samples in the same order."""

    data: Split
    #: The run, or empty.
    run: str
    #: In the order of the methods.
    scored: Mapping[str, Scored]
    #: Shape (n,). What tells the samples of one run from those of another.
    sample_names: Array | None
    labels: Array | None
    #: Shape (n,). Codes of samples that are not independent, when they are to be used.
    cluster: IntArray | None
    #: Shape (n,). The names of these clusters.
    group: Array | None
    #: How the samples of several classifiers were matched: by "name" or by "order"; empty for one
    #: classifier.
    matched_by: str = ""
    #: Whether the methods may weigh the samples differently.
    per_method_weights: bool = False
    #: The methods whose scores are columns of the data.
    column_methods: frozenset[str] = frozenset()

    @property
    def n(self) -> int:
        """Number of samples."""
        return next(iter(self.scored.values())).n_rows

    @cached_property
    def weight(self) -> FloatArray | None:
        """The weights, shape (n,) where they are the same for all methods, else (n, k)."""
        given = [s.weight for s in self.scored.values()]
        own = [np.ones(self.n) if weight is None else weight for weight in given]
        if all(np.array_equal(own[0], weight) for weight in own[1:]):
            return given[0]
        return np.column_stack(own)

    def count_samples_and_failures(self, method: str) -> tuple[int, int]:
        """Return how many samples a method is judged by, and how many of them fail."""
        s = self.scored[method]
        if s.weight is None:
            return s.n_rows, s.n_failures
        kept = s.weight > 0
        return int(np.count_nonzero(kept)), int(np.count_nonzero(s.loss[kept]))

    def has_same_samples(self, other: "ScoredRun") -> bool:
        """Tell whether another run saw these very samples in this order.

        Also where nothing tells them apart: to add up rows of different samples is no mistake,
        while to take the same samples for different ones would make the means look too sure.
        """
        if self.n != other.n or _named_apart(self.sample_names, other.sample_names):
            return False
        return not _differ(self.labels, other.labels)


def independence_codes(units: Sequence[ScoredRun]) -> IntArray | None:
    """Return the code of the independent unit of each row, over all runs of one data set.

    A cluster, or a sample, has the same code in every run. None if all rows are independent.
    """
    first = units[0]
    if len(units) == 1:
        return first.cluster
    if first.group is not None:
        return _coded([unit.group for unit in units])
    if have_same_samples(units):
        return np.tile(np.arange(first.n), len(units))
    names = [unit.sample_names for unit in units]
    once = all(own is not None and np.unique(own).size == own.size for own in names)
    return _coded(names) if once else None


def have_same_samples(units: Sequence[ScoredRun]) -> bool:
    """Return whether all runs have the same samples."""
    return all(units[0].has_same_samples(unit) for unit in units[1:])


def _coded(names: Sequence[Array | None]) -> IntArray:
    first = np.asarray(names[0])
    if all(np.array_equal(first, np.asarray(own)) for own in names[1:]):
        codes = np.unique(first, return_inverse=True)[1].astype(np.int64)
        return np.tile(codes, len(names))
    together = np.concatenate([np.asarray(own) for own in names])
    return np.unique(together, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class SplitRoles:
    """Meaning of the split columns, and the options of the scores."""

    #: The column whose values are runs, and the one whose values are methods (classifiers).
    runs: str | None = None
    methods: str | None = None
    #: Whether the groups of the predictions are clusters.
    clustered: bool = False
    #: Whether the methods may weigh the samples differently.
    per_method_weights: bool = False
    #: Of every part, as for `evaluate`.
    scores: RequestedScores = None
    loss: "str | CostMatrix | AnyArray | None" = None


def score_runs(
    predictions: Predictions | Mapping[Split, Predictions], roles: SplitRoles
) -> tuple[ScoredRun, ...]:
    """Group the splits by data set and run, and score every method on the same samples."""
    parts: dict[tuple[Split, str], dict[str, Predictions]] = {}
    for split, part in check_splits(predictions).items():
        data, run, model = _placed(split, roles)
        own = parts.setdefault((data, run), {})
        if model in own:
            raise InputError(
                f"two parts of the data are {_named(data, run, model)}; split them further"
            )
        own[model] = part
    _refuse_one_loss_for_all(roles.loss, parts.values())
    first: dict[Split, Predictions] = {}
    aligned: dict[tuple[Split, str], dict[str, Predictions]] = {}
    for (data, run), models in parts.items():
        like = first.setdefault(data, next(iter(models.values())))
        ordered = {model: _in_order_of(like, part) for model, part in models.items()}
        reference = next(iter(ordered.values()))
        aligned[data, run] = {
            model: _aligned(
                reference, part, _named(data, run, model), own_weights=roles.per_method_weights
            )
            for model, part in ordered.items()
        }
    counted, loss = positive_weight_runs(aligned, roles.loss)
    units = [
        _unit(data, run, models, replace(roles, loss=loss))
        for (data, run), models in counted.items()
    ]
    return _refuse_gaps(units)


def _refuse_one_loss_for_all(
    loss: "str | CostMatrix | AnyArray | None", models_of_each: Iterable[Mapping[str, Predictions]]
) -> None:
    """Refuse an array of losses for several parts, whose rows it cannot all describe."""
    several = sum(map(len, models_of_each)) > 1
    if several and loss is not None and not isinstance(loss, (str, CostMatrix)):
        raise InputError(
            "`loss` is one array, but there are several runs, methods or data sets; give each "
            "`Predictions` its own `loss`"
        )


def _placed(split: Split, roles: SplitRoles) -> tuple[Split, str, str]:
    """Take a split apart into data set, run and model."""
    known = dict(split)
    for role, column in (("runs", roles.runs), ("methods", roles.methods)):
        if column is not None and column not in known:
            there = ", ".join(map(repr, known)) or "none"
            raise InputError(
                f"`{role}` must be a column that splits the data (those are: {there}); "
                f"got {column!r}"
            )
    special = {roles.runs, roles.methods} - {None}
    data = tuple((column, value) for column, value in split if column not in special)
    run = known[roles.runs] if roles.runs is not None else ""
    return data, run, known[roles.methods] if roles.methods is not None else ""


def _named(data: Split, run: str, model: str = "") -> str:
    words = [split_name(data)] if data else []
    words += [f"run {run!r}"] if run else []
    words += [f"method {model!r}"] if model else []
    return ", ".join(words) or "all samples"


def _unit(data: Split, run: str, parts: Mapping[str, Predictions], roles: SplitRoles) -> ScoredRun:
    """Score the methods of one run on the same samples."""
    first = next(iter(parts.values()))
    scored: dict[str, Scored] = {}
    given = []
    for model, part in parts.items():
        losses = per_sample_loss(part, roles.loss)
        joined = [(s.name, join(part, s, losses)) for s in compute_scores(part, roles.scores)]
        alone = len(joined) == 1
        for name, s in joined:
            method = (model if alone else f"{model} / {name}") if model else name
            scored[method] = s
            given += [method] if name in (part.confidence or {}) else []
    by_name = all(_paired_by_name(first, part) for part in parts.values())
    return ScoredRun(
        data=data,
        run=run,
        scored=scored,
        sample_names=_names_of(first),
        labels=None if first.labels is None else np.asarray(first.labels),
        cluster=_cluster(first, parts) if roles.clustered else None,
        group=np.asarray(first.group).astype(str) if roles.clustered else None,
        matched_by="" if len(parts) == 1 else "name" if by_name else "order",
        per_method_weights=roles.per_method_weights,
        column_methods=frozenset(given),
    )


def _cluster(first: Predictions, parts: Mapping[str, Predictions]) -> IntArray:
    """Return the clusters, which must be the same for all methods."""
    codes = cluster_codes(first)
    for model, part in parts.items():
        if part is not first and not np.array_equal(part.group, first.group):
            raise InputError(
                f"method {model!r} must put the samples into the same groups as the others do"
            )
    return codes


def _refuse_gaps(units: Sequence[ScoredRun]) -> tuple[ScoredRun, ...]:
    """Check that all runs have the same methods and all data sets the same runs."""
    methods = list(units[0].scored)
    for unit in units:
        if odd := sorted(set(methods) ^ set(unit.scored)):
            raise InputError(
                f"every data set and run must have the same methods; {_named(unit.data, unit.run)} "
                f"differs in {', '.join(odd)}. Name the scores to compare."
            )
    if len(methods) < 2:
        columns = ", ".join(column for column, _ in units[0].data)
        hint = f" If the values of {columns} are the methods, say so (methods)." if columns else ""
        raise InputError(f"a comparison needs at least two methods; got only {methods[0]!r}.{hint}")
    runs: dict[Split, set[str]] = {}
    for unit in units:
        runs.setdefault(unit.data, set()).add(unit.run)
    if len({frozenset(own) for own in runs.values()}) > 1:
        raise InputError(
            "every data set must have the same runs; some runs are missing for some data sets"
        )
    return tuple(replace(unit, scored={m: unit.scored[m] for m in methods}) for unit in units)


# -------------------------------------------- the same samples in one order, by their names
def _differ(one: Array | None, two: Array | None) -> bool:
    """Return whether both arrays are available and different."""
    return one is not None and two is not None and not np.array_equal(one, two)


def _named_apart(one: Array | None, two: Array | None) -> bool:
    """Return whether the names show that the samples differ.

    Disjoint sets of integers do not, because they are row numbers of one file.
    """
    if one is None or two is None or np.array_equal(one, two):
        return False
    numbers = all(all(name.isdecimal() for name in own) for own in (one, two))
    return not numbers or bool(np.isin(one, two).any())


def _names_of(part: Predictions) -> Array | None:
    """Return the names of the samples as text."""
    return None if part.ids is None else np.asarray(part.ids).astype(str)


def _in_order_of(first: Predictions, part: Predictions) -> Predictions:
    """Sort samples into the order of a reference if both have the same names."""
    mine, theirs = _names_of(first), _names_of(part)
    if part is first or mine is None or theirs is None or mine.size != theirs.size:
        return part
    if np.array_equal(mine, theirs):
        return part
    if np.unique(mine).size < mine.size or not np.array_equal(np.sort(mine), np.sort(theirs)):
        return part
    rows = np.empty(mine.size, np.int64)
    rows[np.argsort(mine)] = np.argsort(theirs)
    ordered = part.subset(rows)
    # Names that are row numbers of two files may be the same for other samples.
    return part if _differ(first.labels, ordered.labels) else ordered


def _aligned(
    first: Predictions, part: Predictions, name: str, *, own_weights: bool = False
) -> Predictions:
    """Return samples in the order of the reference; raise InputError if they are different samples.

    The weights must be the same as well, unless they may differ between methods.
    """
    if part is first:
        return part
    part = _in_order_of(first, part)
    why = _why_not_the_same(first, part)
    if why:
        raise InputError(
            f"{name} must hold the same samples as the other methods, so that they can be "
            f"compared in pairs; {why}. Name the samples by an id column, or compare data sets "
            "apart."
        )
    mine, theirs = (np.ones(p.n) if p.weight is None else p.weight for p in (first, part))
    if not own_weights and not np.array_equal(mine, theirs):
        raise InputError(
            f"{name} must give the samples the same weights as the other methods do; they differ, "
            f"first in row {int(np.argmax(mine != theirs))}. Where each method leaves out samples "
            "of its own (weight 0), pass `per_method_weights=True`."
        )
    return part


def _why_not_the_same(first: Predictions, part: Predictions) -> str:
    """Return the difference between the samples of two methods as text, or an empty string."""
    if part.n != first.n:
        return f"got {part.n:,} and {first.n:,} samples"
    mine, theirs = _names_of(first), _names_of(part)
    if mine is not None and theirs is not None and _named_apart(mine, theirs):
        if np.unique(mine).size < mine.size:
            return "several samples have the same name, and the order of the names differs"
        missing = np.setdiff1d(mine, theirs)
        return f"the sample {str(missing[0])!r} is not among them" if missing.size else ""
    if _differ(first.labels, part.labels):
        row = int(np.argmax(np.asarray(first.labels) != np.asarray(part.labels)))
        return f"the labels differ, first in row {row}"
    return ""


def _paired_by_name(first: Predictions, part: Predictions) -> bool:
    """Return whether aligned samples have the same names."""
    mine, theirs = _names_of(first), _names_of(part)
    return mine is not None and theirs is not None and np.array_equal(mine, theirs)
