"""`Method`: what the catalogue knows of one, what it may be fitted on, and several at once.

They are fitted once, and none that fails stops the others.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue, spelled_as
from abstain.errors import AbstainError, InputError, MissingInputError
from abstain.typing import Array, FloatArray
from abstain_bench.runs.outputs import Outputs

#: From the outputs for n pictures to their confidences (n,), float64, higher is more trusted.
ScoreFunction: TypeAlias = Callable[[Outputs], FloatArray]

ValueT = TypeVar("ValueT")

#: What a method can need, and what is missing where it is not there.
NEEDS: dict[str, str] = {
    "features": "what the last layer sees (`features`)",
    "samples": "passes with dropout on (`samples`)",
    "own": "the confidence that the objective learned (`confidence`)",
    "last-layer": "the last layer (`weight` and `bias` of what is known)",
    "ensemble": "outputs of several networks (`ensemble_outputs`)",
}

#: On which parts of the known outputs a method can be fitted; the empty text stands for none.
FITTED_ON = ("", "train", "validation", "train and validation")


@dataclass(frozen=True, eq=False)
class Known:
    """What a method may be fitted on: never the pictures it will be judged by.

    Attributes
    ----------
    train : Outputs, optional
        For the pictures that the network was trained on.
    validation : Outputs, optional
        For pictures of the same kind that it was not trained on.
    weight : ndarray of shape (K, d), optional
        Of the last layer, float32.
    bias : ndarray of shape (K,), optional
        Of the last layer, float32.
    """

    train: Outputs | None = None
    validation: Outputs | None = None
    weight: Array | None = None
    bias: Array | None = None

    def part(self, name: str) -> Outputs:
        """Return the outputs "train" or "validation", or raise if they are not known."""
        found: Outputs | None = getattr(self, name)
        if found is None:
            raise MissingInputError(f"nothing is known of the {name} pictures; give `{name}`")
        return found


@dataclass(frozen=True)
class Method:
    """A confidence score, with the network it scores and what it is fitted on.

    Attributes
    ----------
    name : str
        The name scripts and tables use.
    title : str
        The name people read.
    source : str
        Where it is defined.
    objective : str
        The name in `abstain.training.OBJECTIVES` of what the network was trained by.
    needs : frozenset of str
        Of the names in `NEEDS`. Class logits are always there.
    fit : callable
        From `Known` to the function that scores: from outputs for n pictures to float64 (n,),
        higher is more trusted, that looks at no label.
    fitted_on : str
        "train", "validation" or "train and validation": the only parts of `Known` that are looked
        at, beside the last layer; empty where nothing is fitted.
    meaning : str
        What the confidence is, in a few words.
    same_as : str
        The name of the method of which this is another name, as papers have it; empty for most.
        Its numbers are the same, so it is no method of its own where nobody asks for it.
    external : str
        Which external confidence of a network of FD-Shifts it is: "ext", "ext_mcd" for the mean
        over passes, or "ext_waic" for this less the standard deviation; empty where it is computed
        from logits.
    is_default : bool
        Whether trained networks are scored by it unless other methods are named. Imported
        networks are scored by every method of their objective.

    Raises
    ------
    InputError
        A need or a part to be fitted on that does not exist, or a method of ensembles that is
        fitted.
    """

    name: str
    title: str
    source: str
    objective: str
    needs: frozenset[str]
    fit: Callable[[Known], ScoreFunction]
    fitted_on: str = ""
    meaning: str = ""
    same_as: str = ""
    external: str = ""
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
            # All that an ensemble is asked about is what it will be judged by.
            raise InputError(
                f"a method of ensembles must not be fitted; {self.name!r} is, on "
                f"{self.fitted_on!r}. Leave `fitted_on` empty"
            )

    @property
    def averages(self) -> bool:
        """Whether the prediction it belongs to is that of the mean over passes or networks."""
        return not self.needs.isdisjoint({"samples", "ensemble"})

    @property
    def fitted_parts(self) -> tuple[str, ...]:
        """The parts of `Known` that it is fitted on."""
        return tuple(self.fitted_on.split(" and ")) if self.fitted_on else ()

    def missing_to_fit(self, known: Known) -> str:
        """Return what is missing to fit it, by name, or an empty string."""
        lacking = []
        if "last-layer" in self.needs and (known.weight is None or known.bias is None):
            lacking.append(NEEDS["last-layer"])
        for name in self.fitted_parts:
            part: Outputs | None = getattr(known, name)
            if part is None:
                lacking.append(f"what the network said of the {name} pictures")
            elif not has(part, "features", self.needs):
                lacking.append(f"{NEEDS['features']} of the {name} pictures")
        return _said(self.name, lacking)

    def missing_to_score(self, outputs: Outputs) -> str:
        """Return what the outputs lack to be scored, by name, or an empty string."""
        asked = [need for need in NEEDS if not has(outputs, need, self.needs)]
        return _said(self.name, [NEEDS[need] for need in asked])


def has(outputs: Outputs, need: str, needs: frozenset[str]) -> bool:
    """Tell whether a need is met by outputs, or is none of these needs."""
    if need not in needs or need == "last-layer":
        return True
    if need == "ensemble":
        # Passes are kept where networks of an ensemble are; those have no common features.
        return outputs.samples is not None and outputs.features is None
    return getattr(outputs, {"own": "confidence"}.get(need, need)) is not None


def _said(name: str, lacking: list[str]) -> str:
    return f"the method {name!r} needs {'; '.join(lacking)}" if lacking else ""


#: Every method, in the order of tables.
METHODS: Catalogue[Method] = Catalogue("method", listed="list scores")


def by_method(values: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Return values of stored files by method; earlier versions wrote names with hyphens."""
    return {spelled_as(name, METHODS): value for name, value in values.items()}


def methods_of(
    objectives: Iterable[str], *, lacking: Collection[str] = (), all_scores: bool = False
) -> tuple[Method, ...]:
    """Return the methods of networks that were trained by these objectives.

    Once each: not under other names that papers have for it, which would be rows twice and push
    all methods behind them one rank down.

    Examples
    --------
    >>> from abstain_bench.runs.methods import methods_of
    >>> [method.name for method in methods_of(["confidnet"], lacking={"samples"})]
    ['confidnet']
    """
    trained = set(objectives)
    return tuple(
        method
        for method in METHODS.values()
        if method.objective in trained
        and method.needs.isdisjoint(lacking)
        and not method.same_as
        and (method.is_default or all_scores)
    )


class Scores(dict[str, FloatArray]):
    """Confidences by the name of the method, NaN where there are none.

    Attributes
    ----------
    reasons : dict of str to str
        Why there are none, by the name of the method.
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
    functions : mapping of str to callable
        Of those that could be fitted, by name.
    reasons : mapping of str to str
        Why the others could not.
    seconds : mapping of str to float
        What fitting each took.
    """

    methods: tuple[Method, ...]
    functions: Mapping[str, ScoreFunction]
    reasons: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def score(self, outputs: Outputs) -> Scores:
        """Return the confidences of the pictures by every method, and the reasons for NaN."""
        found = Scores()
        n = outputs.n
        for method in self.methods:
            reason, start = self.reasons.get(method.name, ""), perf_counter()
            if not reason:
                try:
                    found[method.name] = self._scored(method, outputs, n)
                    continue
                except Exception as error:  # noqa: BLE001  whatever it is, the others go on
                    reason = _reason(error)
                finally:
                    found.seconds[method.name] = perf_counter() - start
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

    Examples
    --------
    >>> from abstain_bench.runs.methods import Known, fit_all
    >>> from abstain_bench.runs.outputs import Outputs
    >>> said = Outputs([[2.0, 0.0], [0.0, 1.0]], labels=[0, 0], places=[0, 1])
    >>> fit_all(["knn"], Known(train=said, validation=said)).reasons
    {'knn': "the method 'knn' needs what the last layer sees (`features`) of the train pictures"}
    """
    chosen = tuple(METHODS[m] if isinstance(m, str) else m for m in methods)
    functions: dict[str, ScoreFunction] = {}
    reasons: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for method in chosen:
        start = perf_counter()
        if missing := method.missing_to_fit(known):
            reasons[method.name] = missing
            continue
        try:
            functions[method.name] = method.fit(known)
        except Exception as error:  # noqa: BLE001  whatever it is, the others go on
            reasons[method.name] = _reason(error)
        seconds[method.name] = perf_counter() - start
    return FittedMethods(chosen, functions, reasons, seconds)


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
    >>> from abstain_bench.runs.methods import Known, score_all
    >>> from abstain_bench.runs.outputs import Outputs
    >>> said = Outputs([[2.0, 0.0], [0.0, 1.0]], labels=[0, 0], places=[0, 1])
    >>> found = score_all(["msr", "mcd_pe"], Known(said, said), said)
    >>> found["msr"].tolist()
    [2.0, 1.0]
    >>> found.reasons
    {'mcd_pe': "the method 'mcd_pe' needs passes with dropout on (`samples`)"}
    """
    return fit_all(methods, known).score(outputs)


def _reason(error: Exception) -> str:
    said = str(error).splitlines()
    if isinstance(error, AbstainError) and said:
        return said[0]
    return f"{type(error).__name__}: {said[0] if said else 'no message'}"
