"""`Method`: a confidence score of one kind of network, and how several are fitted and computed.

A method that cannot be fitted or computed does not stop the others.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue, match_spelling
from abstain.confidence import ScoreState, score
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

ValueT = TypeVar("ValueT")

#: Inputs that a method can need, by the names of `abstain.confidence.ScoreNeed` where it has them,
#: and the words for a missing one.
NEEDS: dict[str, str] = {
    "features": "the inputs of the last layer (`features`)",
    "samples": "passes with dropout on (`samples`)",
    "learned": "the confidence that the objective learned (`confidence`)",
    "last_layer": "the last layer (`weight` and `bias`)",
    "ensemble": "outputs of several networks (`ensemble_outputs`)",
}

#: Splits that a method can be fitted on; the empty text stands for none.
FITTED_ON = ("", "train", "validation", "train and validation")


@dataclass(frozen=True, eq=False)
class FitData:
    """Outputs of one network that methods are fitted on; never those of test pictures.

    Attributes
    ----------
    train : abstain.Predictions, optional
        For the pictures that the network was trained on.
    validation : abstain.Predictions, optional
        For i.i.d. pictures that it was not trained on.
    weight : ndarray of shape (K, d), optional
        Weight of the last layer.
    bias : ndarray of shape (K,), optional
        Bias of the last layer.
    """

    train: Predictions | None = None
    validation: Predictions | None = None
    weight: Array | None = None
    bias: Array | None = None

    def split(self, name: str) -> Predictions:
        """Return the outputs of "train" or "validation", for the pictures of known classes.

        Raises
        ------
        MissingInputError
            There are none.
        """
        outputs: Predictions | None = getattr(self, name)
        if outputs is None:
            raise MissingInputError(f"there are no outputs for the {name} pictures; give `{name}`")
        is_known = outputs.label_codes >= 0
        return outputs if is_known.all() else outputs.subset(is_known)


@dataclass(frozen=True)
class Method:
    """A confidence score of the networks of one training objective.

    Attributes
    ----------
    name : str
        The name scripts and tables use.
    title : str
        The name people read.
    source : str
        Where it is defined.
    objective : str
        The name of the networks' training objective in `abstain.training.OBJECTIVES`.
    needs : frozenset of str
        Of the names in `NEEDS`. Class logits are always there.
    score : str or callable
        The name of a score that `abstain.confidence.score` takes: one of `SCORES`, or a column of
        learned confidences. Or a function that fits one: from `FitData` to a `ScoreState`.
    fitted_on : str
        "train", "validation" or "train and validation": the splits that `score` uses; empty where
        nothing is fitted.
    meaning : str
        What the confidence is, in a few words.
    same_as : str
        The name of the method of which this is another name, as papers have it; empty for most.
        Its numbers are the same, so it is computed only where it is requested.
    is_default : bool
        Whether trained networks are scored by it unless other methods are named. Imported
        networks are scored by every method of their objective.

    Raises
    ------
    InputError
        A need or a split that does not exist, or a method of ensembles that is fitted.
    """

    name: str
    title: str
    source: str
    objective: str
    needs: frozenset[str]
    score: str | Callable[[FitData], ScoreState]
    fitted_on: str = ""
    meaning: str = ""
    same_as: str = ""
    is_default: bool = True

    def __post_init__(self) -> None:
        checks.one_of(self.fitted_on, "fitted_on", FITTED_ON)
        for need in sorted(self.needs):
            if need not in NEEDS:
                listed = ", ".join(map(repr, NEEDS))
                raise InputError(
                    f"`needs` of the method {self.name!r} must be of {listed}; got {need!r}"
                )

        if self.fitted_on and "ensemble" in self.needs:
            # The only outputs of an ensemble are those that it is evaluated on.
            raise InputError(
                f"a method of ensembles must not be fitted; {self.name!r} is, on "
                f"{self.fitted_on!r}. Leave `fitted_on` empty"
            )

    @property
    def averages(self) -> bool:
        """Whether its confidences are about the mean prediction of passes or networks."""
        return not self.needs.isdisjoint({"samples", "ensemble"})

    @property
    def fitted_splits(self) -> tuple[str, ...]:
        """The splits that it is fitted on."""
        return tuple(self.fitted_on.split(" and ")) if self.fitted_on else ()

    def missing_to_fit(self, data: FitData) -> str:
        """Return which inputs are missing to fit it, or an empty string."""
        missing = []
        if "last_layer" in self.needs and (data.weight is None or data.bias is None):
            missing.append(NEEDS["last_layer"])
        for name in self.fitted_splits:
            outputs: Predictions | None = getattr(data, name)
            if outputs is None:
                missing.append(f"outputs for the {name} pictures")
            elif "features" in self.needs and outputs.features is None:
                missing.append(f"{NEEDS['features']} of the {name} pictures")
        return f"the method {self.name!r} needs {'; '.join(missing)}" if missing else ""

    def missing_to_score(self, outputs: Predictions) -> str:
        """Return which inputs the outputs lack, or an empty string."""
        has = {
            "features": outputs.features is not None,
            "samples": outputs.has_samples,
            "learned": bool(outputs.confidence),
            "last_layer": True,
            # Members of an ensemble are stored as samples; they have no common features.
            "ensemble": outputs.has_samples and outputs.features is None,
        }
        missing = [NEEDS[need] for need in NEEDS if need in self.needs and not has[need]]
        return f"the method {self.name!r} needs {'; '.join(missing)}" if missing else ""


#: Every method, in the order of tables.
METHODS: Catalogue[Method] = Catalogue("method", list_command="list scores")


def by_method(values: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Return values of stored files by method; earlier versions wrote names with hyphens."""
    return {match_spelling(name, METHODS): value for name, value in values.items()}


def methods_of(
    objectives: Iterable[str], *, lacking: Collection[str] = (), all_scores: bool = False
) -> tuple[Method, ...]:
    """Return the methods of networks with these training objectives, each under one name.

    Examples
    --------
    >>> from abstain_bench.runs.methods import methods_of
    >>> [method.name for method in methods_of(["confidnet"], lacking={"samples"})]
    ['confidnet']
    """
    objectives = set(objectives)
    return tuple(
        method
        for method in METHODS.values()
        if method.objective in objectives
        and method.needs.isdisjoint(lacking)
        and not method.same_as
        and (method.is_default or all_scores)
    )


class Scores(dict[str, FloatArray]):
    """Confidences by the name of the method, NaN for methods that failed.

    Attributes
    ----------
    reasons : dict of str to str
        Why methods failed, by name.
    seconds : dict of str to float
        What each method took.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, str] = {}
        self.seconds: dict[str, float] = {}


@dataclass(frozen=True, eq=False)
class FittedMethods:
    """Methods that were fitted together, to score any number of outputs.

    Attributes
    ----------
    methods : tuple of Method
        All of them, in order.
    scores : mapping of str to str or ScoreState
        The name of a score or a fitted score, by method; without those that could not be fitted.
    reasons : mapping of str to str
        Why the others could not be fitted.
    seconds : mapping of str to float
        What fitting each took.
    """

    methods: tuple[Method, ...]
    scores: Mapping[str, str | ScoreState]
    reasons: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def score(self, outputs: Predictions) -> Scores:
        """Return the confidences of the pictures by every method, and the reasons for NaN."""
        result = Scores()
        for method in self.methods:
            reason, start = self.reasons.get(method.name, ""), perf_counter()
            if not reason:
                try:
                    result[method.name] = self._confidence(method, outputs)
                    continue
                except Exception as error:  # noqa: BLE001  the other methods are computed
                    reason = _reason(error)
                finally:
                    result.seconds[method.name] = perf_counter() - start
            result[method.name] = np.full(outputs.n, np.nan)
            result.reasons[method.name] = reason
        return result

    def _confidence(self, method: Method, outputs: Predictions) -> FloatArray:
        if missing := method.missing_to_score(outputs):
            raise MissingInputError(missing)
        values = score(self.scores[method.name], outputs).values
        label = f"confidence of {method.name}"
        return checks.confidence(values, label, length=outputs.n).astype(np.float64)


def fit_all(methods: Iterable[str | Method], data: FitData) -> FittedMethods:
    """Fit several methods on the outputs of one network.

    Examples
    --------
    >>> from abstain_bench.runs.methods import FitData, fit_all
    >>> from abstain_bench.runs.outputs import network_outputs
    >>> outputs = network_outputs([[2.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    >>> fit_all(["knn"], FitData(train=outputs, validation=outputs)).reasons["knn"]
    "the method 'knn' needs the inputs of the last layer (`features`) of the train pictures"
    """
    selected = tuple(METHODS[m] if isinstance(m, str) else m for m in methods)
    scores: dict[str, str | ScoreState] = {}
    reasons: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for method in selected:
        start = perf_counter()
        if missing := method.missing_to_fit(data):
            reasons[method.name] = missing
            continue
        try:
            scores[method.name] = (
                method.score if isinstance(method.score, str) else method.score(data)
            )
        except Exception as error:  # noqa: BLE001  the other methods are fitted
            reasons[method.name] = _reason(error)
        seconds[method.name] = perf_counter() - start
    return FittedMethods(selected, scores, reasons, seconds)


def score_all(methods: Iterable[str | Method], data: FitData, outputs: Predictions) -> Scores:
    """Fit several methods and score pictures by each.

    Parameters
    ----------
    methods : iterable of str or Method
        Names in `METHODS`, or entries.
    data : FitData
        What they are fitted on.
    outputs : abstain.Predictions
        For the n pictures to be scored, of the same network, as `network_outputs` makes them;
        labels are not used.

    Returns
    -------
    Scores
        A dict of float64 (n,) by name. A method that lacks an input or fails has NaN, and its
        reason in ``.reasons``.

    Raises
    ------
    UnknownNameError
        No method of that name.

    See Also
    --------
    fit_all : Where one fit scores several outputs.

    Examples
    --------
    >>> from abstain_bench.runs.methods import FitData, score_all
    >>> from abstain_bench.runs.outputs import network_outputs
    >>> outputs = network_outputs([[2.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    >>> scores = score_all(["msr", "mcd_pe"], FitData(outputs, outputs), outputs)
    >>> scores["msr"].tolist()
    [2.0, 1.0]
    >>> scores.reasons
    {'mcd_pe': "the method 'mcd_pe' needs passes with dropout on (`samples`)"}
    """
    return fit_all(methods, data).score(outputs)


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    if isinstance(error, AbstainError) and lines:
        return lines[0]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
