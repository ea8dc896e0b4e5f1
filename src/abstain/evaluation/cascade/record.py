"""What checking a cascade on several data sets returns."""

import math
from dataclasses import dataclass
from typing import Any, Final

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain.evaluation.records import format_counts
from abstain.thresholds import RuleCheck
from abstain.thresholds.cascade import Cascade, CascadeFrontier

#: The name of the row of the calibration data, and what stands in it for a verdict.
CALIBRATION: Final = "calibration"
CHOSEN_HERE: Final = "chosen here"


@dataclass(frozen=True, eq=False)
class CascadeChecks(NotebookDisplay):
    """A cascade and what it achieves on other data sets.

    Attributes
    ----------
    cascade : Cascade
        The stages with their thresholds, and what is promised.
    checks : tuple of RuleCheck
        One for each data set, in the order given.
    level : float
        Of the intervals.
    frontier : CascadeFrontier or None
        Every choice of thresholds on the calibration data, when these were given.
    findings : tuple of Note
        What the reader should know, warnings first.
    binary : bool
        Whether every loss seen is 0 or 1, so that a mean loss is a share of wrong answers.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> def said(n):
    ...     sure = rng.random(n)
    ...     return {
    ...         "small": (sure, rng.random(n) > sure),
    ...         "large": (sure, rng.random(n) > 2 * sure),
    ...     }
    >>> cascade = ab.set_cascade(said(3000), max_risk=0.1)
    >>> checks = ab.check_cascade(cascade, {"later": said(90_000)})
    >>> checks.frame().select("name", "verdict").rows()
    [('calibration', 'chosen here'), ('later', 'holds')]
    """

    cascade: Cascade
    checks: tuple[RuleCheck, ...]
    level: float
    frontier: CascadeFrontier | None = None
    notes: tuple[Note, ...] = ()
    is_binary: bool = True

    def __repr__(self) -> str:
        """Say what is there, not the numbers."""
        warnings = sum(finding.level == "warning" for finding in self.notes)
        said = format_counts({"data set": len(self), "warning": warnings})
        return f"CascadeChecks({self.cascade!s}; {said}; .frame() has the numbers)"

    def __len__(self) -> int:
        """Count the data sets that were checked."""
        return len(self.checks)

    def rows(self) -> list[dict[str, Any]]:
        """Return flat rows: the calibration data, then each data set.

        That of the calibration data has no intervals: the thresholds were chosen on them.
        """
        plan = self.cascade.plan
        promised = {"max_risk": plan.max_risk, "capacity": plan.capacity, "delta": plan.delta}
        rows = [{**check.row(), **promised, "level": self.level} for check in self.checks]
        return [{**self._calibration(), **promised, "level": self.level}, *rows]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)

    def _calibration(self) -> dict[str, Any]:
        c = self.cascade
        known = {"risk": c.risk, "reviews": c.answered[-1], "cost": c.cost}
        out: dict[str, Any] = {"name": CALIBRATION, "n": c.n}
        for number, value in known.items():
            out |= {number: value, f"{number}_low": math.nan, f"{number}_high": math.nan}
        limited = c.plan.limited
        out["excess"] = c.risk - c.plan.max_risk
        out["load_excess"] = c.answered[-1] - c.plan.capacity if limited else math.nan
        out["days_over"] = math.nan
        verdict = CHOSEN_HERE if c.attainable else "unattainable"
        out |= dict.fromkeys(("risk_verdict", "load_verdict", "verdict"), verdict)
        for name, share in zip(c.names, c.answered, strict=True):
            out |= {f"answered_{name}": share, f"risk_{name}": math.nan}
        return out
