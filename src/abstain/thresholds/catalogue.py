"""Fills the catalogue of rules, and chooses a threshold by the name of one: `fit`."""

from typing import Any, Final

from abstain.errors import InputError, MissingInputError, suggest
from abstain.thresholds import certified, conformal, empirical, limits
from abstain.thresholds.entry import RULES, Rule
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.scales import RuleScale
from abstain.typing import AnyArray

for _entry in (*empirical.ENTRIES, *certified.ENTRIES, *conformal.ENTRIES):
    RULES.add(_entry)

#: What chooses a threshold where nobody says how: it promises a risk.
USUAL: Final = certified.SGR.name
#: The chance that a promise may fail, where none is named.
DELTA: Final = 0.05
#: What keeps several limits at once.
SEVERAL: Final = limits.METHOD


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
        msg = f"the rule {entry.name!r} needs `{name}`; got None"
        raise MissingInputError(msg)
    return x


def _check_options(entry: Rule, options: dict[str, Any]) -> None:
    for name in options:
        if name not in entry.options:
            takes = ", ".join(f"`{option}`" for option in entry.options)
            near = suggest(name, entry.options)
            msg = f"the rule {entry.name!r} takes {takes}; got `{name}`.{near}"
            raise InputError(msg)
    for name in entry.required:
        if name not in options:
            msg = f"the rule {entry.name!r} needs the option `{name}`"
            raise MissingInputError(msg)
