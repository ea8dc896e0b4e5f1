"""Options of `abstain threshold` for data of another law, and the density ratios they ask for."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from abstain.cli.command_line import flag
from abstain.cli.options import Columns
from abstain.cli.parts import CalibrationFile, picked, read_part
from abstain.cli.predictions import read_scored
from abstain.errors import InputError

if TYPE_CHECKING:
    from abstain._foundation.notes import Note
    from abstain.predictions import Predictions
    from abstain.shift import DensityRatios


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """Whom the promise is about, where that is not data like the calibration data."""

    shifted_to: Annotated[
        str | None,
        Parameter(help="Target data without labels: a file, or COLUMN=VALUE of FILE"),
    ] = None
    shift: Annotated[
        Literal["covariate", "label"] | None,
        Parameter(
            help="Kind of shift of --shifted-to: distribution of inputs (covariate) or of classes "
            "(label) [default: covariate]"
        ),
    ] = None
    ratio: Annotated[str | None, Parameter(help="Column of FILE with density ratios")] = None
    max_ratio: Annotated[
        float | None, Parameter(help="Upper bound of the density ratios [default: the largest one]")
    ] = None
    clip: Annotated[
        float | None, Parameter(help="Largest density ratio, as a multiple of the mean")
    ] = None

    @property
    def asked(self) -> bool:
        """Whether the rule is for data of another law."""
        return self.shifted_to is not None or self.ratio is not None

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given, as flags."""
        every = self.__dataclass_fields__
        return tuple(flag(name) for name in every if getattr(self, name) is not None)

    def refuse_idle(self, columns: Columns) -> None:
        """Refuse options that do not fit together."""
        if self.shifted_to is not None and self.ratio is not None:
            raise InputError(
                "--ratio brings the ratios that --shifted-to would estimate; drop one of them"
            )
        needs = {"shift": "shifted_to", "max_ratio": "ratio"}
        for name, other in needs.items():
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise InputError(
                    f"{flag(name)} is about {flag(other)}; add it or drop {flag(name)}"
                )
        if self.clip is not None and not self.asked:
            raise InputError("--clip is about --shifted-to and --ratio; add one of them or drop it")
        if self.asked and columns.weight is not None:
            raise InputError(
                f"--weight {columns.weight} counts samples, density ratios do not: no guarantee "
                "takes both; drop it"
            )

    def reading(self, columns: Columns) -> Columns:
        """Return what to read of the calibration file: a column of ratios as its weights."""
        return columns if self.ratio is None else replace(columns, weight=self.ratio)

    def weighed(
        self, calibration: "Predictions", columns: Columns, score: str, chosen_on: CalibrationFile
    ) -> "tuple[Predictions, dict[str, Any], tuple[Note, ...]]":
        """Return the calibration data as they come up there, options of the rule, and notes."""
        ratios, notes = self._ratios(calibration, columns, score, chosen_on)
        # The ratios are no frequencies: as weights they make the curve that is drawn.
        return calibration.with_weight(ratios.values), {"ratio": ratios, "weight": None}, notes

    def _ratios(
        self, calibration: "Predictions", columns: Columns, score: str, chosen_on: CalibrationFile
    ) -> "tuple[DensityRatios, tuple[Note, ...]]":
        """Return the ratios of the calibration data, and what to know of them."""
        from abstain.evaluation.density_ratios import EstimatedRatios, estimate_ratios
        from abstain.shift import density_ratios

        if self.shifted_to is None:
            ratios = density_ratios(calibration.weight, largest=self.max_ratio, clip=self.clip)
            return ratios, EstimatedRatios(ratios, "covariate").notes()
        whole, pick = replace(columns, by=(), group=None), picked(self.shifted_to)
        if pick is not None:
            reading = read_part(pick, whole, score, chosen_on, flag="--shifted-to")
        else:
            reading = read_scored(Path(self.shifted_to), whole, score, unlabeled=True)
        found = estimate_ratios(
            calibration,
            reading.only(),
            shift=self.shift or "covariate",
            score=score or None,
            clip=self.clip,
        )
        name = "" if pick is not None else Path(self.shifted_to).name
        notes = (note.within(name) for note in reading.notes)
        return found.ratios, (*notes, *found.notes())
