"""`abstain threshold`: choose a threshold on calibration data, and check it on test data."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

import abstain as ab
from abstain.cli.command_line import to_flag
from abstain.cli.console import show_status
from abstain.cli.options import (
    COLUMNS_GROUP,
    DEFAULT_COLUMNS,
    Columns,
    Loss,
    OptionalLevel,
    list_option,
    repeatable,
)
from abstain.cli.output_folder import (
    REPORT,
    RESULTS,
    OutputFolder,
    check_folder,
    current_command,
    make_files,
    write_and_print,
)
from abstain.cli.predictions import read_with_score
from abstain.cli.shift import ShiftOptions
from abstain.cli.subsets import (
    CalibrationSource,
    parse_column_value,
    parse_column_values,
    pooled_column_notes,
    read_subset,
    read_test_data,
)
from abstain.errors import FileFormatError, InputError
from abstain.thresholds import RULES, DecisionRule
from abstain.thresholds.catalogue import DEFAULT_DELTA
from abstain.thresholds.rule import PREDICTION
from abstain.typing import Scale

if TYPE_CHECKING:
    from abstain._foundation.notes import Note
    from abstain.evaluation import RuleChecks
    from abstain.predictions import Predictions

#: Exit status if no threshold attains the target.
UNATTAINABLE = 3

_LEVEL = 0.95

_NO_SHIFT: Final = ShiftOptions()


@dataclass(frozen=True, kw_only=True)
class Target:
    """Options for the target of the threshold, which is a risk, a coverage or a cost."""

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
        list_option("Starting coverages of learn_then_test [default: 0.75 0.5 0.25]"),
    ] = ()
    shift_options: Annotated[ShiftOptions, Parameter(name="*")] = _NO_SHIFT

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
        repeatable(
            "SUBSET=RISK for a threshold (with --per, each threshold) with several limits; SUBSET "
            "is overall, group, prediction, label (false negatives of a class), or one value such "
            "as label:cat"
        ),
    ] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Passed options, as flags."""
        names = ("max_risk", "coverage", "cost", "delta", "method", "risk", "per")
        passed = [name for name in names if getattr(self, name) is not None]
        passed += [name for name in ("starts", "joint", "limit") if getattr(self, name)]
        return (*map(to_flag, passed), *self.shift_options.flags)

    def options(self, columns: Columns) -> dict[str, Any]:
        """Return the passed options of `set_threshold`."""
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
            options["per"] = PREDICTION if self.is_per_prediction(columns) else "group"
        return {name: value for name, value in options.items() if value is not None}

    def is_per_prediction(self, columns: Columns) -> bool:
        """Return whether --per requests a threshold for each predicted class."""
        return self.per == PREDICTION or (self.per is not None and self.per == columns.prediction)

    def group_column(self, columns: Columns) -> str | None:
        """Return the group column of the calibration data, or None if no group is required."""
        if self.per is not None and self.per == columns.label:
            raise InputError(
                f"--per {self.per} is the true class, which is unknown for new samples. Use --per "
                f"{PREDICTION}, the predicted class, or --limit label=RISK, one threshold with a "
                "limit in each true class"
            )
        if self.per is not None and not self.is_per_prediction(columns):
            return self.per
        grouped = any(text.startswith("group") for text in self.limit)
        return columns.group if grouped else None

    def without_groups(self, columns: Columns) -> Columns:
        """Return the columns. A group column that only the limits use is removed."""
        is_used = columns.group is not None and self.group_column(columns) == columns.group
        return replace(columns, group=None) if is_used else columns

    def _limits(self) -> dict[str, float]:
        """Return the limits by subset."""
        limits: dict[str, float] = {}
        for text in self.limit:
            subset, _, risk_text = text.rpartition("=")
            try:
                risk = float(risk_text)
            except ValueError:
                risk = None
            if not subset or risk is None:
                raise InputError(f"--limit takes SUBSET=RISK, such as label:cat=0.1; got {text!r}")
            if subset in limits:
                raise InputError(f"--limit {subset} occurs twice; drop one")
            limits[subset] = risk
        return limits


@dataclass(frozen=True, kw_only=True)
class RuleFiles:
    """Input and output files of rules."""

    rule: Annotated[
        Path | None, Parameter(help="Saved rule to check, instead of choosing a threshold")
    ] = None
    save: Annotated[Path | None, Parameter(help="JSON file for the rule")] = None
    out: Annotated[
        Path | None, Parameter(help="Folder for rule.json, results, figures and report.html")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Options for the score, the loss and the intervals."""

    score: Annotated[str | None, Parameter(help="Score (default: the only confidence, or msr)")] = (
        None
    )
    loss: Loss = None
    scale: Annotated[
        Scale | None,
        Parameter(help="Scale of the confidence column, if its values are ambiguous"),
    ] = None
    positive: Annotated[
        str | None,
        Parameter(help="Positive class of sensitivity and specificity [default: second of two]"),
    ] = None
    level: OptionalLevel = None


_NO_TARGET, _NO_FILES, _SCORING = Target(), RuleFiles(), ScoreOptions()

#: Name of the rule in the folder of --out.
_RULE = "rule.json"


def threshold(
    file: Annotated[Path | None, Parameter(help="Calibration predictions")] = None,
    /,
    *,
    target: Annotated[Target, Parameter(name="*")] = _NO_TARGET,
    calibrate: Annotated[
        tuple[str, ...], repeatable("COLUMN=VALUE of the calibration rows of FILE")
    ] = (),
    apply: Annotated[
        tuple[str, ...],
        repeatable("Test data: a file or COLUMN=VALUE of FILE, in the order of increasing shift"),
    ] = (),
    scoring: Annotated[ScoreOptions, Parameter(name="*")] = _SCORING,
    paths: Annotated[RuleFiles, Parameter(name="*")] = _NO_FILES,
    columns: Annotated[Columns, COLUMNS_GROUP] = DEFAULT_COLUMNS,
) -> None:
    """Choose a threshold with a guarantee, and check it on other data.

    The command prints the rule, and a table of results on the calibration data and on each data set
    of --apply. --by splits the data of --apply, and --group checks them separately for each group.
    --per chooses one threshold per group. --limit chooses a threshold with several limits. The exit
    status is 3 if the target is unattainable. Values are fractions.
    """
    from abstain.report import threshold_terminal

    calibration_source = CalibrationSource(file, parse_column_values(calibrate, "--calibrate"))
    checked_columns = target.without_groups(columns)
    _check_options(apply, scoring, checked_columns, is_saved_rule=paths.rule is not None)
    test_files = [Path(text) for text in apply if parse_column_value(text) is None]
    file_names = [_RULE, *RESULTS, REPORT]
    output = check_folder(paths.out, file_names, [file, paths.rule, *test_files])
    with show_status("Choosing"):
        rule, calibration, notes = _get_rule(calibration_source, target, paths, columns, scoring)
        test_columns = _with_rule_groups(columns, rule)
        test_data = read_test_data(apply, test_columns, rule.score, calibration_source)
    with show_status("Checking"):
        checks = ab.check_rule(
            rule,
            test_data.data_sets,
            loss=scoring.loss,
            scale=scoring.scale,
            level=_LEVEL if scoring.level is None else scoring.level,
            calibration=calibration,
            positive=scoring.positive,
            notes=[*notes, *test_data.notes],
        )
    saved_files = _save_rule(checks.rule, paths.save, output)
    source = file or paths.rule
    write_and_print(
        lambda: threshold_terminal(checks),
        lambda: _make_files(checks, source, output),
        output,
        before=saved_files,
    )
    if not rule.attainable:
        # Flush now, because a BrokenPipeError after the last handler would not be handled.
        sys.stdout.flush()
        raise SystemExit(UNATTAINABLE)


def _check_options(
    test_data: tuple[str, ...], scoring: ScoreOptions, columns: Columns, *, is_saved_rule: bool
) -> None:
    """Raise an error if there are options for test data, but no test data."""
    if test_data:
        return
    unused = [name for name in ("by", "group") if getattr(columns, name)]
    unused += [name for name in ("level", "positive") if getattr(scoring, name) is not None]
    if is_saved_rule:
        unused += [name for name in ("loss", "scale") if getattr(scoring, name) is not None]
        for name in columns.__dataclass_fields__:
            is_default = getattr(columns, name) == getattr(DEFAULT_COLUMNS, name)
            if name not in unused and not is_default:
                unused.append(name)
    if not unused:
        return
    verb = "has" if len(unused) == 1 else "have"
    hint = ""
    if columns.by and not is_saved_rule:
        hint = (
            " To choose the rule on one subset of the file and check it on another: --calibrate "
            f"{columns.by[0]}=VALUE --apply {columns.by[0]}=VALUE"
        )
    raise InputError(
        f"{', '.join(map(to_flag, unused))} {verb} no effect without the test data of --apply; add "
        f"--apply, or drop {'it' if len(unused) == 1 else 'them'}.{hint}"
    )


def _with_rule_groups(columns: Columns, rule: DecisionRule) -> Columns:
    """Return the columns of the test data.

    The group column is the column by which the rule selects its threshold.
    """
    if rule.per in {"", PREDICTION}:
        return columns
    if columns.group not in {None, rule.per}:
        raise InputError(
            f"--group {columns.group} has no effect, because the rule has one threshold for each "
            f"{rule.per!r} and is checked in these groups; drop it"
        )
    return replace(columns, group=rule.per)


def _get_rule(
    calibration_source: CalibrationSource,
    target: Target,
    paths: RuleFiles,
    columns: Columns,
    scoring: ScoreOptions,
) -> "tuple[DecisionRule, Predictions | None, tuple[str | Note, ...]]":
    """Choose or load a rule, and return the rule with its calibration data and notes."""
    file = calibration_source.file
    conditions = calibration_source.conditions
    if paths.rule is not None:
        unused = [*(["the calibration file"] if file else []), *target.flags]
        unused += ["--calibrate"] if conditions else []
        unused += ["--score"] if scoring.score is not None else []
        if unused:
            raise InputError(f"--rule has a threshold and a score; drop {', '.join(unused)}")
        return read_rule(paths.rule), None, ()
    if file is None:
        raise InputError("name the file of calibration predictions, or a saved rule with --rule")
    options = target.options(columns)
    target.shift_options.check(columns)
    # The calibration data need not have the columns that split and group the test data.
    calibration_columns = replace(columns, by=(), group=target.group_column(columns))
    calibration_columns = target.shift_options.with_ratio_column(calibration_columns)
    score = scoring.score or ""
    if conditions:
        reading = read_subset(file, calibration_columns, score, conditions)
    else:
        reading = read_with_score(file, calibration_columns, score)
    calibration, notes = reading.only(), reading.notes
    if target.shift_options.is_requested:
        calibration, ratio_options, ratio_notes = target.shift_options.apply_ratios(
            calibration, columns, score, calibration_source
        )
        options |= ratio_options
        notes = (*notes, *ratio_notes)
    options |= {"score": scoring.score, "loss": scoring.loss, "scale": scoring.scale}
    rule = ab.set_threshold(calibration, **options)
    if target.per is not None and not target.is_per_prediction(columns):
        rule = replace(rule, per=target.per)
    return rule, calibration, (*notes, *pooled_column_notes(file, columns.by, conditions))


def read_rule(path: Path) -> DecisionRule:
    """Load a saved rule, and raise an error if the file contains another object."""
    from abstain.tables import load

    rule = load(path)
    if not isinstance(rule, DecisionRule):
        raise FileFormatError(f"{path.name} contains a {type(rule).__name__}, not a decision rule")
    return rule


def _save_rule(rule: DecisionRule, path: Path | None, output: OutputFolder | None) -> list[Path]:
    """Write the rule to the file of --save, unless --out writes the same file."""
    from abstain.tables import save

    if path is None:
        return []
    if output is not None and path.absolute() == (output.folder / _RULE).absolute():
        return []
    return [save(rule, path)]


def _make_files(
    checks: "RuleChecks", source: Path | None, output: OutputFolder | None
) -> dict[str, bytes]:
    from abstain.report.document import ReportOptions
    from abstain.report.output import RULE
    from abstain.report.render import render
    from abstain.tables.state_files import json_file

    name = "" if source is None else source.name
    inputs = [] if output is None else output.describe_inputs()
    hashes = {entry["name"]: entry["sha256"] for entry in inputs if entry["sha256"]}
    options = ReportOptions(source=name, command=current_command(), input_hashes=hashes)
    page = str(render(RULE.to_document(checks, options), "html"))
    files = make_files({"results": checks.rows()}, page, checks, ("svg", "png"))
    return {_RULE: json_file(checks.rule), **files}
