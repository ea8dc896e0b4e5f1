"""Several methods at once: fitted once, and none that fails stops the others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from abstain._foundation import checks
from abstain.benchmark.methods.catalogue import METHODS
from abstain.benchmark.methods.entry import Known, Method, ScoreFunction
from abstain.benchmark.outputs import Outputs
from abstain.errors import AbstainError, MissingInputError
from abstain.typing import FloatArray


class Scores(dict[str, FloatArray]):
    """Confidences by the name of the method, NaN where there are none.

    Attributes
    ----------
    reasons : dict of str to str
        Why there are none, by the name of the method.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, str] = {}


@dataclass(frozen=True, eq=False)
class FittedMethods:
    """Methods that were fitted together, to score any number of outputs.

    Attributes
    ----------
    methods : tuple of Method
        All of them, in order.
    functions : mapping of str to callable
        Of those that could be fitted, by name.
    reasons : mapping of str to str
        Why the others could not.
    """

    methods: tuple[Method, ...]
    functions: Mapping[str, ScoreFunction]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def score(self, outputs: Outputs) -> Scores:
        """Return the confidences of the pictures by every method, and the reasons for NaN.

        Parameters
        ----------
        outputs : Outputs
            For n pictures; labels are not looked at.

        Returns
        -------
        Scores
            Float64 (n,) by name.
        """
        found = Scores()
        n = outputs.n
        for method in self.methods:
            reason = self.reasons.get(method.name, "")
            if not reason:
                try:
                    found[method.name] = self._scored(method, outputs, n)
                    continue
                except Exception as error:  # noqa: BLE001  whatever it is, the others go on
                    reason = _reason(error)
            found[method.name] = np.full(n, np.nan)
            found.reasons[method.name] = reason
        return found

    def _scored(self, method: Method, outputs: Outputs, n: int) -> FloatArray:
        if missing := method.missing_to_score(outputs):
            raise MissingInputError(missing)
        values = self.functions[method.name](outputs)
        return checks.confidence(values, f"confidence of {method.name}", length=n).astype(
            np.float64
        )


def fit_all(methods: Iterable[str | Method], known: Known) -> FittedMethods:
    """Fit several methods on what is known of one network.

    Answers: which of these methods can score this network, and why can the others not?

    Parameters
    ----------
    methods : iterable of str or Method
        Names in `METHODS`, or entries.
    known : Known
        Training and validation outputs, and the last layer.

    Returns
    -------
    FittedMethods
        With a reason for each method that could not be fitted.

    Raises
    ------
    UnknownNameError
        No method of that name.

    Examples
    --------
    >>> from abstain.benchmark.methods import Known, fit_all
    >>> from abstain.benchmark.outputs import Outputs
    >>> said = Outputs([[2.0, 0.0], [0.0, 1.0]], labels=[0, 0], places=[0, 1])
    >>> fit_all(["knn"], Known(train=said, validation=said)).reasons
    {'knn': "the method 'knn' needs what the last layer sees (`features`) of the train pictures"}
    """
    chosen = tuple(METHODS[m] if isinstance(m, str) else m for m in methods)
    functions: dict[str, ScoreFunction] = {}
    reasons: dict[str, str] = {}
    for method in chosen:
        if missing := method.missing_to_fit(known):
            reasons[method.name] = missing
            continue
        try:
            functions[method.name] = method.fit(known)
        except Exception as error:  # noqa: BLE001  whatever it is, the others go on
            reasons[method.name] = _reason(error)
    return FittedMethods(chosen, functions, reasons)


def score_all(methods: Iterable[str | Method], known: Known, outputs: Outputs) -> Scores:
    """Fit several methods and score pictures by each.

    Answers: how far is each of these pictures to be trusted, by each of these methods?

    Parameters
    ----------
    methods : iterable of str or Method
        Names in `METHODS`, or entries.
    known : Known
        What they are fitted on.
    outputs : Outputs
        For the n pictures to be scored, of the same network; labels are not looked at.

    Returns
    -------
    Scores
        A dict of float64 (n,) by name. A method that lacks something or fails has NaN, and its
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
    >>> from abstain.benchmark.methods import Known, score_all
    >>> from abstain.benchmark.outputs import Outputs
    >>> said = Outputs([[2.0, 0.0], [0.0, 1.0]], labels=[0, 0], places=[0, 1])
    >>> found = score_all(["msr", "mcd-pe"], Known(said, said), said)
    >>> found["msr"].tolist()
    [2.0, 1.0]
    >>> found.reasons
    {'mcd-pe': "the method 'mcd-pe' needs passes with dropout on (`samples`)"}
    """
    return fit_all(methods, known).score(outputs)


def _reason(error: Exception) -> str:
    said = str(error).splitlines()
    if isinstance(error, AbstainError) and said:
        return said[0]
    return f"{type(error).__name__}: {said[0] if said else 'no message'}"
