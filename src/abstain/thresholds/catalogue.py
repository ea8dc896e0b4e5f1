"""Fills the catalogue of rules, and chooses a threshold by the name of one: `fit`."""

from collections.abc import Collection
from typing import Any, Final

from abstain._foundation.option_format import format_option
from abstain.errors import InputError, MissingInputError, suggest
from abstain.thresholds import certified, conformal, empirical, limits
from abstain.thresholds.entry import RULES, Rule
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.scales import RuleScale
from abstain.typing import AnyArray

for _entry in (*empirical.ENTRIES, *certified.ENTRIES, *conformal.ENTRIES):
    RULES.add(_entry)

#: The default rule for a target risk.
USUAL: Final = certified.SGR.name
#: The default rule for a risk on shifted data, which uses every sample.
_FOR_SHIFTED_RISK: Final = "learn_then_test"
#: The default rule for each target, by the option that states it.
DEFAULT_RULES: Final = {
    "max_risk": USUAL,
    "coverage": "coverage_guarantee",
    "abstention_cost": "cost",
}
#: The chance that a promise may fail, where none is named.
DELTA: Final = 0.05
#: What keeps several limits at once.
SEVERAL: Final = limits.METHOD


def default_rule(options: Collection[str]) -> str:
    """Return the default rule for the target that is among these options.

    With density ratios (`ratio`) a risk has another default.

    Raises
    ------
    InputError
        None of the targets is there, or several.

    Examples
    --------
    >>> default_rule({"coverage", "delta"})
    'coverage_guarantee'
    """
    targets = [name for name in DEFAULT_RULES if name in options]
    if len(targets) != 1:
        first, *others, last = map(format_option, DEFAULT_RULES)
        choices = f"{', '.join((first, *others))} and {last}"
        values = ", ".join(map(format_option, targets)) or "none of them"
        msg = (
            f"name the rule with {format_option('method')}, or give one of {choices}; got {values}"
        )
        raise MissingInputError(msg) if not targets else InputError(msg)
    if "ratio" in options and targets == ["max_risk"]:
        return _FOR_SHIFTED_RISK
    return DEFAULT_RULES[targets[0]]


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
    """Choose a threshold by the name of a rule.

    Answers: where do I put the threshold?

    Parameters
    ----------
    method : str
        A name in `RULES`: "coverage", "risk", "cost", "chow", "sgr", "learn_then_test",
        "conformal_risk_control", "coverage_guarantee" or one of your own.
    confidence : array of shape (n,), optional
        Of the calibration samples; not needed for "chow".
    loss : array of shape (n,), optional
        Their losses; ignored by the rules that need none.
    weight : array of shape (n,), optional
        Frequency weights; refused by the rules with a guarantee.
    score : str, default=""
        Name of the confidence score, noted in the rule.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, noted in the rule; by default "unknown", and a
        probability for "chow".
    **options
        Of the rule: `RULES[method].options`.

    Returns
    -------
    DecisionRule
        What it chose.

    Raises
    ------
    UnknownNameError
        No such rule.
    MissingInputError
        Confidences, losses or an option that the rule needs are not there.
    InputError
        An option that the rule does not have; otherwise as the rule does.

    Examples
    --------
    >>> import abstain as ab
    >>> rule = ab.thresholds.fit("risk", [0.9, 0.8, 0.7], [0, 0, 1], max_risk=0.1, score="msr")
    >>> rule.threshold, rule.score
    (0.8, 'msr')
    """
    entry = RULES[method]
    _check_options(entry, options)
    given: list[AnyArray] = []
    if entry.needs_data:
        given.append(_needed(entry, confidence, "confidence"))
        options["weight"] = weight
    if entry.needs_loss:
        given.append(_needed(entry, loss, "loss"))
    rule: DecisionRule = entry.choose(*given, **options)
    return rule.for_score(score, scale=scale)


def _needed(entry: Rule, x: AnyArray | None, name: str) -> AnyArray:
    if x is None:
        raise MissingInputError(f"the rule {entry.name!r} needs `{name}`; got None")
    return x


def _check_options(entry: Rule, options: dict[str, Any]) -> None:
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
