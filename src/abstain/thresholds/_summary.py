"""What a set of rules says as one: its targets, and what the calibration data show."""

from dataclasses import dataclass
from typing import Final

from abstain._foundation import records
from abstain._foundation.records import Chance
from abstain.thresholds.entry import Guarantee
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.scales import RuleScale

#: The part of a set with one threshold that is about all samples.
OVERALL: Final = "overall"


@dataclass(frozen=True)
class RulePart:
    """The decision rule of a group, or of a limit.

    Attributes
    ----------
    name : str
        The group; or what is limited: "overall", "group:night", "prediction:cat", "label:cat".
    rule : DecisionRule
        With what it promises there, and what the calibration samples there show.
    """

    name: str
    rule: DecisionRule

    def __post_init__(self) -> None:
        """Validate every field."""
        records.check(self, of="a part of a set of rules")


@dataclass(frozen=True)
class PartsSummary:
    """Parts, read as if they were one decision rule."""

    per: str
    parts: tuple[RulePart, ...]
    joint: bool = False
    delta: Chance | None = None

    @property
    def chosen(self) -> tuple[RulePart, ...]:
        """The parts that promise something, or all."""
        return tuple(p for p in self.parts if p.rule.quantity) or self.parts

    @property
    def first(self) -> DecisionRule:
        """The rule of the first of them."""
        return self.chosen[0].rule

    # ------------------------------------------------------------------ what a rule is asked for
    @property
    def method(self) -> str:
        """The rule that chose every part."""
        return self.first.method

    @property
    def guarantee(self) -> Guarantee:
        """The number that is guaranteed, if any."""
        return self.first.guarantee

    @property
    def in_expectation(self) -> bool:
        """Whether the guarantee is on average over calibration sets."""
        return self.first.in_expectation

    @property
    def promised_for(self) -> str:
        """Whom the promise is about, where that is not data like the calibration data."""
        whom = {part.rule.promised_for for part in self.chosen}
        # In brackets each group says what its samples are worth.
        return whom.pop() if len(whom) == 1 else self.first.promised_for.split(" (")[0]

    @property
    def score(self) -> str:
        """Name of the confidence score; "" if unknown."""
        return self.first.score

    @property
    def scale(self) -> RuleScale:
        """What the thresholds are measured in."""
        return self.first.scale

    @property
    def of_probability(self) -> bool:
        """Whether the rule compares the probability of being right."""
        return self.first.of_probability

    @property
    def target(self) -> float | None:
        """The target that all parts have, or that of "overall"; None where they differ."""
        if not self.per:
            return self.overall.target
        found = {part.rule.target for part in self.parts}
        return found.pop() if len(found) == 1 else None

    @property
    def quantity(self) -> str:
        """What `target` is about; empty without one."""
        return "" if self.target is None else self.first.quantity

    @property
    def threshold(self) -> float | None:
        """The one threshold; None where each group has its own."""
        return None if self.per else self.parts[0].rule.threshold

    @property
    def bound(self) -> None:
        """None: what is certified is said of each part."""
        return

    @property
    def attainable(self) -> bool:
        """Whether there is a threshold, for any group."""
        return any(part.rule.attainable for part in self.parts)

    @property
    def reason(self) -> str:
        """Why there is no threshold: of every part that has none; "" where all have one."""
        said = [f"{p.name}: {p.rule.reason}" for p in self.parts if not p.rule.attainable]
        return "; ".join(dict.fromkeys(said))

    # ------------------------------------------------------------------ the calibration data
    @property
    def overall(self) -> DecisionRule:
        """The part about all samples, of a set with one threshold."""
        named = [part.rule for part in self.parts if part.name == OVERALL]
        return named[0] if named else DecisionRule("given", self.threshold, reason=self.reason)

    def _whole(self) -> list[DecisionRule]:
        return [p.rule for p in self.parts] if self.per else [self.overall]

    @property
    def n(self) -> int:
        """Calibration samples."""
        return sum(rule.n for rule in self._whole())

    @property
    def accepted(self) -> int:
        """How many of them are accepted."""
        return sum(rule.accepted for rule in self._whole())

    @property
    def failures(self) -> int | None:
        """Accepted samples with a loss above zero; None without losses."""
        found = [rule.failures for rule in self._whole()]
        return None if None in found else sum(x or 0 for x in found)

    @property
    def coverage(self) -> float | None:
        """Share accepted; None without calibration samples, or where groups count unequally.

        That is a threshold for each group of data of another law: by its density ratios it is
        known how many each answers there, not how large each group is.
        """
        if not self.per:
            return self.overall.coverage
        return self.accepted / self.n if self.n and not self.promised_for else None

    @property
    def risk(self) -> float | None:
        """Selective risk; None when nothing was accepted, no loss known, or as `coverage`."""
        if not self.per:
            return self.overall.risk
        if self.promised_for or self.failures is None or not self.accepted:
            return None
        return sum((r.risk or 0.0) * r.accepted for r in self._whole()) / self.accepted
