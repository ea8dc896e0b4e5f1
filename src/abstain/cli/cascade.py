"""`abstain cascade`: choose thresholds for a cascade of models and a person, and check them."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

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
    repeatable,
)
from abstain.cli.output_folder import (
    REPORT,
    RESULTS,
    check_folder,
    current_command,
    make_files,
    write_and_print,
)
from abstain.cli.stages import CascadeSource, parse_stages, read_test_sets
from abstain.cli.subsets import parse_column_value, parse_column_values
from abstain.errors import FileFormatError, InputError
from abstain.typing import Scale

if TYPE_CHECKING:
    from abstain.evaluation import CascadeChecks
    from abstain.thresholds.cascade import Cascade

#: Exit status if no cascade attains the target.
UNATTAINABLE = 3

_LEVEL = 0.95
_CASCADE: Final = "cascade.json"


@dataclass(frozen=True, kw_only=True)
class CascadeTarget:
    """The target of the cascade."""

    max_risk: Annotated[
        float | None, Parameter(help="Largest risk of all answers, including those of the person")
    ] = None
    delta: Annotated[
        float | None, Parameter(help="Probability that the guarantee fails [default: 0.05]")
    ] = None
    capacity: Annotated[
        float | None,
        Parameter(
            help="Largest share of samples for the person; with --per-day, a number of samples"
        ),
    ] = None
    per_day: Annotated[
        int | None, Parameter(help="Number of samples per day; --capacity is then a number per day")
    ] = None
    overflow: Annotated[
        float | None,
        Parameter(help="Share of days that may exceed --capacity [default: 0.05]"),
    ] = None
    cost: Annotated[
        tuple[str, ...],
        repeatable("NAME=COST per sample of a stage or the person; error=COST of a loss of 1"),
    ] = ()
    ordered_by: Annotated[
        float | None,
        Parameter(help="Share of the calibration samples that order the candidates [default: 0.5]"),
    ] = None
    seed: Annotated[
        int | None, Parameter(help="Seed of the split of the calibration samples [default: 0]")
    ] = None

    def options(self) -> dict[str, Any]:
        """Return the passed options of `set_cascade`."""
        if self.max_risk is None:
            raise InputError(
                "name the largest risk with --max-risk, or a saved cascade with --rule"
            )
        names = ("max_risk", "delta", "capacity", "per_day", "overflow", "ordered_by", "seed")
        options = {name: getattr(self, name) for name in names}
        options = {name: value for name, value in options.items() if value is not None}
        if self.cost:
            options["costs"] = self._costs()
        return options

    def _costs(self) -> dict[str, float]:
        """Return the costs by name."""
        costs: dict[str, float] = {}
        for text in self.cost:
            name, _, cost_text = text.rpartition("=")
            try:
                cost = float(cost_text)
            except ValueError:
                cost = None
            if not name or cost is None:
                raise InputError(f"--cost takes NAME=COST, such as large=10; got {text!r}")
            costs[name] = cost
        return costs

    @property
    def flags(self) -> tuple[str, ...]:
        """Passed options, as flags."""
        names = self.__dataclass_fields__
        return tuple(to_flag(name) for name in names if getattr(self, name) not in {None, ()})


@dataclass(frozen=True, kw_only=True)
class CascadeInput:
    """Options for the predictions of the models, the answers of the person, and the test data."""

    stage: Annotated[
        tuple[str, ...],
        repeatable(
            "Models in the order of the stages: NAME=CONFIDENCE,CORRECT (columns of FILE; with "
            "--label NAME=CONFIDENCE,PREDICTION), NAME=COLUMN=VALUE (rows of FILE, matched by "
            "--id) or NAME=FILE"
        ),
    ] = ()
    person: Annotated[
        str | None, Parameter(help="Column with the correctness of the person: 1 or 0")
    ] = None
    person_error: Annotated[
        float | None, Parameter(help="Assumed error rate of the person [default: 0]")
    ] = None
    calibrate: Annotated[
        tuple[str, ...], repeatable("COLUMN=VALUE of the calibration rows of FILE")
    ] = ()
    apply: Annotated[
        tuple[str, ...],
        repeatable(
            "Test data: a file, COLUMN=VALUE of FILE, or one file per stage, separated by commas"
        ),
    ] = ()

    def source(self, file: Path | None, columns: Columns) -> CascadeSource:
        """Return the description of the calibration samples."""
        conditions = parse_column_values(self.calibrate, "--calibrate")
        return CascadeSource(file, parse_stages(self.stage), columns, conditions, self.person)

    def paths(self) -> list[Path]:
        """Return the files of --apply."""
        file_lists = [text for text in self.apply if parse_column_value(text) is None]
        return [Path(name) for file_list in file_lists for name in file_list.split(",")]


@dataclass(frozen=True, kw_only=True)
class CascadeFiles:
    """Input and output files of cascades."""

    rule: Annotated[
        Path | None, Parameter(help="Saved cascade to check, instead of choosing one")
    ] = None
    save: Annotated[Path | None, Parameter(help="JSON file for the cascade")] = None
    out: Annotated[
        Path | None, Parameter(help="Folder for cascade.json, results, figure and report.html")
    ] = None


_NO_TARGET, _NO_DATA, _NO_FILES = CascadeTarget(), CascadeInput(), CascadeFiles()


def cascade(
    file: Annotated[Path | None, Parameter(help="Calibration predictions of all models")] = None,
    /,
    *,
    data: Annotated[CascadeInput, Parameter(name="*")] = _NO_DATA,
    target: Annotated[CascadeTarget, Parameter(name="*")] = _NO_TARGET,
    loss: Loss = None,
    scale: Annotated[
        Scale | None,
        Parameter(help="Scale of the confidence columns, if their values are ambiguous"),
    ] = None,
    level: OptionalLevel = None,
    paths: Annotated[CascadeFiles, Parameter(name="*")] = _NO_FILES,
    columns: Annotated[Columns, COLUMNS_GROUP] = DEFAULT_COLUMNS,
) -> None:
    """Choose thresholds for a cascade of models and a person, with a guarantee.

    The command prints the thresholds, the share of samples that each stage answers, and the risk on
    each data set of --apply. The exit status is 3 if the target is unattainable. Values are
    fractions.
    """
    from abstain.report.output import CASCADE

    _check_options(columns, data, target, level)
    source = data.source(file, columns)
    input_files = [file, paths.rule, *source.files, *data.paths()]
    output = check_folder(paths.out, [_CASCADE, *RESULTS, REPORT], input_files)
    options: dict[str, Any] = {"loss": loss, "scale": scale}
    with show_status("Choosing"):
        calibration, calibration_notes = _read_calibration(source, data, paths)
        chosen_cascade = _get_cascade(calibration, target, options, paths)
        test_sets, test_notes = read_test_sets(data.apply, source, data.person_error)
    with show_status("Checking"):
        checks = ab.check_cascade(
            chosen_cascade,
            test_sets,
            calibration=calibration,
            notes=[*calibration_notes, *test_notes],
            level=_LEVEL if level is None else level,
            **options,
        )
    saved_files = _save_cascade(chosen_cascade, paths)
    write_and_print(
        lambda: CASCADE.terminal(checks),
        lambda: _make_files(checks, file),
        output,
        before=saved_files,
    )
    if not chosen_cascade.attainable:
        # Flush now, because a BrokenPipeError after the last handler would not be handled.
        sys.stdout.flush()
        raise SystemExit(UNATTAINABLE)


def _check_options(
    columns: Columns, data: CascadeInput, target: CascadeTarget, level: float | None
) -> None:
    """Raise an error if options have no effect."""
    unused = [to_flag(name) for name in ("by", "group", "weight") if getattr(columns, name)]
    if unused:
        raise InputError(
            f"a cascade is chosen and checked on all samples together; drop {', '.join(unused)}"
        )
    if target.overflow is not None and target.per_day is None:
        raise InputError(
            "--overflow is a share of days, so it requires --per-day; add --per-day, or drop "
            "--overflow"
        )
    if level is not None and not data.apply:
        raise InputError(
            "--level has no effect without the test data of --apply; add --apply, or drop it"
        )


def _read_calibration(
    source: CascadeSource, data: CascadeInput, paths: CascadeFiles
) -> tuple[dict[str, Any] | None, list[Any]]:
    """Return the calibration data with notes, or None if the cascade was saved before."""
    if paths.rule is not None:
        return None, []
    if not source.stages:
        raise InputError(
            "name the models with --stage, such as --stage small=conf_small,correct_small"
        )
    return source.read_calibration(data.person_error)


def _get_cascade(
    calibration: dict[str, Any] | None,
    target: CascadeTarget,
    options: dict[str, Any],
    paths: CascadeFiles,
) -> "Cascade":
    """Choose the thresholds of a cascade, or load a saved cascade."""
    if calibration is not None:
        return ab.set_cascade(calibration, **options, **target.options())
    if target.flags:
        raise InputError(f"--rule has thresholds; drop {', '.join(target.flags)}")
    return read_cascade(paths.rule or Path())


def read_cascade(path: Path) -> "Cascade":
    """Load a saved cascade, and raise an error if the file contains another object."""
    from abstain.tables import load
    from abstain.thresholds.cascade import Cascade

    cascade = load(path)
    if not isinstance(cascade, Cascade):
        raise FileFormatError(f"{path.name} contains a {type(cascade).__name__}, not a cascade")
    return cascade


def _save_cascade(cascade: "Cascade", paths: CascadeFiles) -> list[Path]:
    """Write the file of --save."""
    from abstain.tables import save

    return [] if paths.save is None else [save(cascade, paths.save)]


def _make_files(checks: "CascadeChecks", source: Path | None) -> dict[str, bytes]:
    """Return the contents of the files that --out writes."""
    from abstain.report.output import CASCADE
    from abstain.tables.state_files import json_file

    name = "" if source is None else source.name
    page = CASCADE.html(checks, source=name, command=current_command())
    tables = {"results": checks.rows()}
    if checks.frontier is None:
        files = make_files(tables, page)
    else:
        files = make_files(tables, page, checks, ("svg", "png"))
    return {_CASCADE: json_file(checks.cascade), **files}
