"""Register decision rules, and select a threshold by the name of a rule (`fit`)."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.option_format import format_option
from abstain.errors import InputError, MissingInputError, suggest
from abstain.thresholds.scales import RuleScale
from abstain.typing import AnyArray

if TYPE_CHECKING:
    from abstain.thresholds.rule import DecisionRule

Guarantee = Literal["none", "selective risk", "generalized risk", "coverage"]


@dataclass(frozen=True)
class Rule:
    """A method that selects a threshold.

    Attributes
    ----------
    name : str
        Name in scripts.
    title : str
        Name in reports.
    choose : callable
        The function that selects the threshold and returns a `DecisionRule`.
    needs_loss, needs_data : bool
        Whether the function requires losses, and whether the function requires any data.
    guarantee : str
        Description of the guarantee, or "none".
    guarantees : tuple of str
        The possible guarantees of a decision rule, or empty.
    target_quantity : str
        The quantity of the target of a rule without a guarantee.
    statement : str
        Description of a decision rule without a guarantee, in which ``{target}`` stands for the
        number. Empty if `target_quantity` is sufficient.
    loss : str
        Description of the permitted losses.
    is_binary : bool
        Whether losses must be 0 or 1 and weights are not accepted, so that the risk is a share of
        failures.
    uses_probability : bool
        Whether the threshold is a probability of a correct prediction for every score.
    meaning : str
        One sentence that explains the rule.
    source : str
        Reference.
    """

    name: str
    title: str
    choose: Callable[..., Any]
    meaning: str
    source: str
    needs_loss: bool = True
    needs_data: bool = True
    guarantee: str = "none"
    guarantees: tuple[Guarantee, ...] = ()
    target_quantity: Literal["", "coverage", "selective risk", "generalized risk", "cost"] = ""
    loss: str = "any loss"
    is_binary: bool = False
    uses_probability: bool = False
    statement: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the rule, except `weight`, in the order of its signature."""
        return tuple(self._parameters())

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the required options."""
        empty = inspect.Parameter.empty
        return tuple(n for n, p in self._parameters().items() if p.default is empty)

    def _parameters(self) -> dict[str, inspect.Parameter]:
        parameters = inspect.signature(self.choose).parameters
        data = {"confidence", "loss", "weight"}
        return {name: parameter for name, parameter in parameters.items() if name not in data}


#: Every rule, by name.
RULES: Catalogue[Rule] = Catalogue("rule")


#: The default rule for a target risk.
DEFAULT_RISK_RULE: Final = "sgr"
#: The default rule for a risk in another population. This rule uses all samples.
_RISK_RULE_WITH_RATIOS: Final = "learn_then_test"
#: The default rule for each option that sets a target.
DEFAULT_RULES: Final = {
    "max_risk": DEFAULT_RISK_RULE,
    "coverage": "coverage_guarantee",
    "abstention_cost": "cost",
}
#: Default probability that a guarantee may fail.
DEFAULT_DELTA: Final = 0.05
#: The rule for several limits.
SEVERAL_RISKS_RULE: Final = "learn_then_test"


def default_rule(options: Collection[str]) -> str:
    """Return the name of the default rule for the target that these options specify.

    For a maximum risk, the default also depends on whether density ratios (`ratio`) are passed.

    Raises
    ------
    InputError
        If the options include no target or several targets.

    Examples
    --------
    >>> default_rule({"coverage", "delta"})
    'coverage_guarantee'
    """
    targets = [name for name in DEFAULT_RULES if name in options]
    if len(targets) == 1:
        if targets == ["max_risk"] and "ratio" in options:
            return _RISK_RULE_WITH_RATIOS
        return DEFAULT_RULES[targets[0]]
    *first_choices, last_choice = map(format_option, DEFAULT_RULES)
    choices = f"{', '.join(first_choices)} and {last_choice}"
    requested = ", ".join(map(format_option, targets)) or "none of them"
    msg = f"name the rule with {format_option('method')}, or give one of {choices}; got {requested}"
    if not targets:
        raise MissingInputError(msg)
    raise InputError(msg)


def fit(
    method: str,
    confidence: AnyArray | None = None,
    loss: AnyArray | None = None,
    *,
    weight: AnyArray | None = None,
    score: str = "",
    scale: RuleScale | None = None,
    **options: Any,
) -> "DecisionRule":
    """Select a threshold with a rule that is identified by its name.

    Answers: which threshold reaches my target?

    Parameters
    ----------
    method : str
        A name in `RULES`: "coverage", "risk", "cost", "chow", "sgr", "learn_then_test",
        "conformal_risk_control", "coverage_guarantee" or a registered rule.
    confidence : array of shape (n,), optional
        Confidences of the calibration samples. The rule "chow" needs none.
    loss : array of shape (n,), optional
        Losses of the calibration samples. Rules that do not depend on losses ignore this argument.
    weight : array of shape (n,), optional
        Frequency weights. Rules with a guarantee do not accept weights.
    score : str, default=""
        Name of the confidence score, which the rule records.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences, which the rule records. The default is "probability" for "chow"
        and "unknown" for other rules.
    **options
        Options of the rule, which `RULES[method].options` lists.

    Returns
    -------
    DecisionRule
        The rule with its threshold.

    Raises
    ------
    UnknownNameError
        If no rule has this name.
    MissingInputError
        If confidences, losses or an option that the rule requires are missing.
    InputError
        If an option is unknown to the rule, or if the rule rejects an argument.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.fit("risk", [0.9, 0.8, 0.7], [0, 0, 1], max_risk=0.1, score="msr")
    >>> rule.threshold, rule.score
    (0.8, 'msr')
    """
    entry = RULES[method]
    _check_options(entry, options)
    data: list[AnyArray] = []
    if entry.needs_data:
        data.append(_check_present(entry, confidence, "confidence"))
        options["weight"] = weight
    if entry.needs_loss:
        data.append(_check_present(entry, loss, "loss"))
    rule: DecisionRule = entry.choose(*data, **options)
    return rule.for_score(score, scale=scale)


def _check_present(entry: Rule, values: AnyArray | None, name: str) -> AnyArray:
    if values is None:
        raise MissingInputError(f"the rule {entry.name!r} needs `{name}`; got None")
    return values


def _check_options(entry: Rule, options: dict[str, Any]) -> None:
    """Raise an error for unknown options and for missing required options."""
    for name in options:
        if name not in entry.options:
            needs = ", ".join(map(format_option, entry.required)) or "no option"
            near = suggest(name, entry.options)
            raise InputError(
                f"the rule {entry.name!r} takes no {format_option(name)}; it needs {needs}.{near}"
            )
    for name in entry.required:
        if name not in options:
            raise MissingInputError(f"the rule {entry.name!r} needs {format_option(name)}")
