"""`abstain threshold`: a threshold from calibration predictions, and what it keeps elsewhere."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

import abstain as ab
from abstain.cli.command_line import flag
from abstain.cli.console import working
from abstain.cli.options import USUAL_COLUMNS, Columns, LevelIfGiven, Loss, in_a_row, several
from abstain.cli.out import REPORT, RESULTS, Out, command, files_of, finish, place
from abstain.cli.parts import (
    AppliedData,
    CalibrationFile,
    mixed,
    picked,
    picks_of,
    read_applied,
    read_picked,
)
from abstain.cli.predictions import read_scored
from abstain.cli.shift import Shifted
from abstain.errors import FileFormatError, InputError
from abstain.thresholds import RULES, DecisionRule
from abstain.thresholds.catalogue import DEFAULT_DELTA
from abstain.thresholds.rule import PREDICTION
from abstain.typing import Scale

if TYPE_CHECKING:
    from abstain._foundation.notes import Note
    from abstain.evaluation import RuleChecks
    from abstain.predictions import Predictions

#: The exit status when no threshold could be found that promises what was asked for.
UNATTAINABLE = 3

_LEVEL = 0.95

_HERE: Final = Shifted()


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is asked of the threshold: one of a risk, a coverage and a cost."""

    max_risk: Annotated[float | None, Parameter(help="Largest risk of the accepted samples")] = None
    coverage: Annotated[float | None, Parameter(help="Smallest coverage")] = None
    cost: Annotated[
        float | None, Parameter(help="Cost of an abstention, relative to the cost of an error")
    ] = None
    delta: Annotated[
        float | None,
        Parameter(help=f"Probability that the guarantee fails [default: {DEFAULT_DELTA}]"),
    ] = None
    method: Annotated[
        str | None,
        Parameter(
            help=f"Rule: {', '.join(RULES)} [default: sgr for a risk, coverage_guarantee "
            "for a coverage, cost for a cost]"
        ),
    ] = None
    risk: Annotated[
        Literal["selective", "generalized"] | None,
        Parameter(help="Guaranteed risk of learn_then_test [default: selective]"),
    ] = None
    starts: Annotated[
        tuple[float, ...],
        in_a_row("Starting coverages of learn_then_test [default: 0.75 0.5 0.25]"),
    ] = ()
    shifted: Annotated[Shifted, Parameter(name="*")] = _HERE

    per: Annotated[
        str | None,
        Parameter(
            help="Column (or prediction, for the predicted class) whose values have separate "
            "thresholds and guarantees"
        ),
    ] = None
    joint: Annotated[
        bool,
        Parameter(
            help="Let the guarantees of --per hold jointly with probability 1 - delta", negative=()
        ),
    ] = False
    limit: Annotated[
        tuple[str, ...],
        several(
            "SUBSET=RISK for one threshold with several limits; SUBSET is overall, group, "
            "prediction, label (false negatives of a class), or one value such as label:cat"
        ),
    ] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given, as flags."""
        names = ("max_risk", "coverage", "cost", "delta", "method", "risk", "per")
        found = [name for name in names if getattr(self, name) is not None]
        found += [name for name in ("starts", "joint", "limit") if getattr(self, name)]
        return (*map(flag, found), *self.shifted.given)

    def options(self, columns: Columns) -> dict[str, Any]:
        """Return the options of `set_threshold` that were given."""
        options = {
            "method": self.method,
            "max_risk": self.max_risk,
            "coverage": self.coverage,
            "abstention_cost": self.cost,
            "delta": self.delta,
            "risk": self.risk,
            "starts": self.starts or None,
            "joint": self.joint or None,
            "limits": self._limits() or None,
        }
        if self.per is not None:
            options["per"] = PREDICTION if self.predicted(columns) else "group"
        return {name: value for name, value in options.items() if value is not None}

    def predicted(self, columns: Columns) -> bool:
        """Whether --per means the predicted class."""
        return self.per == PREDICTION or (self.per is not None and self.per == columns.prediction)

    def groups(self, columns: Columns) -> str | None:
        """Return the column of groups that the calibration data must have."""
        if self.per is None:
            grouped = any(text.startswith("group") for text in self.limit)
            return columns.group if grouped else None
        if self.per == columns.label:
            raise InputError(
                f"--per {self.per}: the true class is not known when a sample is to be answered. "
                f"Take --per {PREDICTION}, the predicted class, or --limit label=RISK, which keeps "
                "one threshold within a limit in each true class"
            )
        return None if self.predicted(columns) else self.per

    def without_groups(self, columns: Columns) -> Columns:
        """Return the columns without groups that limits are about: they are in use already."""
        used = columns.group is not None and self.groups(columns) == columns.group
        return replace(columns, group=None) if used else columns

    def _limits(self) -> dict[str, float]:
        """Return the limits by what they are about, each once."""
        limits: dict[str, float] = {}
        for text in self.limit:
            what, mark, most = text.rpartition("=")
            try:
                risk = float(most)
            except ValueError:
                mark = ""
            if not (mark and what):
                raise InputError(f"--limit takes WHAT=RISK, such as label:cat=0.1; got {text!r}")
            if what in limits:
                raise InputError(f"--limit {what} is given twice; drop one")
            limits[what] = risk
        return limits


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where rules come from and go to."""

    rule: Annotated[
        Path | None, Parameter(help="Saved rule to check, instead of choosing a threshold")
    ] = None
    save: Annotated[Path | None, Parameter(help="JSON file for the rule")] = None
    out: Annotated[
        Path | None, Parameter(help="Folder for rule.json, results, figures and report.html")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What is looked at: which confidence, which loss, how surely."""

    score: Annotated[str | None, Parameter(help="Score (default: the only confidence, or msr)")] = (
        None
    )
    loss: Loss = None
    scale: Annotated[
        Scale | None,
        Parameter(help="Scale of the confidence column, if its values are ambiguous"),
    ] = None
    level: LevelIfGiven = None


_NOTHING, _PLACES, _JUDGED = Target(), Places(), Judgment()

#: The rule in the folder of --out.
_RULE = "rule.json"


def threshold(
    file: Annotated[Path | None, Parameter(help="Calibration predictions")] = None,
    /,
    *,
    target: Annotated[Target, Parameter(name="*")] = _NOTHING,
    calibrate: Annotated[
        tuple[str, ...], several("COLUMN=VALUE of the calibration rows of FILE")
    ] = (),
    apply: Annotated[
        tuple[str, ...],
        several("Test data: a file or COLUMN=VALUE of FILE, in the order of increasing shift"),
    ] = (),
    judged: Annotated[Judgment, Parameter(name="*")] = _JUDGED,
    places: Annotated[Places, Parameter(name="*")] = _PLACES,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
) -> None:
    """Choose a threshold with a guarantee, and check it on other data.

    The command prints the rule and a table of the calibration data and all data of --apply, which
    --by splits and --group checks separately for each group. --per chooses one threshold per
    group; --limit chooses one threshold with several limits. The exit status is 3 if the target
    is unattainable. Values are fractions.
    """
    from abstain.report import threshold_terminal

    chosen_on = CalibrationFile(file, picks_of(calibrate, "--calibrate"))
    _refuse_idle(apply, judged, target.without_groups(columns), saved=places.rule is not None)
    read = [file, places.rule, *(Path(text) for text in apply if picked(text) is None)]
    to = place(places.out, [_RULE, *RESULTS, REPORT], read)
    with working("Choosing"):
        rule, calibration, notes = _rule(chosen_on, target, places, columns, judged)
        applied = _applied(apply, _grouped(columns, rule), rule.score, chosen_on)
    with working("Checking"):
        checks = ab.check_rule(
            rule,
            applied.parts or {},
            loss=judged.loss,
            scale=judged.scale,
            level=_LEVEL if judged.level is None else judged.level,
            calibration=calibration,
            notes=[*notes, *applied.notes],
        )
    saved = _saved_apart(checks, places.save, to)
    source = file or places.rule
    finish(lambda: threshold_terminal(checks), lambda: _files(checks, source), to, before=saved)
    if not rule.attainable:
        # A pipe closed by its reader would otherwise be noticed after the last handler.
        sys.stdout.flush()
        raise SystemExit(UNATTAINABLE)


def _refuse_idle(
    applied: tuple[str, ...], judged: Judgment, columns: Columns, *, saved: bool
) -> None:
    """Refuse options about the data of --apply where there are none."""
    if applied:
        return
    idle = [name for name in ("by", "group") if getattr(columns, name)]
    idle += [] if judged.level is None else ["level"]
    if saved:
        idle += [n for n in ("loss", "scale") if getattr(judged, n) is not None]
        every = columns.__dataclass_fields__
        idle += [
            n for n in every if n not in idle and getattr(columns, n) != getattr(USUAL_COLUMNS, n)
        ]
    if idle:
        flags = ", ".join(map(flag, idle))
        hint = ""
        if columns.by and not saved:
            hint = (
                f" To choose on one part of the file and check on another: --calibrate "
                f"{columns.by[0]}=VALUE --apply {columns.by[0]}=VALUE"
            )
        raise InputError(
            f"{flags}: about the data of --apply, and there are none; add them or drop it.{hint}"
        )


def _grouped(columns: Columns, rule: DecisionRule) -> Columns:
    """Return the columns to read for a rule: those that say which threshold is whose."""
    if rule.per in {"", PREDICTION}:
        return columns
    if columns.group not in {None, rule.per}:
        raise InputError(
            f"--group {columns.group}: the rule has a threshold for each {rule.per!r}, and these "
            "are the groups it is checked in; drop it"
        )
    return replace(columns, group=rule.per)


def _rule(
    chosen_on: CalibrationFile, target: Target, places: Places, columns: Columns, judged: Judgment
) -> "tuple[DecisionRule, Predictions | None, tuple[str | Note, ...]]":
    """Return the rule, the data it was chosen on if they are known, and the notes on these."""
    file, picks = chosen_on.file, chosen_on.picks
    if places.rule is not None:
        if file is not None or picks or target.given or judged.score is not None:
            given = [*(["the calibration file"] if file else []), *target.given]
            given += ["--calibrate"] if picks else []
            given += ["--score"] if judged.score is not None else []
            raise InputError(f"--rule brings its own threshold and score; drop {', '.join(given)}")
        return read_rule(places.rule), None, ()
    if file is None:
        raise InputError("name the file of calibration predictions, or a saved rule with --rule")
    options = target.options(columns)
    # What splits and groups the data of --apply need not be in the calibration data.
    target.shifted.refuse_idle(columns)
    whole = target.shifted.reading(replace(columns, by=(), group=target.groups(columns)))
    score = judged.score or ""
    reading = (
        read_scored(file, whole, score) if not picks else read_picked(file, whole, score, picks)
    )
    calibration, notes = reading.only(), reading.notes
    if target.shifted.asked:
        calibration, found, said = target.shifted.weighed(calibration, columns, score, chosen_on)
        options, notes = options | found, (*notes, *said)
    options |= {"score": judged.score, "loss": judged.loss, "scale": judged.scale}
    rule = ab.set_threshold(calibration, **options)
    if target.per is not None and not target.predicted(columns):
        rule = replace(rule, per=target.per)
    return rule, calibration, (*notes, *mixed(file, columns.by, picks))


def read_rule(path: Path) -> DecisionRule:
    """Read a saved rule; refuse a file that holds something else."""
    from abstain.tables import load

    found = load(path)
    if not isinstance(found, DecisionRule):
        raise FileFormatError(f"{path.name} holds no decision rule but a {type(found).__name__}")
    return found


def _applied(
    given: tuple[str, ...], columns: Columns, score: str, chosen_on: CalibrationFile
) -> AppliedData:
    return read_applied(given, columns, score, chosen_on) if given else AppliedData({}, ())


def _saved_apart(checks: "RuleChecks", saved: Path | None, to: Out | None) -> list[Path]:
    """Save the rule where --save says, unless that is the folder in which all is left."""
    from abstain.tables import save

    apart = saved is not None and (to is None or saved.absolute() != (to.folder / _RULE).absolute())
    return [save(checks.rule, saved)] if saved is not None and apart else []


def _files(checks: "RuleChecks", source: Path | None) -> dict[str, bytes]:
    from abstain.report import threshold_html
    from abstain.tables.state_files import json_file

    name = "" if source is None else source.name
    page = threshold_html(checks, source=name, command=command())
    left = files_of({"results": checks.rows()}, page, checks, ("svg", "png"))
    return {_RULE: json_file(checks.rule), **left}
