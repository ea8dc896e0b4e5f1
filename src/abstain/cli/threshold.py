"""`abstain threshold`: a threshold from calibration predictions, and what it keeps elsewhere."""

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from abstain._foundation.files import make_folder
from abstain.cli._applied import Applied, read_applied, read_scored
from abstain.cli._console import console, leave_word, working
from abstain.cli._words import ARGUMENTS
from abstain.cli.chance import Level
from abstain.cli.columns import Columns, several
from abstain.cli.target import Target
from abstain.errors import FileFormatError, InputError
from abstain.evaluation import RuleChecks, check_rule, set_threshold
from abstain.predictions import Predictions
from abstain.thresholds import DecisionRule
from abstain.typing import Scale

#: The exit status when no threshold could be found that promises what was asked for.
UNATTAINABLE = 3

#: No option given: every column is looked for under its usual names.
_USUAL, _NOTHING = Columns(), Target()


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


_PLACES = Places()


def threshold(
    file: Annotated[Path | None, Parameter(help="the calibration predictions")] = None,
    /,
    *,
    target: Annotated[Target, Parameter(name="*")] = _NOTHING,
    apply: Annotated[
        tuple[Path, ...], several("predictions on which to check the rule, mildest shift first")
    ] = (),
    score: Annotated[
        str | None, Parameter(help="the score (default: the only confidence, or msr)")
    ] = None,
    loss: Annotated[
        str | None, Parameter(help="what counts as wrong (`abstain list losses`)")
    ] = None,
    scale: Annotated[
        Scale | None,
        Parameter(help="what a confidence column is measured in, where its values do not tell"),
    ] = None,
    level: Level = 0.95,
    places: Annotated[Places, Parameter(name="*")] = _PLACES,
    columns: Annotated[Columns, Parameter(name="*")] = _USUAL,
) -> None:
    """Choose the confidence from which on to answer, with a guarantee, and check it elsewhere.

    Prints the rule in words and a table of the calibration data and every --apply file, which
    --by splits. The exit status is 3 when what was asked for is unattainable.
    Values are fractions.
    """
    whole = replace(columns, by=())
    with working("Choosing"):
        more: dict[str, Any] = {"loss": loss, "scale": scale}
        rule, calibration, notes = _rule(file, target, places, whole, {"score": score, **more})
        applied = _applied(apply, columns, rule.score)
    with working("Checking"):
        checks = check_rule(
            rule,
            applied.parts or {},
            level=level,
            calibration=calibration,
            notes=[*notes, *applied.notes],
            **more,
        )
    # Files first: whoever reads the table through `head` closes the pipe early.
    with working("Writing"):
        left = _leave(checks, file or places.rule, places)
    _print(checks, left)
    if not rule.attainable:
        # A pipe closed by its reader would otherwise be noticed after the last handler.
        sys.stdout.flush()
        raise SystemExit(UNATTAINABLE)


def _rule(
    file: Path | None,
    target: Target,
    places: Places,
    columns: Columns,
    how: dict[str, Any],
) -> tuple[DecisionRule, Predictions | None, tuple[str, ...]]:
    """Return the rule, the data it was chosen on if they are known, and the notes on these."""
    score: str | None = how["score"]
    if places.rule is not None:
        if file is not None or target.given or score is not None:
            given = [*(["the calibration file"] if file else []), *target.given]
            given += ["--score"] if score is not None else []
            msg = f"--rule brings its own threshold and score; drop {', '.join(given)}"
            raise InputError(msg)
        return read_rule(places.rule), None, ()
    if file is None:
        msg = "name the file of calibration predictions, or a saved rule with --rule"
        raise InputError(msg)
    method, options = target.chosen()
    reading = read_scored(file, columns, score or "")
    calibration = reading.only()
    rule = set_threshold(calibration, method=method, **how, **options)
    return rule, calibration, reading.notes


def read_rule(path: Path) -> DecisionRule:
    """Read a saved rule; refuse a file that holds something else."""
    from abstain.tables import load

    found = load(path)
    if not isinstance(found, DecisionRule):
        msg = f"{path.name} holds no decision rule but a {type(found).__name__}"
        raise FileFormatError(msg)
    return found


def _applied(files: tuple[Path, ...], columns: Columns, score: str) -> Applied:
    return read_applied(files, columns, score) if files else Applied({}, ())


def _leave(checks: RuleChecks, source: Path | None, places: Places) -> list[Path]:
    from abstain.report import write_rule_figures, write_threshold
    from abstain.tables import save, write_results

    left = [] if places.save is None else [save(checks.rule, places.save)]
    if places.out is None:
        return left
    make_folder(places.out)
    left.append(save(checks.rule, places.out / "rule.json"))
    if rows := checks.rows():
        left += write_results(rows, places.out)
    command = shlex.join(["abstain", *ARGUMENTS.get()])
    name = "" if source is None else source.name
    left.append(write_threshold(checks, places.out / "report.html", source=name, command=command))
    if write_rule_figures(checks, places.out / "figures"):
        left.append(places.out / "figures")
    return left


def _print(checks: RuleChecks, left: list[Path]) -> None:
    from abstain.report import threshold_terminal

    console().print(threshold_terminal(checks))
    leave_word(left)
