"""`abstain cascade`: who answers (a model, a larger one, a person), with a guarantee."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

import abstain as ab
from abstain.cli.command_line import flag
from abstain.cli.console import working
from abstain.cli.options import USUAL_COLUMNS, Columns, LevelIfGiven, Loss, several
from abstain.cli.out import REPORT, RESULTS, command, files_of, finish, place
from abstain.cli.parts import picked, picks_of
from abstain.cli.stages import CascadeSource, applied_sets, stages_of
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
class Asked:
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
        several("NAME=COST per sample of a stage or the person; error=COST of a loss of 1"),
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
    def given(self) -> tuple[str, ...]:
        """The options that were given, as flags."""
        return tuple(
            flag(n) for n in self.__dataclass_fields__ if getattr(self, n) not in {None, ()}
        )


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Where the models are found, what is known of the person, and on what the cascade is used."""

    stage: Annotated[
        tuple[str, ...],
        several(
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
        tuple[str, ...], several("COLUMN=VALUE of the calibration rows of FILE")
    ] = ()
    apply: Annotated[
        tuple[str, ...],
        several(
            "Test data: a file, COLUMN=VALUE of FILE, or one file per stage, separated by commas"
        ),
    ] = ()

    def source(self, file: Path | None, columns: Columns) -> CascadeSource:
        """Return where the calibration samples are."""
        picks = picks_of(self.calibrate, "--calibrate")
        return CascadeSource(file, stages_of(self.stage), columns, picks, self.person)

    def paths(self) -> list[Path]:
        """Return the files of --apply."""
        files = [text for text in self.apply if picked(text) is None]
        return [Path(part) for text in files for part in text.split(",")]


@dataclass(frozen=True, kw_only=True)
class CascadePlaces:
    """Where cascades come from and go to."""

    rule: Annotated[
        Path | None, Parameter(help="Saved cascade to check, instead of choosing one")
    ] = None
    save: Annotated[Path | None, Parameter(help="JSON file for the cascade")] = None
    out: Annotated[
        Path | None, Parameter(help="Folder for cascade.json, results, figure and report.html")
    ] = None


_NOTHING, _SAMPLES, _PLACES = Asked(), Samples(), CascadePlaces()


def cascade(
    file: Annotated[Path | None, Parameter(help="Calibration predictions of all models")] = None,
    /,
    *,
    samples: Annotated[Samples, Parameter(name="*")] = _SAMPLES,
    asked: Annotated[Asked, Parameter(name="*")] = _NOTHING,
    loss: Loss = None,
    scale: Annotated[
        Scale | None,
        Parameter(help="Scale of the confidence columns, if their values are ambiguous"),
    ] = None,
    level: LevelIfGiven = None,
    places: Annotated[CascadePlaces, Parameter(name="*")] = _PLACES,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
) -> None:
    """Choose thresholds for a cascade of models and a person, with a guarantee.

    The command prints the thresholds, the share of samples that each stage answers, and the risk
    on all data of --apply. The exit status is 3 if the target is unattainable. Values are
    fractions.
    """
    from abstain.report.output import CASCADE

    _refuse_idle(columns, samples, asked, level)
    source = samples.source(file, columns)
    read = [file, places.rule, *source.files, *samples.paths()]
    to = place(places.out, [_CASCADE, *RESULTS, REPORT], read)
    with working("Choosing"):
        calibration, notes = _calibration(source, samples, places)
        more: dict[str, Any] = {"loss": loss, "scale": scale}
        chosen = _chosen(calibration, asked, more, places)
        sets, told = applied_sets(samples.apply, source, samples.person_error)
    with working("Checking"):
        more["level"] = _LEVEL if level is None else level
        noted = [*notes, *told]
        checks = ab.check_cascade(chosen, sets, calibration=calibration, notes=noted, **more)
    apart = _saved_apart(chosen, places)
    finish(lambda: CASCADE.terminal(checks), lambda: _files(checks, file), to, before=apart)
    if not chosen.attainable:
        # A pipe closed by its reader would otherwise be noticed after the last handler.
        sys.stdout.flush()
        raise SystemExit(UNATTAINABLE)


def _refuse_idle(columns: Columns, samples: Samples, asked: Asked, level: float | None) -> None:
    """Refuse options that would change nothing."""
    idle = [flag(name) for name in ("by", "group", "weight") if getattr(columns, name)]
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


def _calibration(
    source: CascadeSource, samples: Samples, places: CascadePlaces
) -> tuple[dict[str, Any] | None, list[Any]]:
    """Return what the cascade is chosen on, with the notes of the reader; None for a saved one."""
    if places.rule is not None:
        return None, []
    if not source.stages:
        raise InputError(
            "name the models with --stage, such as --stage small=conf_small,correct_small"
        )
    return source.chosen_on(samples.person_error)


def _chosen(
    calibration: dict[str, Any] | None, asked: Asked, more: dict[str, Any], places: CascadePlaces
) -> "Cascade":
    if calibration is not None:
        return ab.set_cascade(calibration, **more, **asked.options())
    if asked.given:
        raise InputError(f"--rule brings its own thresholds; drop {', '.join(asked.given)}")
    return read_cascade(places.rule or Path())


def read_cascade(path: Path) -> "Cascade":
    """Read a saved cascade; refuse a file that holds something else."""
    from abstain.tables import load
    from abstain.thresholds.cascade import Cascade

    found = load(path)
    if not isinstance(found, Cascade):
        raise FileFormatError(f"{path.name} holds no cascade but a {type(found).__name__}")
    return found


def _saved_apart(chosen: "Cascade", places: CascadePlaces) -> list[Path]:
    """Save the cascade where --save says."""
    from abstain.tables import save

    return [] if places.save is None else [save(chosen, places.save)]


def _files(checks: "CascadeChecks", source: Path | None) -> dict[str, bytes]:
    from abstain.report.output import CASCADE
    from abstain.tables.state_files import json_file

    name = "" if source is None else source.name
    page = CASCADE.html(checks, source=name, command=command())
    left = files_of({"results": checks.rows()}, page)
    if checks.frontier is not None:
        left = files_of({"results": checks.rows()}, page, checks, ("svg", "png"))
    return {_CASCADE: json_file(checks.cascade), **left}
