"""The catalogue of methods, read by the command line, the docs and the tests; and `fit`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from abstain._foundation.catalogue import Catalogue
from abstain.errors import InputError, MissingInputError, suggest
from abstain.thresholds._scales import RuleScale
from abstain.thresholds.certified import learn_then_test, sgr
from abstain.thresholds.conformal import conformal_risk_control, coverage_guarantee
from abstain.thresholds.empirical import chow, for_cost, for_coverage, for_risk
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray


@dataclass(frozen=True)
class Method:
    """One way to choose a threshold.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    choose : callable
        The function itself.
    needs_loss, needs_data : bool
        Whether losses, and whether any data, are needed.
    guarantee : str
        What is promised, in words; "none" where nothing is.
    loss : str
        Which losses are allowed, in words.
    meaning : str
        One plain sentence.
    source : str
        Where it is from.
    """

    name: str
    title: str
    choose: Callable[..., DecisionRule]
    meaning: str
    source: str
    needs_loss: bool = True
    needs_data: bool = True
    guarantee: str = "none"
    loss: str = "any loss"

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options, `weight` apart, in the order of the signature."""
        return tuple(self._parameters())

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the options that must be given."""
        empty = inspect.Parameter.empty
        return tuple(n for n, p in self._parameters().items() if p.default is empty)

    def _parameters(self) -> dict[str, inspect.Parameter]:
        found = inspect.signature(self.choose).parameters
        data = {"confidence", "loss", "weight"}
        return {name: parameter for name, parameter in found.items() if name not in data}


#: Every method, by name.
METHODS: Catalogue[Method] = Catalogue("threshold method", listed="list rules")

for _method in (
    Method(
        "coverage",
        "Coverage",
        for_coverage,
        "The highest threshold that keeps at least this share of the samples.",
        "Geifman and El-Yaniv (2017)",
        needs_loss=False,
        loss="no loss needed",
    ),
    Method(
        "risk",
        "Empirical risk",
        for_risk,
        "The largest coverage whose risk on the calibration data is at most the target.",
        "El-Yaniv and Wiener (2010)",
    ),
    Method(
        "cost",
        "Least cost",
        for_cost,
        "The threshold of least mean cost on the calibration data, abstaining having its price.",
        "Chow (1970)",
    ),
    Method(
        "chow",
        "Chow's rule",
        chow,
        "Accept when the probability of being right is at least 1 minus the cost of abstaining.",
        "Chow (1970)",
        needs_loss=False,
        needs_data=False,
        loss="no loss needed",
    ),
    Method(
        "sgr",
        "Selection with guaranteed risk",
        sgr,
        "A large coverage whose true error rate is at most the target, except with chance delta.",
        "Geifman and El-Yaniv (2017), Algorithm 1",
        guarantee="selective risk, with probability 1 - delta",
        loss="0/1 loss",
    ),
    Method(
        "learn_then_test",
        "Learn then test",
        learn_then_test,
        "A large coverage whose true risk is at most the target, except with chance delta.",
        "Angelopoulos et al. (2021)",
        guarantee="selective or generalized risk, with probability 1 - delta",
        loss="losses in [0, 1]",
    ),
    Method(
        "conformal_risk_control",
        "Conformal risk control",
        conformal_risk_control,
        "The largest coverage whose generalized risk is at most the target on average.",
        "Angelopoulos et al. (2022)",
        guarantee="generalized risk, in expectation",
        loss="bounded losses",
    ),
    Method(
        "coverage_guarantee",
        "Guaranteed coverage",
        coverage_guarantee,
        "The highest threshold whose true coverage is at least this, except with chance delta.",
        "Wilks (1941)",
        needs_loss=False,
        guarantee="coverage, with probability 1 - delta",
        loss="no loss needed",
    ),
):
    METHODS.add(_method)


def fit(
    method: str,
    confidence: AnyArray | None = None,
    loss: AnyArray | None = None,
    *,
    weight: AnyArray | None = None,
    score: str = "",
    scale: RuleScale | None = None,
    **options: Any,
) -> DecisionRule:
    """Choose a threshold by the name of a method.

    Answers: where do I put the threshold?

    Parameters
    ----------
    method : str
        A name in `METHODS`: "coverage", "risk", "cost", "chow", "sgr", "learn_then_test",
        "conformal_risk_control" or "coverage_guarantee".
    confidence : array of shape (n,), optional
        Of the calibration samples; not needed for "chow".
    loss : array of shape (n,), optional
        Their losses; ignored by the methods that need none.
    weight : array of shape (n,), optional
        Frequency weights; refused by the methods with a guarantee.
    score : str, default=""
        Name of the confidence score, noted in the rule.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, noted in the rule; by default "unknown", and a
        probability for "chow".
    **options
        Of the method: `METHODS[method].options`.

    Returns
    -------
    DecisionRule
        The rule; see the method.

    Raises
    ------
    UnknownNameError
        No such method.
    MissingInputError
        Confidences, losses or an option that the method needs are not there.
    InputError
        An option that the method does not have; otherwise as the method does.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.fit("risk", [0.9, 0.8, 0.7], [0, 0, 1], max_risk=0.1, score="msr")
    >>> rule.threshold, rule.score
    (0.8, 'msr')
    """
    entry = METHODS[method]
    _check_options(entry, options)
    given: list[AnyArray] = []
    if entry.needs_data:
        given.append(_needed(entry, confidence, "confidence"))
        options["weight"] = weight
    if entry.needs_loss:
        given.append(_needed(entry, loss, "loss"))
    return entry.choose(*given, **options).for_score(score, scale=scale)


def _needed(entry: Method, x: AnyArray | None, name: str) -> AnyArray:
    if x is None:
        msg = f"the threshold method {entry.name!r} needs `{name}`; got None"
        raise MissingInputError(msg)
    return x


def _check_options(entry: Method, options: dict[str, Any]) -> None:
    for name in options:
        if name not in entry.options:
            takes = ", ".join(f"`{option}`" for option in entry.options)
            near = suggest(name, entry.options)
            msg = f"the threshold method {entry.name!r} takes {takes}; got `{name}`.{near}"
            raise InputError(msg)
    for name in entry.required:
        if name not in options:
            msg = f"the threshold method {entry.name!r} needs the option `{name}`"
            raise MissingInputError(msg)
