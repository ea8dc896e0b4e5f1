"""The result of checking a cascade on several data sets (`CascadeChecks`)."""

import math
from dataclasses import dataclass
from typing import Any, Final

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain.evaluation.records import format_counts
from abstain.thresholds import RuleCheck
from abstain.thresholds.cascade import Cascade, CascadeFrontier

#: Name and verdict of the row of the calibration data.
CALIBRATION: Final = "calibration"
CHOSEN_HERE: Final = "chosen here"


@dataclass(frozen=True, eq=False)
class CascadeChecks(NotebookDisplay):
    """A cascade and its checks on other data sets.

    Attributes
    ----------
    cascade : Cascade
        The stages with their thresholds, and the guarantee.
    checks : tuple of RuleCheck
        One check for each data set, in the order of the input.
    level : float
        Confidence level of the intervals.
    frontier : CascadeFrontier or None
        All choices of thresholds on the calibration data, if these were passed.
    notes : tuple of Note
        Notes about the cascade and the data, warnings first.
    is_binary : bool
        Whether every loss is 0 or 1. A mean loss is then the share of wrong answers.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> def simulate_stages(n):
    ...     confidence = rng.random(n)
    ...     return {
    ...         "small": (confidence, rng.random(n) > confidence),
    ...         "large": (confidence, rng.random(n) > 2 * confidence),
    ...     }
    >>> cascade = ab.set_cascade(simulate_stages(3000), max_risk=0.1)
    >>> checks = ab.check_cascade(cascade, {"later": simulate_stages(90_000)})
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
        """Return the cascade and the numbers of data sets and warnings."""
        n_warnings = sum(note.level == "warning" for note in self.notes)
        counts = format_counts({"data set": len(self), "warning": n_warnings})
        return f"CascadeChecks({self.cascade!s}; {counts}; .frame() has the numbers)"

    def __len__(self) -> int:
        """Return the number of data sets."""
        return len(self.checks)

    def rows(self) -> list[dict[str, Any]]:
        """Return flat rows: the calibration data, then each data set.

        The row of the calibration data has no intervals, because the thresholds were chosen on
        them.
        """
        plan = self.cascade.plan
        targets = {
            "max_risk": plan.max_risk,
            "capacity": plan.capacity,
            "delta": plan.delta,
            "level": self.level,
        }
        rows = [self._calibration_row(), *(check.row() for check in self.checks)]
        return [{**row, **targets} for row in rows]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the rows as a dataframe."""
        return frame_from_rows(self.rows(), backend)

    def _calibration_row(self) -> dict[str, Any]:
        cascade = self.cascade
        reviews = cascade.answered[-1]
        row: dict[str, Any] = {"name": CALIBRATION, "n": cascade.n}
        for name, value in (("risk", cascade.risk), ("reviews", reviews), ("cost", cascade.cost)):
            row |= {name: value, f"{name}_low": math.nan, f"{name}_high": math.nan}
        row["excess"] = cascade.risk - cascade.plan.max_risk
        row["load_excess"] = (
            reviews - cascade.plan.capacity if cascade.plan.has_capacity_limit else math.nan
        )
        row["days_over"] = math.nan
        verdict = CHOSEN_HERE if cascade.attainable else "unattainable"
        row |= dict.fromkeys(("risk_verdict", "load_verdict", "verdict"), verdict)
        for name, share in zip(cascade.names, cascade.answered, strict=True):
            row |= {f"answered_{name}": share, f"risk_{name}": math.nan}
        return row
