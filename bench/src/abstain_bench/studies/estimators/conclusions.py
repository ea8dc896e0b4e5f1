"""Summary tables and conclusions about the estimators, relative to the true values."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain_bench.studies._area_estimators import (
    AREA_ESTIMATORS,
    ESTIMATOR_TITLES,
    INCONSISTENT,
    loss_title,
)
from abstain_bench.studies._sentences import counted, value_range
from abstain_bench.studies._sources import UNNAMED
from abstain_bench.studies._tables import Row, group_rows, unique_values

#: Number of Monte-Carlo standard errors from which a bias counts as different from 0.
_N_STANDARD_ERRORS: Final = 4.0

#: Relative errors below this value are rounding errors.
_ROUNDING: Final = 1e-12

#: Largest relative difference of two errors that count as equal.
_EQUALITY_TOLERANCE: Final = 0.05


def summarize_estimators(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the relative bias and RMSE of each estimator, medians over the cases."""
    sizes = _summary_sizes(rows)
    return [
        {
            "estimator": estimator,
            "cases": len(_rows_at(group, sizes[0])),
            **_relative_errors(group, sizes, np.median),
        }
        for estimator, group in group_rows(rows, "estimator").items()
    ]


def summarize_by_data(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the relative bias and RMSE for each data set and loss, means over the scores."""
    has_several_data = len(unique_values(rows, "data")) > 1
    return [
        {
            **({"data": data} if has_several_data else {}),
            "loss": loss,
            "estimator": estimator,
            **_relative_errors(group, _summary_sizes(group), np.mean),
        }
        for (data, loss, estimator), group in group_rows(rows, "data", "loss", "estimator").items()
    ]


def _relative_errors(rows: Sequence[Row], sizes: Sequence[int], average: Any) -> dict[str, float]:
    """Return the averages over the cases of relative bias and RMSE at each size."""
    return {
        f"{name}_at_{n}": float(average([error(row) for row in _rows_at(rows, n)] or [np.nan]))
        for name, error in (("bias", _relative_bias), ("RMSE", _relative_rmse))
        for n in sizes
    }


def _summary_sizes(rows: Sequence[Row]) -> list[int]:
    """Return the smallest, the middle and the largest size."""
    sizes = sorted({row["n"] for row in rows})
    return list(dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])))


def _rows_at(rows: Sequence[Row], n: int, estimator: str | None = None) -> list[Row]:
    """Return the rows of a size with a true value above 0, so that relative errors exist."""
    return [
        row
        for row in rows
        if row["n"] == n and row["truth"] and estimator in {None, row["estimator"]}
    ]


def _relative_bias(row: Row) -> float:
    return _without_rounding(row["bias"] / row["truth"])


def _relative_rmse(row: Row) -> float:
    return _without_rounding(np.sqrt(row["mse"]) / row["truth"])


def _without_rounding(relative_error: float) -> float:
    return 0.0 if abs(relative_error) < _ROUNDING else float(relative_error)


def estimator_conclusions(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the conclusions: accuracy, bias and limits of the estimators."""
    sentences = (
        _conclude_agreement(rows),
        _conclude_errors(rows),
        *_conclude_biases(rows),
        _conclude_bound(rows),
        _conclude_cases_without_loss(rows),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _conclude_agreement(rows: Sequence[Row]) -> str:
    """Report the sizes from which plug-in and log have the same error."""
    sizes = sorted({row["n"] for row in rows})
    differences = [_max_relative_difference(rows, n) for n in sizes]
    if not np.isfinite(differences).all():
        return ""
    equality = f"plug-in and log have the same error within {100 * _EQUALITY_TOLERANCE:g}%"
    limits = "SELE and 2 x SELE estimate AUGRC and twice AUGRC, not the AURC"
    different = np.flatnonzero(np.array(differences) > _EQUALITY_TOLERANCE)
    first_equal = int(different[-1]) + 1 if different.size else 0
    if first_equal == len(sizes):
        return f"At none of the sizes {equality}. {limits}."
    return f"From n = {sizes[first_equal]} on, {equality}. {limits}."


def _max_relative_difference(rows: Sequence[Row], n: int) -> float:
    """Return the largest relative difference between the errors of plug-in and log."""
    differences = []
    for group in group_rows(_rows_at(rows, n), "data", "loss", "score").values():
        errors = {row["estimator"]: _relative_rmse(row) for row in group}
        plugin, log = errors.get("plugin"), errors.get("log")
        if plugin and log:
            differences.append(abs(plugin / log - 1))
    return max(differences, default=float("nan"))


def _conclude_errors(rows: Sequence[Row]) -> str:
    """Report the RMSE of each estimator of the AURC at the smallest and the largest size."""
    sizes = _summary_sizes(rows)
    parts = []
    for n in dict.fromkeys((sizes[0], sizes[-1])):
        aurc_rows = [row for row in _rows_at(rows, n) if row["target"] == "aurc"]
        if not aurc_rows:
            return ""
        errors = sorted(
            (np.median([_relative_rmse(row) for row in group]), estimator)
            for estimator, group in group_rows(aurc_rows, "estimator").items()
        )
        text = ", ".join(
            f"{ESTIMATOR_TITLES[estimator]} {error:.3g}" for error, estimator in errors
        )
        parts.append(f"at n = {n} {text}")
    return f"RMSE relative to the AURC, median over the cases: {'; '.join(parts)}."


def _conclude_biases(rows: Sequence[Row]) -> Iterator[str]:
    """Report the bias of plug-in and log, and of the inconsistent estimators."""
    sizes = _summary_sizes(rows)
    largest = sizes[-1]
    rows_by_estimator = {
        estimator: group
        for estimator in AREA_ESTIMATORS
        if (group := _rows_at(rows, largest, estimator))
    }
    consistent = [name for name in ("plugin", "log") if name in rows_by_estimator]
    if consistent:
        ranges = "; ".join(
            f"{ESTIMATOR_TITLES[name]} "
            + " and ".join(
                f"{_bias_range(_rows_at(rows, n, name))} at n = {n}"
                for n in dict.fromkeys((sizes[0], largest))
            )
            for name in consistent
        )
        pairs = [row for name in consistent for row in rows_by_estimator[name]]
        yield (
            f"Bias relative to the AURC: {ranges}. At n = {largest} it differs from 0 by more than "
            f"{_N_STANDARD_ERRORS:g} Monte-Carlo standard errors in "
            f"{sum(map(_is_bias_significant, pairs))} of {len(pairs)} pairs of estimator and case."
        )
    inconsistent = [name for name in rows_by_estimator if name in INCONSISTENT]
    if inconsistent:
        ranges = ", ".join(
            f"{ESTIMATOR_TITLES[name]} {_bias_range(rows_by_estimator[name])}"
            for name in inconsistent
        )
        yield (
            "SELE converges to AUGRC and 2 x SELE to twice AUGRC, whatever the AURC is. Bias "
            f"relative to the AURC at n = {largest}: {ranges}."
        )


def _bias_range(rows: Sequence[Row]) -> str:
    return value_range([_relative_bias(row) for row in rows], "{:+.2g}")


def _is_bias_significant(row: Row) -> bool:
    """Return whether a bias exceeds the Monte-Carlo error and the rounding error of sums."""
    relative_error = row["bias_se"] / row["truth"]
    return bool(abs(_relative_bias(row)) > _N_STANDARD_ERRORS * relative_error + _ROUNDING)


def _conclude_bound(rows: Sequence[Row]) -> str:
    """Report where twice the AUGRC, the limit of 2 x SELE, is below the AURC."""
    true_values: dict[tuple[str, str, str], dict[str, float]] = {}
    for case, group in group_rows(rows, "data", "loss", "score").items():
        areas = {row["target"]: row["truth"] for row in group}
        if len(areas) == 2 and areas["aurc"]:
            true_values[case] = areas
    if not true_values:
        return ""
    n_cases = counted(len(true_values), "case")
    below = {
        case: areas
        for case, areas in true_values.items()
        if 2 * areas["augrc"] < areas["aurc"] * (1 - 1e-9)
    }
    if not below:
        return (
            f"2 x SELE converges to 2 AUGRC, which is never below the AURC here ({n_cases}). This "
            "does not hold in general."
        )
    case = max(below, key=lambda c: below[c]["aurc"] - 2 * below[c]["augrc"])
    data, loss, score = case
    name = data if score == UNNAMED else f"{data} ({score}, {loss_title(loss)})"
    return (
        f"2 x SELE is not an upper bound of the AURC: on {name} it converges to "
        f"{2 * below[case]['augrc']:.4g}, below the AURC of {below[case]['aurc']:.4g} "
        f"({len(below)} of {n_cases})."
    )


def _conclude_cases_without_loss(rows: Sequence[Row]) -> str:
    """Report the number of cases with an AURC of 0, which have no relative errors."""
    aurc_rows = [row for row in rows if row["target"] == "aurc" and not row["truth"]]
    n_cases = len(group_rows(aurc_rows, "data", "loss", "score"))
    if not n_cases:
        return ""
    cases = counted(n_cases, "case has", "cases have")
    return f"{cases} no loss, so errors relative to the AURC are undefined there."
