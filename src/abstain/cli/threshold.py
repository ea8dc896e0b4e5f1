"""`abstain threshold`: a threshold from calibration predictions, and what it keeps elsewhere."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from abstain.cli.applied_data import AppliedData, CalibrationFile, read_applied
from abstain.cli.columns import Columns, several
from abstain.cli.console import console, leave_word, working
from abstain.cli.out import REPORT, RESULTS, Out, command, place
from abstain.cli.parts import mixed, picked, picks_of, read_picked
from abstain.cli.reading import read_scored, told
from abstain.cli.target import Target, flag
from abstain.errors import FileFormatError, InputError
from abstain.evaluation import RuleChecks, check_rule, set_threshold
from abstain.evaluation.records import Finding
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule
from abstain.typing import Scale

#: The exit status when no threshold could be found that promises what was asked for.
UNATTAINABLE = 3

#: No option given: every column is looked for under its usual names.
_USUAL, _NOTHING = Columns(), Target()
_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where rules come from and go to."""

    rule: Annotated[
        Path | None, Parameter(help="check this saved rule instead of choosing a threshold")
    ] = None
    save: Annotated[Path | None, Parameter(help="save the rule as JSON in this file")] = None
    out: Annotated[
        Path | None, Parameter(help="folder for rule.json, results, figures and report.html")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What is looked at: which confidence, which loss, how surely."""

    score: Annotated[
        str | None, Parameter(help="the score (default: the only confidence, or msr)")
    ] = None
    loss: Annotated[str | None, Parameter(help="what counts as wrong (`abstain list losses`)")] = (
        None
    )
    scale: Annotated[
        Scale | None,
        Parameter(help="what a confidence column is measured in, where its values do not tell"),
    ] = None
    level: Annotated[
        float | None, Parameter(help="of the intervals, such as 0.9 [default: 0.95]")
    ] = None


_PLACES, _JUDGED = Places(), Judgment()

#: The rule in the folder of --out.
_RULE = "rule.json"


def threshold(
    file: Annotated[Path | None, Parameter(help="the calibration predictions")] = None,
    /,
    *,
    target: Annotated[Target, Parameter(name="*")] = _NOTHING,
    calibrate: Annotated[
        tuple[str, ...], several("choose on the rows of FILE that have COLUMN=VALUE alone")
    ] = (),
    apply: Annotated[
        tuple[str, ...],
        several("check the rule on this file or COLUMN=VALUE of FILE, mildest shift first"),
    ] = (),
    judged: Annotated[Judgment, Parameter(name="*")] = _JUDGED,
    places: Annotated[Places, Parameter(name="*")] = _PLACES,
    columns: Annotated[Columns, Parameter(name="*")] = _USUAL,
) -> None:
    """Choose the confidence from which on to answer, with a guarantee, and check it elsewhere.

    Prints the rule in words and a table of the calibration data and all data of --apply, which
    --by splits and --group checks group by group. The exit status is 3 when what was asked for is
    unattainable. Values are fractions.
    """
    chosen_on = CalibrationFile(file, picks_of(calibrate, "--calibrate"))
    _refuse_idle(apply, judged, columns, saved=places.rule is not None)
    read = [file, places.rule, *(Path(text) for text in apply if picked(text) is None)]
    to = place(places.out, [_RULE, *RESULTS, REPORT], read)
    with working("Choosing"):
        rule, calibration, notes = _rule(chosen_on, target, places, columns, judged)
        applied = _applied(apply, columns, rule.score, chosen_on)
    with working("Checking"):
        checks = check_rule(
            rule,
            applied.parts or {},
            loss=judged.loss,
            scale=judged.scale,
            level=_LEVEL if judged.level is None else judged.level,
            calibration=calibration,
            notes=[*notes, *applied.notes],
        )
    # Files first: whoever reads the table through `head` closes the pipe early.
    with working("Writing"):
        left = _leave(checks, file or places.rule, places.save, to)
    _print(checks, left)
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
        idle += [n for n in every if n not in idle and getattr(columns, n) != getattr(_USUAL, n)]
    if idle:
        flags = ", ".join(map(flag, idle))
        hint = ""
        if columns.by and not saved:
            hint = (
                f" To choose on one part of the file and check on another: --calibrate "
                f"{columns.by[0]}=VALUE --apply {columns.by[0]}=VALUE"
            )
        msg = f"{flags}: about the data of --apply, and there are none; add them or drop it.{hint}"
        raise InputError(msg)


def _rule(
    chosen_on: CalibrationFile, target: Target, places: Places, columns: Columns, judged: Judgment
) -> tuple[DecisionRule, Predictions | None, tuple[str | Finding, ...]]:
    """Return the rule, the data it was chosen on if they are known, and the notes on these."""
    file, picks = chosen_on.file, chosen_on.picks
    if places.rule is not None:
        if file is not None or picks or target.given or judged.score is not None:
            given = [*(["the calibration file"] if file else []), *target.given]
            given += ["--calibrate"] if picks else []
            given += ["--score"] if judged.score is not None else []
            msg = f"--rule brings its own threshold and score; drop {', '.join(given)}"
            raise InputError(msg)
        return read_rule(places.rule), None, ()
    if file is None:
        msg = "name the file of calibration predictions, or a saved rule with --rule"
        raise InputError(msg)
    method, options = target.chosen()
    # What splits and groups the data of --apply need not be in the calibration data.
    whole = replace(columns, by=(), group=None)
    score = judged.score or ""
    reading = (
        read_scored(file, whole, score) if not picks else read_picked(file, whole, score, picks)
    )
    calibration, notes = reading.only(), told(reading)
    more: dict[str, Any] = {"score": judged.score, "loss": judged.loss, "scale": judged.scale}
    rule = set_threshold(calibration, method=method, **more, **options)
    return rule, calibration, (*notes, *mixed(file, columns.by, picks))


def read_rule(path: Path) -> DecisionRule:
    """Read a saved rule; refuse a file that holds something else."""
    from abstain.tables import load

    found = load(path)
    if not isinstance(found, DecisionRule):
        msg = f"{path.name} holds no decision rule but a {type(found).__name__}"
        raise FileFormatError(msg)
    return found


def _applied(
    given: tuple[str, ...], columns: Columns, score: str, chosen_on: CalibrationFile
) -> AppliedData:
    return read_applied(given, columns, score, chosen_on) if given else AppliedData({}, ())


def _leave(
    checks: RuleChecks, source: Path | None, saved: Path | None, to: Out | None
) -> list[Path]:
    from abstain.tables import save

    # The rule of the folder is saved with the rest of it.
    apart = saved is not None and (to is None or saved.absolute() != (to.folder / _RULE).absolute())
    left = [save(checks.rule, saved)] if saved is not None and apart else []
    return left if to is None else [*left, *to.leave(_files(checks, source))]


def _files(checks: RuleChecks, source: Path | None) -> dict[str, bytes]:
    from abstain.report import threshold_html
    from abstain.report.files.figures import display_files
    from abstain.report.subjects.rule.document import rule_figures
    from abstain.tables.results import result_files
    from abstain.tables.saved import text_file

    files = {_RULE: text_file(checks.rule)}
    if rows := checks.rows():
        files |= result_files(rows)
    name = "" if source is None else source.name
    files[REPORT] = threshold_html(checks, source=name, command=command()).encode()
    return files | display_files(rule_figures(checks), ("svg", "png"))


def _print(checks: RuleChecks, left: list[Path]) -> None:
    from abstain.report import threshold_terminal

    console().print(threshold_terminal(checks))
    leave_word(left)
