"""Options of `abstain threshold` for shifted data, and computation of density ratios."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from abstain.cli.command_line import to_flag
from abstain.cli.options import Columns
from abstain.cli.predictions import read_with_score
from abstain.cli.subsets import CalibrationSource, parse_column_value, read_other_subset
from abstain.errors import InputError

if TYPE_CHECKING:
    from abstain._foundation.notes import Note
    from abstain.predictions import Predictions
    from abstain.shift import DensityRatios


@dataclass(frozen=True, kw_only=True)
class ShiftOptions:
    """Options for a guarantee on data whose distribution differs from the calibration data."""

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
    def is_requested(self) -> bool:
        """Whether the options request a rule for shifted data."""
        return self.shifted_to is not None or self.ratio is not None

    @property
    def flags(self) -> tuple[str, ...]:
        """Passed options, as flags."""
        names = self.__dataclass_fields__
        return tuple(to_flag(name) for name in names if getattr(self, name) is not None)

    def check(self, columns: Columns) -> None:
        """Raise an error if options exclude each other or have no effect."""
        if self.shifted_to is not None and self.ratio is not None:
            raise InputError(
                "--ratio and --shifted-to exclude each other: --shifted-to estimates the density "
                "ratios that --ratio reads; drop one of them"
            )
        required_option = {"shift": "shifted_to", "max_ratio": "ratio"}
        for name, required in required_option.items():
            if getattr(self, name) is not None and getattr(self, required) is None:
                raise InputError(
                    f"{to_flag(name)} has no effect without {to_flag(required)}; add "
                    f"{to_flag(required)}, or drop {to_flag(name)}"
                )
        if self.clip is not None and not self.is_requested:
            raise InputError(
                "--clip has no effect without --shifted-to or --ratio; add one of them, or drop "
                "--clip"
            )
        if self.is_requested and columns.weight is not None:
            raise InputError(
                f"--weight {columns.weight} cannot be combined with density ratios, because no "
                "guarantee supports both; drop it"
            )

    def with_ratio_column(self, columns: Columns) -> Columns:
        """Return the columns of the calibration file, in which density ratios are the weights."""
        return columns if self.ratio is None else replace(columns, weight=self.ratio)

    def apply_ratios(
        self,
        calibration: "Predictions",
        columns: Columns,
        score: str,
        calibration_source: CalibrationSource,
    ) -> "tuple[Predictions, dict[str, Any], tuple[Note, ...]]":
        """Return the calibration data with density ratios, options of the rule, and notes."""
        ratios, notes = self._ratios(calibration, columns, score, calibration_source)
        # In the calibration data, the ratios are weights only for the plotted curve. The rule uses
        # them separately.
        return calibration.with_weight(ratios.values), {"ratio": ratios, "weight": None}, notes

    def _ratios(
        self,
        calibration: "Predictions",
        columns: Columns,
        score: str,
        calibration_source: CalibrationSource,
    ) -> "tuple[DensityRatios, tuple[Note, ...]]":
        """Return the density ratios of the calibration data, and notes on them."""
        from abstain.evaluation.density_ratios import EstimatedRatios, estimate_ratios
        from abstain.shift import density_ratios

        if self.shifted_to is None:
            ratios = density_ratios(calibration.weight, largest=self.max_ratio, clip=self.clip)
            return ratios, EstimatedRatios(ratios, "covariate").notes()
        target_columns = replace(columns, by=(), group=None)
        condition = parse_column_value(self.shifted_to)
        if condition is not None:
            file_name = ""
            target = read_other_subset(
                condition, target_columns, score, calibration_source, flag="--shifted-to"
            )
        else:
            path = Path(self.shifted_to)
            file_name = path.name
            target = read_with_score(path, target_columns, score, unlabeled=True)
        estimate = estimate_ratios(
            calibration,
            target.only(),
            shift=self.shift or "covariate",
            score=score or None,
            clip=self.clip,
        )
        reader_notes = (note.within(file_name) for note in target.notes)
        return estimate.ratios, (*reader_notes, *estimate.notes())
