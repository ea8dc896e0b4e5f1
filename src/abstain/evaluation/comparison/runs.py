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
    #: Shape (n,). Names that identify the samples.
    sample_names: Array | None
    labels: Array | None
    #: Shape (n,). Codes of the clusters of dependent samples, if clusters are used.
    cluster: IntArray | None
    #: Shape (n,). Names of the clusters.
    group: Array | None
    #: How the samples of several classifiers were matched: by "name" or by "order"; empty for one
    #: classifier.
    matched_by: str = ""
    #: Whether sample weights may differ between methods.
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
        weights = [s.weight for s in self.scored.values()]
        columns = [np.ones(self.n) if weight is None else weight for weight in weights]
        if all(np.array_equal(columns[0], weight) for weight in columns[1:]):
            return weights[0]
        return np.column_stack(columns)

    def count_samples_and_failures(self, method: str) -> tuple[int, int]:
        """Return the numbers of samples and failures with positive weight of a method."""
        s = self.scored[method]
        if s.weight is None:
            return s.n_rows, s.n_failures
        is_weighted = s.weight > 0
        return int(np.count_nonzero(is_weighted)), int(np.count_nonzero(s.loss[is_weighted]))

    def has_same_samples(self, other: "ScoredRun") -> bool:
        """Return whether another run has the same samples in the same order.

        Also true if neither names nor labels show a difference: to treat different samples as the
        same is harmless, but to treat the same samples as different makes standard errors of the
        means too small.
        """
        if self.n != other.n or _have_different_names(self.sample_names, other.sample_names):
            return False
        return not _are_different(self.labels, other.labels)


def independence_codes(units: Sequence[ScoredRun]) -> IntArray | None:
    """Return the code of the independent unit of each row, over all runs of one data set.

    A cluster, or a sample, has the same code in every run. None if all rows are independent.
    """
    first = units[0]
    if len(units) == 1:
        return first.cluster
    if first.group is not None:
        return _encode_names([unit.group for unit in units])
    if have_same_samples(units):
        return np.tile(np.arange(first.n), len(units))
    names = [unit.sample_names for unit in units]
    are_unique = all(n is not None and np.unique(n).size == n.size for n in names)
    return _encode_names(names) if are_unique else None


def have_same_samples(units: Sequence[ScoredRun]) -> bool:
    """Return whether all runs have the same samples."""
    return all(units[0].has_same_samples(unit) for unit in units[1:])


def _encode_names(names: Sequence[Array | None]) -> IntArray:
    first = np.asarray(names[0])
    if all(np.array_equal(first, np.asarray(run_names)) for run_names in names[1:]):
        codes = np.unique(first, return_inverse=True)[1].astype(np.int64)
        return np.tile(codes, len(names))
    all_names = np.concatenate([np.asarray(run_names) for run_names in names])
    return np.unique(all_names, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class SplitRoles:
    """Meaning of the split columns, and the options of the scores."""

    #: The column whose values are runs, and the one whose values are methods (classifiers).
    runs: str | None = None
    methods: str | None = None
    #: Whether the groups of the predictions are clusters.
    clustered: bool = False
    #: Whether sample weights may differ between methods.
    per_method_weights: bool = False
    #: Scores of each split, as for `evaluate`.
    scores: RequestedScores = None
    loss: "str | CostMatrix | AnyArray | None" = None


def score_runs(
    predictions: Predictions | Mapping[Split, Predictions], roles: SplitRoles
) -> tuple[ScoredRun, ...]:
    """Group the splits by data set and run, and score every method on the same samples."""
    models_by_run: dict[tuple[Split, str], dict[str, Predictions]] = {}
    for split, split_predictions in check_splits(predictions).items():
        data, run, model = _parse_split(split, roles)
        run_models = models_by_run.setdefault((data, run), {})
        if model in run_models:
            raise InputError(
                f"two parts of the data are {_describe_run(data, run, model)}; split them further"
            )
        run_models[model] = split_predictions
    _check_loss(roles.loss, models_by_run.values())
    first: dict[Split, Predictions] = {}
    aligned: dict[tuple[Split, str], dict[str, Predictions]] = {}
    for (data, run), models in models_by_run.items():
        data_reference = first.setdefault(data, next(iter(models.values())))
        ordered = {model: _sort_like(data_reference, p) for model, p in models.items()}
        reference = next(iter(ordered.values()))
        aligned[data, run] = {
            model: _align(
                reference,
                p,
                _describe_run(data, run, model),
                per_method_weights=roles.per_method_weights,
            )
            for model, p in ordered.items()
        }
    weighted, loss = positive_weight_runs(aligned, roles.loss)
    units = [
        _score_run(data, run, models, replace(roles, loss=loss))
        for (data, run), models in weighted.items()
    ]
    return _check_complete(units)


def _check_loss(
    loss: "str | CostMatrix | AnyArray | None", models_by_run: Iterable[Mapping[str, Predictions]]
) -> None:
    """Raise InputError if one array of losses is passed for several splits."""
    has_several = sum(map(len, models_by_run)) > 1
    if has_several and loss is not None and not isinstance(loss, (str, CostMatrix)):
        raise InputError(
            "`loss` is one array, but there are several runs, methods or data sets; give each "
            "`Predictions` its own `loss`"
        )


def _parse_split(split: Split, roles: SplitRoles) -> tuple[Split, str, str]:
    """Split a key into data set, run and model."""
    values = dict(split)
    for role, column in (("runs", roles.runs), ("methods", roles.methods)):
        if column is not None and column not in values:
            columns = ", ".join(map(repr, values)) or "none"
            raise InputError(
                f"`{role}` must be a column that splits the data (those are: {columns}); "
                f"got {column!r}"
            )
    special = {roles.runs, roles.methods} - {None}
    data = tuple((column, value) for column, value in split if column not in special)
    run = values[roles.runs] if roles.runs is not None else ""
    return data, run, values[roles.methods] if roles.methods is not None else ""


def _describe_run(data: Split, run: str, model: str = "") -> str:
    terms = [split_name(data)] if data else []
    terms += [f"run {run!r}"] if run else []
    terms += [f"method {model!r}"] if model else []
    return ", ".join(terms) or "all samples"


def _score_run(
    data: Split, run: str, models: Mapping[str, Predictions], roles: SplitRoles
) -> ScoredRun:
    """Score the methods of one run on the same samples."""
    first = next(iter(models.values()))
    scored: dict[str, Scored] = {}
    column_methods = []
    for model, p in models.items():
        losses = per_sample_loss(p, roles.loss)
        model_scores = [(s.name, join(p, s, losses)) for s in compute_scores(p, roles.scores)]
        has_one_score = len(model_scores) == 1
        for name, s in model_scores:
            method = (model if has_one_score else f"{model} / {name}") if model else name
            scored[method] = s
            column_methods += [method] if name in (p.confidence or {}) else []
    is_matched_by_name = all(_have_same_names(first, p) for p in models.values())
    return ScoredRun(
        data=data,
        run=run,
        scored=scored,
        sample_names=_sample_names(first),
        labels=None if first.labels is None else np.asarray(first.labels),
        cluster=_check_clusters(first, models) if roles.clustered else None,
        group=np.asarray(first.group).astype(str) if roles.clustered else None,
        matched_by="" if len(models) == 1 else "name" if is_matched_by_name else "order",
        per_method_weights=roles.per_method_weights,
        column_methods=frozenset(column_methods),
    )


def _check_clusters(first: Predictions, models: Mapping[str, Predictions]) -> IntArray:
    """Return the clusters, which must be the same for all methods."""
    codes = cluster_codes(first)
    for model, p in models.items():
        if p is not first and not np.array_equal(p.group, first.group):
            raise InputError(
                f"method {model!r} must put the samples into the same groups as the others do"
            )
    return codes


def _check_complete(units: Sequence[ScoredRun]) -> tuple[ScoredRun, ...]:
    """Check that all runs have the same methods and all data sets the same runs."""
    methods = list(units[0].scored)
    for unit in units:
        if unmatched := sorted(set(methods) ^ set(unit.scored)):
            raise InputError(
                "every data set and run must have the same methods; "
                f"{_describe_run(unit.data, unit.run)} differs in {', '.join(unmatched)}. "
                "Name the scores to compare."
            )
    if len(methods) < 2:
        columns = ", ".join(column for column, _ in units[0].data)
        hint = f" If the values of {columns} are the methods, say so (methods)." if columns else ""
        raise InputError(f"a comparison needs at least two methods; got only {methods[0]!r}.{hint}")
    runs: dict[Split, set[str]] = {}
    for unit in units:
        runs.setdefault(unit.data, set()).add(unit.run)
    if len({frozenset(names) for names in runs.values()}) > 1:
        raise InputError(
            "every data set must have the same runs; some runs are missing for some data sets"
        )
    return tuple(replace(unit, scored={m: unit.scored[m] for m in methods}) for unit in units)


# ------------------------------------------------------------------ alignment of the samples
def _are_different(a: Array | None, b: Array | None) -> bool:
    """Return whether both arrays are available and different."""
    return a is not None and b is not None and not np.array_equal(a, b)


def _have_different_names(a: Array | None, b: Array | None) -> bool:
    """Return whether the names show that the samples differ.

    Disjoint sets of integers do not, because they are row numbers of one file.
    """
    if a is None or b is None or np.array_equal(a, b):
        return False
    are_integers = all(name.isdecimal() for names in (a, b) for name in names)
    return not are_integers or bool(np.isin(a, b).any())


def _sample_names(predictions: Predictions) -> Array | None:
    """Return the names of the samples as text."""
    return None if predictions.ids is None else np.asarray(predictions.ids).astype(str)


def _sort_like(first: Predictions, predictions: Predictions) -> Predictions:
    """Sort samples into the order of a reference if both have the same names."""
    first_names, names = _sample_names(first), _sample_names(predictions)
    if (
        predictions is first
        or first_names is None
        or names is None
        or first_names.size != names.size
    ):
        return predictions
    if np.array_equal(first_names, names):
        return predictions
    if np.unique(first_names).size < first_names.size or not np.array_equal(
        np.sort(first_names), np.sort(names)
    ):
        return predictions
    rows = np.empty(first_names.size, np.int64)
    rows[np.argsort(first_names)] = np.argsort(names)
    ordered = predictions.subset(rows)
    # Row numbers of two files may be equal although the samples differ.
    return predictions if _are_different(first.labels, ordered.labels) else ordered


def _align(
    first: Predictions, predictions: Predictions, name: str, *, per_method_weights: bool = False
) -> Predictions:
    """Return samples in the order of the reference; raise InputError if they are different samples.

    The weights must also be the same, unless `per_method_weights` is true.
    """
    if predictions is first:
        return predictions
    predictions = _sort_like(first, predictions)
    difference = _describe_difference(first, predictions)
    if difference:
        raise InputError(
            f"{name} must hold the same samples as the other methods, so that they can be "
            f"compared in pairs; {difference}. Name the samples by an id column, or compare "
            "data sets apart."
        )
    first_weights, weights = (
        np.ones(p.n) if p.weight is None else p.weight for p in (first, predictions)
    )
    if not per_method_weights and not np.array_equal(first_weights, weights):
        raise InputError(
            f"{name} must give the samples the same weights as the other methods do; they differ, "
            f"first in row {int(np.argmax(first_weights != weights))}. Where each method "
            "leaves out samples of its own (weight 0), pass `per_method_weights=True`."
        )
    return predictions


def _describe_difference(first: Predictions, predictions: Predictions) -> str:
    """Return the difference between the samples of two methods as text, or an empty string."""
    if predictions.n != first.n:
        return f"got {predictions.n:,} and {first.n:,} samples"
    first_names, names = _sample_names(first), _sample_names(predictions)
    if first_names is not None and names is not None and _have_different_names(first_names, names):
        if np.unique(first_names).size < first_names.size:
            return "several samples have the same name, and the order of the names differs"
        missing = np.setdiff1d(first_names, names)
        return f"the sample {str(missing[0])!r} is not among them" if missing.size else ""
    if _are_different(first.labels, predictions.labels):
        row = int(np.argmax(np.asarray(first.labels) != np.asarray(predictions.labels)))
        return f"the labels differ, first in row {row}"
    return ""


def _have_same_names(first: Predictions, predictions: Predictions) -> bool:
    """Return whether aligned samples have the same names."""
    first_names, names = _sample_names(first), _sample_names(predictions)
    return first_names is not None and names is not None and np.array_equal(first_names, names)
