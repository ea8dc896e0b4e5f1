"""`abstain cascade`: who answers (a model, a larger one, a person), with a guarantee."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

import abstain as ab
from abstain.cli.command_line import to_flag
from abstain.cli.console import show_status
from abstain.cli.options import DEFAULT_COLUMNS, Columns, Loss, OptionalLevel, repeatable
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

#: The exit status when nothing could be found that keeps what was asked for.
UNATTAINABLE = 3

_LEVEL = 0.95
_CASCADE: Final = "cascade.json"


@dataclass(frozen=True, kw_only=True)
class CascadeTarget:
    """What is asked of the cascade."""

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
        """Return the options of `set_cascade` that were given."""
        if self.max_risk is None:
            raise InputError(
                "name the largest risk with --max-risk, or a saved cascade with --rule"
            )
        names = ("max_risk", "delta", "capacity", "per_day", "overflow", "ordered_by", "seed")
        found = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        return found | ({"costs": self._costs()} if self.cost else {})

    def _costs(self) -> dict[str, float]:
        out: dict[str, float] = {}
        for text in self.cost:
            name, mark, price = text.rpartition("=")
            try:
                out[name] = float(price)
            except ValueError:
                mark = ""
            if not mark or not name:
                raise InputError(f"--cost takes NAME=COST, such as large=10; got {text!r}")
        return out

    @property
    def flags(self) -> tuple[str, ...]:
        """The options that were given, as flags."""
        return tuple(
            to_flag(n) for n in self.__dataclass_fields__ if getattr(self, n) not in {None, ()}
        )


@dataclass(frozen=True, kw_only=True)
class CascadeData:
    """Where the models are found, what is known of the person, and on what the cascade is used."""

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
        """Return where the calibration samples are."""
        picks = parse_column_values(self.calibrate, "--calibrate")
        return CascadeSource(file, parse_stages(self.stage), columns, picks, self.person)

    def paths(self) -> list[Path]:
        """Return the files of --apply."""
        files = [text for text in self.apply if parse_column_value(text) is None]
        return [Path(part) for text in files for part in text.split(",")]


@dataclass(frozen=True, kw_only=True)
class CascadeFiles:
    """Where cascades come from and go to."""

    rule: Annotated[
        Path | None, Parameter(help="Saved cascade to check, instead of choosing one")
    ] = None
    save: Annotated[Path | None, Parameter(help="JSON file for the cascade")] = None
    out: Annotated[
        Path | None, Parameter(help="Folder for cascade.json, results, figure and report.html")
    ] = None


_NOTHING, _SAMPLES, _PLACES = CascadeTarget(), CascadeData(), CascadeFiles()


def cascade(
    file: Annotated[Path | None, Parameter(help="Calibration predictions of all models")] = None,
    /,
    *,
    data: Annotated[CascadeData, Parameter(name="*")] = _SAMPLES,
    target: Annotated[CascadeTarget, Parameter(name="*")] = _NOTHING,
    loss: Loss = None,
    scale: Annotated[
        Scale | None,
        Parameter(help="Scale of the confidence columns, if their values are ambiguous"),
    ] = None,
    level: OptionalLevel = None,
    paths: Annotated[CascadeFiles, Parameter(name="*")] = _PLACES,
    columns: Annotated[Columns, Parameter(name="*")] = DEFAULT_COLUMNS,
) -> None:
    """Choose thresholds for a cascade of models and a person, with a guarantee.

    The command prints the thresholds, the share of samples that each stage answers, and the risk
    on all data of --apply. The exit status is 3 if the target is unattainable. Values are
    fractions.
    """
    from abstain.report.output import CASCADE

    _check_options(columns, data, target, level)
    source = data.source(file, columns)
    read = [file, paths.rule, *source.files, *data.paths()]
    to = check_folder(paths.out, [_CASCADE, *RESULTS, REPORT], read)
    with show_status("Choosing"):
        calibration, notes = _read_calibration(source, data, paths)
        more: dict[str, Any] = {"loss": loss, "scale": scale}
        chosen = _get_cascade(calibration, target, more, paths)
        sets, told = read_test_sets(data.apply, source, data.person_error)
    with show_status("Checking"):
        more["level"] = _LEVEL if level is None else level
        noted = [*notes, *told]
        checks = ab.check_cascade(chosen, sets, calibration=calibration, notes=noted, **more)
    apart = _save_cascade(chosen, paths)
    write_and_print(
        lambda: CASCADE.terminal(checks), lambda: _make_files(checks, file), to, before=apart
    )
    if not chosen.attainable:
        # A pipe closed by its reader would otherwise be noticed after the last handler.
        sys.stdout.flush()
        raise SystemExit(UNATTAINABLE)


def _check_options(
    columns: Columns, samples: CascadeData, asked: CascadeTarget, level: float | None
) -> None:
    """Refuse options that would change nothing."""
    idle = [to_flag(name) for name in ("by", "group", "weight") if getattr(columns, name)]
    if idle:
        raise InputError(
            f"a cascade is chosen and checked on all samples alike; drop {', '.join(idle)}"
        )
    if asked.overflow is not None and asked.per_day is None:
        raise InputError(
            "--overflow is about days with more than --capacity; add --per-day or drop it"
        )
    if level is not None and not samples.apply:
        raise InputError(
            "--level: about the data of --apply, and there are none; add them or drop it"
        )


def _read_calibration(
    source: CascadeSource, samples: CascadeData, places: CascadeFiles
) -> tuple[dict[str, Any] | None, list[Any]]:
    """Return what the cascade is chosen on, with the notes of the reader; None for a saved one."""
    if places.rule is not None:
        return None, []
    if not source.stages:
        raise InputError(
            "name the models with --stage, such as --stage small=conf_small,correct_small"
        )
    return source.read_calibration(samples.person_error)


def _get_cascade(
    calibration: dict[str, Any] | None,
    asked: CascadeTarget,
    more: dict[str, Any],
    places: CascadeFiles,
) -> "Cascade":
    if calibration is not None:
        return ab.set_cascade(calibration, **more, **asked.options())
    if asked.flags:
        raise InputError(f"--rule brings its own thresholds; drop {', '.join(asked.flags)}")
    return read_cascade(places.rule or Path())


def read_cascade(path: Path) -> "Cascade":
    """Read a saved cascade; refuse a file that holds something else."""
    from abstain.tables import load
    from abstain.thresholds.cascade import Cascade

    found = load(path)
    if not isinstance(found, Cascade):
        raise FileFormatError(f"{path.name} holds no cascade but a {type(found).__name__}")
    return found


def _save_cascade(chosen: "Cascade", places: CascadeFiles) -> list[Path]:
    """Save the cascade where --save says."""
    from abstain.tables import save

    return [] if places.save is None else [save(chosen, places.save)]


def _make_files(checks: "CascadeChecks", source: Path | None) -> dict[str, bytes]:
    from abstain.report.output import CASCADE
    from abstain.tables.state_files import json_file

    name = "" if source is None else source.name
    page = CASCADE.html(checks, source=name, command=current_command())
    left = make_files({"results": checks.rows()}, page)
    if checks.frontier is not None:
        left = make_files({"results": checks.rows()}, page, checks, ("svg", "png"))
    return {_CASCADE: json_file(checks.cascade), **left}
