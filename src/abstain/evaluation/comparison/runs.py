"""Score the methods of a comparison on the same samples for each data set and run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abstain._foundation.names import split_name
from abstain._foundation.scored import Scored
from abstain.errors import InputError
from abstain.evaluation.inputs import (
    RequestedScores,
    check_splits,
    compute_scores,
    join,
    positive_weight_runs,
)
from abstain.evaluation.scored_split import cluster_codes
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Split


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """The scores of all methods in one run on one data set, for the same samples."""

    data: Split
    #: Name of the run, or an empty string if there is a single run.
    run: str
    #: The scored samples of each method, in the order of the methods.
    scored: Mapping[str, Scored]
    #: Names that identify the samples, shape (n,).
    sample_names: Array | None
    labels: Array | None
    #: Codes of the clusters of dependent samples, shape (n,), if clusters are used.
    cluster: IntArray | None
    #: Names of the clusters, shape (n,).
    group: Array | None
    #: Whether the samples of several classifiers were matched by "name" or by "order". The value is
    #: an empty string for one classifier.
    matched_by: str = ""
    #: The methods whose scores are columns of the data.
    column_methods: frozenset[str] = frozenset()

    @property
    def n(self) -> int:
        """Number of samples."""
        return next(iter(self.scored.values())).n_rows

    @cached_property
    def weight(self) -> FloatArray | None:
        """Weights of shape (n,), or (n, k) if they differ between the k methods."""
        weights = [s.weight for s in self.scored.values()]
        columns = [np.ones(self.n) if weight is None else weight for weight in weights]
        if all(np.array_equal(columns[0], weight) for weight in columns[1:]):
            return weights[0]
        return np.column_stack(columns)

    @property
    def has_weights_by_method(self) -> bool:
        """Whether the weights differ between methods."""
        return self.weight is not None and self.weight.ndim > 1

    @property
    def min_clusters(self) -> int | None:
        """Smallest number of clusters with positive weight over all methods, if clusters exist."""
        if self.cluster is None:
            return None
        if self.weight is None or not self.has_weights_by_method:
            return int(np.unique(self.cluster).size)
        return min(np.unique(self.cluster[weight > 0]).size for weight in self.weight.T)

    def count_samples_and_failures(self, method: str) -> tuple[int, int]:
        """Return the numbers of samples and failures with positive weight."""
        s = self.scored[method]
        if s.weight is None:
            return s.n_rows, s.n_failures
        is_weighted = s.weight > 0
        return int(np.count_nonzero(is_weighted)), int(np.count_nonzero(s.loss[is_weighted]))

    def has_same_samples(self, other: "ScoredRun") -> bool:
        """Return whether another run has the same samples in the same order.

        If neither names nor labels differ, the samples are assumed to be the same. This assumption
        is conservative, because independent runs have smaller standard errors.
        """
        if self.n != other.n or _have_different_names(self.sample_names, other.sample_names):
            return False
        return not _are_different(self.labels, other.labels)


def independence_codes(runs: Sequence[ScoredRun]) -> IntArray | None:
    """Return an integer code of the cluster or sample of each row, for the rows of all runs.

    A cluster or a sample has the same code in every run. The result is None if all rows are
    independent.
    """
    first = runs[0]
    if len(runs) == 1:
        return first.cluster
    if first.group is not None:
        return _encode_names([run.group for run in runs])
    if have_same_samples(runs):
        return np.tile(np.arange(first.n), len(runs))
    names = [run.sample_names for run in runs]
    are_unique = all(n is not None and np.unique(n).size == n.size for n in names)
    return _encode_names(names) if are_unique else None


def have_same_samples(runs: Sequence[ScoredRun]) -> bool:
    """Return whether all runs have the same samples."""
    return all(runs[0].has_same_samples(run) for run in runs[1:])


def _encode_names(names: Sequence[Array | None]) -> IntArray:
    """Return integer codes of the sample names, concatenated over the runs."""
    first = np.asarray(names[0])
    if all(np.array_equal(first, np.asarray(run_names)) for run_names in names[1:]):
        codes = np.unique(first, return_inverse=True)[1].astype(np.int64)
        return np.tile(codes, len(names))
    all_names = np.concatenate([np.asarray(run_names) for run_names in names])
    return np.unique(all_names, return_inverse=True)[1].astype(np.int64)


def score_runs(
    predictions: Predictions | Mapping[Split, Predictions],
    *,
    runs: str | None = None,
    methods: str | None = None,
    clustered: bool = False,
    per_method_weights: bool = False,
    scores: RequestedScores = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
) -> tuple[ScoredRun, ...]:
    """Return the scored methods of each data set and run, all on the same samples.

    The arguments are those of `compare`.
    """
    splits = check_splits(predictions)
    models_by_run = _group_models_by_run(splits, runs, methods)
    if len(splits) > 1 and loss is not None and not isinstance(loss, str | CostMatrix):
        raise InputError(
            "`loss` is one array, but there are several runs, methods or data sets; give each "
            "`Predictions` its own `loss`"
        )
    reference_by_data: dict[Split, Predictions] = {}
    for (data, run), models in models_by_run.items():
        reference = reference_by_data.setdefault(data, next(iter(models.values())))
        sorted_models = {model: _sort_like(reference, p) for model, p in models.items()}
        models_by_run[data, run] = _align(
            sorted_models, data, run, per_method_weights=per_method_weights
        )
    weighted, loss = positive_weight_runs(models_by_run, loss)
    scored_runs = [
        _score_run(data, run, models, scores, loss, clustered=clustered)
        for (data, run), models in weighted.items()
    ]
    return _check_complete(scored_runs)


def _group_models_by_run(
    splits: Mapping[Split, Predictions], runs: str | None, methods: str | None
) -> dict[tuple[Split, str], dict[str, Predictions]]:
    """Return the predictions of each model, grouped by data set and run."""
    models_by_run: dict[tuple[Split, str], dict[str, Predictions]] = {}
    for split, split_predictions in splits.items():
        data, run, model = _parse_split(split, runs, methods)
        models = models_by_run.setdefault((data, run), {})
        if model in models:
            raise InputError(
                f"two parts of the data are {_describe_run(data, run, model)}; split them further"
            )
        models[model] = split_predictions
    return models_by_run


def _parse_split(split: Split, runs: str | None, methods: str | None) -> tuple[Split, str, str]:
    """Split a key into the data set, the run and the model."""
    values = dict(split)
    for role, column in (("runs", runs), ("methods", methods)):
        if column is not None and column not in values:
            columns = ", ".join(map(repr, values)) or "none"
            raise InputError(
                f"`{role}` must be a column that splits the data (those are: {columns}); "
                f"got {column!r}"
            )
    data = tuple((column, value) for column, value in split if column not in {runs, methods})
    run = "" if runs is None else values[runs]
    return data, run, "" if methods is None else values[methods]


def _describe_run(data: Split, run: str, model: str = "") -> str:
    """Return a text that names a data set, a run and a method in error messages."""
    terms = [split_name(data)] if data else []
    terms += [f"run {run!r}"] if run else []
    terms += [f"method {model!r}"] if model else []
    return ", ".join(terms) or "all samples"


def _score_run(
    data: Split,
    run: str,
    models: Mapping[str, Predictions],
    scores: RequestedScores,
    loss: "str | CostMatrix | AnyArray | None",
    *,
    clustered: bool,
) -> ScoredRun:
    """Return the scores of the methods of one run on the same samples."""
    first = next(iter(models.values()))
    scored: dict[str, Scored] = {}
    column_methods = set()
    for model, p in models.items():
        losses = per_sample_loss(p, loss)
        model_scores = list(compute_scores(p, scores))
        for score in model_scores:
            name = score.name
            if model:
                name = model if len(model_scores) == 1 else f"{model} / {score.name}"
            scored[name] = join(p, score, losses)
            if score.name in (p.confidence or {}):
                column_methods.add(name)
    cluster = cluster_codes(first) if clustered else None
    if clustered:
        _check_equal_groups(models)
    return ScoredRun(
        data=data,
        run=run,
        scored=scored,
        sample_names=_sample_names(first),
        labels=None if first.labels is None else np.asarray(first.labels),
        cluster=cluster,
        group=np.asarray(first.group).astype(str) if clustered else None,
        matched_by=_matching_criterion(models),
        column_methods=frozenset(column_methods),
    )


def _check_equal_groups(models: Mapping[str, Predictions]) -> None:
    """Raise InputError if the models assign the samples to different groups."""
    first = next(iter(models.values()))
    for model, p in models.items():
        if p is not first and not np.array_equal(p.group, first.group):
            raise InputError(
                f"method {model!r} must put the samples into the same groups as the others do"
            )


def _matching_criterion(models: Mapping[str, Predictions]) -> str:
    """Return how the samples of several models were matched: "name", "order" or ""."""
    if len(models) == 1:
        return ""
    names = [_sample_names(p) for p in models.values()]
    for names_of_model in names:
        if names_of_model is None or _are_different(names[0], names_of_model):
            return "order"
    return "name"


def _check_complete(scored_runs: Sequence[ScoredRun]) -> tuple[ScoredRun, ...]:
    """Check that all data sets have the same methods and runs, and sort the methods."""
    first = scored_runs[0]
    methods = list(first.scored)
    for run in scored_runs:
        unmatched = sorted(set(methods) ^ set(run.scored))
        if unmatched:
            raise InputError(
                "every data set and run must have the same methods; "
                f"{_describe_run(run.data, run.run)} differs in {', '.join(unmatched)}. "
                "Name the scores to compare."
            )
    if len(methods) < 2:
        columns = [column for column, _ in first.data]
        hint = ""
        if columns:
            hint = (
                f" To compare the values of {columns[0]!r}, pass methods={columns[0]!r} (command "
                "line: --methods-from)."
            )
        raise InputError(f"a comparison needs at least two methods; got only {methods[0]!r}.{hint}")
    runs_by_data: dict[Split, set[str]] = {}
    for run in scored_runs:
        runs_by_data.setdefault(run.data, set()).add(run.run)
    runs_of_first_data = runs_by_data[first.data]
    if any(runs != runs_of_first_data for runs in runs_by_data.values()):
        raise InputError(
            "every data set must have the same runs; some runs are missing for some data sets"
        )
    return tuple(replace(run, scored={m: run.scored[m] for m in methods}) for run in scored_runs)


# ------------------------------------------------------------------ alignment of the samples
def _are_different(a: Array | None, b: Array | None) -> bool:
    """Return whether two arrays are both available and differ."""
    return a is not None and b is not None and not np.array_equal(a, b)


def _have_different_names(a: Array | None, b: Array | None) -> bool:
    """Return whether the names show that the samples differ.

    Names that are all integers may be row numbers of one file. Without any common integer, the
    samples may still be the same.
    """
    if a is None or b is None or np.array_equal(a, b):
        return False
    are_integers = all(name.isdecimal() for names in (a, b) for name in names)
    return not are_integers or bool(np.isin(a, b).any())


def _sample_names(predictions: Predictions) -> Array | None:
    """Return the names of the samples as text."""
    return None if predictions.ids is None else np.asarray(predictions.ids).astype(str)


def _sort_like(reference: Predictions, predictions: Predictions) -> Predictions:
    """Return the samples in the order of a reference if the names of the samples are the same."""
    rows = _rows_in_order_of(reference, predictions)
    return predictions if rows is None else predictions.subset(rows)


def _rows_in_order_of(reference: Predictions, predictions: Predictions) -> IntArray | None:
    """Return the indices that sort the samples like a reference by their names.

    The result is None if the order is the same, or if the names do not determine an order.
    """
    reference_names, names = _sample_names(reference), _sample_names(predictions)
    if predictions is reference or reference_names is None or names is None:
        return None
    are_permuted = np.array_equal(np.sort(reference_names), np.sort(names))
    if np.array_equal(reference_names, names) or not are_permuted:
        return None
    if np.unique(names).size < names.size:
        return None
    indices = np.empty(names.size, np.int64)
    indices[np.argsort(reference_names)] = np.argsort(names)
    # Row numbers of two files may be equal although the files contain different samples.
    if reference.labels is not None and predictions.labels is not None:
        labels = np.asarray(predictions.labels)[indices]
        if not np.array_equal(np.asarray(reference.labels), labels):
            return None
    return indices


def rows_of_same_samples(reference: Predictions, predictions: Predictions) -> IntArray | None:
    """Return the samples in the order of a reference, or None if they differ.

    The samples are the same if their labels or their names are equal.
    """
    rows = _rows_in_order_of(reference, predictions)
    aligned = predictions if rows is None else predictions.subset(rows)
    if _describe_difference(reference, aligned):
        return None
    first, second = (np.ones(p.n) if p.weight is None else p.weight for p in (reference, aligned))
    if not np.array_equal(first, second):
        return None
    reference_names, names = _sample_names(reference), _sample_names(aligned)
    have_names = reference_names is not None and names is not None
    have_equal_names = have_names and not _are_different(reference_names, names)
    have_labels = reference.labels is not None and aligned.labels is not None
    if not (have_equal_names or have_labels):
        return None
    return np.arange(reference.n) if rows is None else rows


def _align(
    models: Mapping[str, Predictions], data: Split, run: str, *, per_method_weights: bool
) -> dict[str, Predictions]:
    """Return samples in the order of the first model; raise InputError if they differ.

    InputError is also raised if weights differ and `per_method_weights` is False.
    """
    first = next(iter(models.values()))
    aligned = {model: _sort_like(first, p) for model, p in models.items()}
    first_weights = np.ones(first.n) if first.weight is None else first.weight
    for model, p in aligned.items():
        if p is first:
            continue
        subject = _describe_run(data, run, model)
        difference = _describe_difference(first, p)
        if difference:
            raise InputError(
                f"{subject} must hold the same samples as the other methods, so that they can be "
                f"compared in pairs; {difference}. Name the samples by an id column, or compare "
                "data sets apart."
            )
        weights = np.ones(p.n) if p.weight is None else p.weight
        if not per_method_weights and not np.array_equal(first_weights, weights):
            raise InputError(
                f"{subject} must give the samples the same weights as the other methods do; they "
                f"differ, first in row {int(np.argmax(first_weights != weights))}. Where each "
                "method leaves out samples of its own (weight 0), pass `per_method_weights=True`."
            )
    return aligned


def _describe_difference(first: Predictions, predictions: Predictions) -> str:
    """Return a text that describes how the samples of two methods differ, or an empty string."""
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
