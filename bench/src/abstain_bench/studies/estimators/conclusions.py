"""Summarize the relative errors of the estimators in tables and conclusions."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain_bench.studies._area_estimators import (
    AREA_ESTIMATORS,
    ESTIMATOR_TITLES,
    INCONSISTENT,
    loss_title,
)
from abstain_bench.studies._display import Row, counted, group_rows, unique_values, value_range
from abstain_bench.studies._sources import UNNAMED

#: A bias is significant if it exceeds this number of Monte-Carlo standard errors.
_N_STANDARD_ERRORS: Final = 4.0

#: Relative errors below this value are rounding errors.
_ROUNDING: Final = 1e-12

#: Relative differences of errors up to this value are reported as equal errors.
_EQUALITY_TOLERANCE: Final = 0.05


def summarize_estimators(rows: Sequence[Row]) -> list[Row]:
    """Compute the median over cases of the relative bias and RMSE of each estimator."""
    sizes = _summary_sizes(rows)
    return [
        {
            "estimator": estimator,
            "cases": len(_rows_at(group, sizes[0])),
            **_relative_errors(group, sizes, np.median),
        }
        for estimator, group in group_rows(rows, "estimator").items()
    ]


def summarize_by_data(rows: Sequence[Row]) -> list[Row]:
    """Compute the relative bias and RMSE, averaged over scores, for each data set and loss."""
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
    """Compute the mean or the median over cases of the relative bias and RMSE at each size."""
    averages = {}
    for name, relative_error in (("bias", _relative_bias), ("RMSE", _relative_rmse)):
        for n in sizes:
            errors = [relative_error(row) for row in _rows_at(rows, n)]
            averages[f"{name}_at_{n}"] = float(average(errors)) if errors else np.nan
    return averages


def _summary_sizes(rows: Sequence[Row]) -> list[int]:
    """Return the distinct values among the smallest, middle and largest size."""
    sizes = sorted({row["n"] for row in rows})
    return list(dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])))


def _rows_at(rows: Sequence[Row], n: int) -> list[Row]:
    """Return the rows of a size with a positive true value, which relative errors require."""
    return [row for row in rows if row["n"] == n and row["truth"]]


def _relative_bias(row: Row) -> float:
    bias = float(row["bias"] / row["truth"])
    return 0.0 if abs(bias) < _ROUNDING else bias


def _relative_rmse(row: Row) -> float:
    rmse = float(np.sqrt(row["mse"]) / row["truth"])
    return 0.0 if rmse < _ROUNDING else rmse


def estimator_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield conclusions about RMSE, bias and limits of the estimators."""
    yield from _conclude_agreement(rows)
    yield from _conclude_errors(rows)
    yield from _conclude_biases(rows)
    yield from _conclude_bound(rows)
    without_loss = [row for row in rows if row["target"] == "aurc" and not row["truth"]]
    n_without_loss = len(group_rows(without_loss, "data", "loss", "score"))
    if n_without_loss:
        cases = counted(n_without_loss, "case has", "cases have")
        yield f"{cases} no loss, so errors relative to the AURC are undefined there."


def _conclude_agreement(rows: Sequence[Row]) -> Iterator[str]:
    """Report the sample size from which the plug-in and the log estimator have equal errors."""
    sizes = sorted({row["n"] for row in rows})
    differences_by_size = {n: list(_plugin_log_differences(_rows_at(rows, n))) for n in sizes}
    if not all(differences_by_size.values()):
        return
    equal_sizes: list[int] = []
    for n in reversed(sizes):
        if max(differences_by_size[n]) > _EQUALITY_TOLERANCE:
            break
        equal_sizes.append(n)
    scope = f"From n = {equal_sizes[-1]} on," if equal_sizes else "At none of the sizes"
    yield (
        f"{scope} plug-in and log have the same error within {100 * _EQUALITY_TOLERANCE:g}%. SELE "
        "and 2 x SELE estimate AUGRC and twice AUGRC, not the AURC."
    )


def _plugin_log_differences(rows: Sequence[Row]) -> Iterator[float]:
    """Yield the relative difference between the RMSEs of the plug-in and the log estimator."""
    for group in group_rows(rows, "data", "loss", "score").values():
        errors = {row["estimator"]: _relative_rmse(row) for row in group}
        plugin = errors.get("plugin")
        log = errors.get("log")
        if plugin and log:
            yield abs(plugin / log - 1)


def _conclude_errors(rows: Sequence[Row]) -> Iterator[str]:
    """Report the RMSE of each AURC estimator at the smallest and the largest size."""
    sizes = _summary_sizes(rows)
    errors_by_size = []
    for n in dict.fromkeys((sizes[0], sizes[-1])):
        aurc_rows = [row for row in _rows_at(rows, n) if row["target"] == "aurc"]
        if not aurc_rows:
            return
        errors = []
        for estimator, group in group_rows(aurc_rows, "estimator").items():
            median_error = np.median([_relative_rmse(row) for row in group])
            errors.append((median_error, estimator))
        titled = [
            f"{ESTIMATOR_TITLES[estimator]} {error:.3g}" for error, estimator in sorted(errors)
        ]
        errors_by_size.append(f"at n = {n} {', '.join(titled)}")
    yield f"RMSE relative to the AURC, median over the cases: {'; '.join(errors_by_size)}."


def _conclude_biases(rows: Sequence[Row]) -> Iterator[str]:
    """Report the biases of the plug-in, the log and the inconsistent estimators."""
    sizes = _summary_sizes(rows)
    smallest = sizes[0]
    largest = sizes[-1]
    rows_by_estimator = group_rows(rows, "estimator")
    at_largest = {}
    for estimator in AREA_ESTIMATORS:
        group = _rows_at(rows_by_estimator.get(estimator, ()), largest)
        if group:
            at_largest[estimator] = group
    consistent = [name for name in ("plugin", "log") if name in at_largest]
    if consistent:
        ranges = []
        for name in consistent:
            by_size = [
                f"{_bias_range(_rows_at(rows_by_estimator[name], n))} at n = {n}"
                for n in dict.fromkeys((smallest, largest))
            ]
            ranges.append(f"{ESTIMATOR_TITLES[name]} {' and '.join(by_size)}")
        pairs = [row for name in consistent for row in at_largest[name]]
        yield (
            f"Bias relative to the AURC: {'; '.join(ranges)}. At n = {largest} it differs from 0 "
            f"by more than {_N_STANDARD_ERRORS:g} Monte-Carlo standard errors in "
            f"{sum(map(_is_bias_significant, pairs))} of {len(pairs)} pairs of estimator and case."
        )
    inconsistent = [
        f"{ESTIMATOR_TITLES[name]} {_bias_range(at_largest[name])}"
        for name in at_largest
        if name in INCONSISTENT
    ]
    if inconsistent:
        yield (
            "SELE converges to AUGRC and 2 x SELE to twice AUGRC, whatever the AURC is. Bias "
            f"relative to the AURC at n = {largest}: {', '.join(inconsistent)}."
        )


def _bias_range(rows: Sequence[Row]) -> str:
    return value_range([_relative_bias(row) for row in rows], "{:+.2g}")


def _is_bias_significant(row: Row) -> bool:
    """Return whether a bias is larger than its Monte-Carlo and rounding errors."""
    relative_error = row["bias_se"] / row["truth"]
    return bool(abs(_relative_bias(row)) > _N_STANDARD_ERRORS * relative_error + _ROUNDING)


def _conclude_bound(rows: Sequence[Row]) -> Iterator[str]:
    """Report in how many cases twice the limit of SELE is below the AURC."""
    n_cases = 0
    below = []
    for (data, loss, score), group in group_rows(rows, "data", "loss", "score").items():
        areas = {row["target"]: row["truth"] for row in group}
        if len(areas) < 2 or not areas["aurc"]:
            continue
        n_cases += 1
        limit = 2 * areas["augrc"]
        aurc = areas["aurc"]
        if limit < aurc * (1 - 1e-9):
            name = data if score == UNNAMED else f"{data} ({score}, {loss_title(loss)})"
            below.append((aurc - limit, name, limit, aurc))
    if below:
        _, name, limit, aurc = max(below, key=lambda case: case[0])
        yield (
            f"2 x SELE is not an upper bound of the AURC: on {name} it converges to {limit:.4g}, "
            f"below the AURC of {aurc:.4g} ({len(below)} of {counted(n_cases, 'case')})."
        )
    elif n_cases:
        yield (
            "2 x SELE converges to 2 AUGRC, which is never below the AURC here "
            f"({counted(n_cases, 'case')}). This does not hold in general."
        )


def model_conclusions(averages: Sequence[Row]) -> Iterator[str]:
    """Report the MAE of each estimator at the smallest and the largest size, for each loss."""
    for loss, rows in group_rows(averages, "loss").items():
        sizes = sorted({row["n"] for row in rows})
        if len(sizes) < 2:
            continue
        changes = []
        for estimator, group in group_rows(rows, "estimator").items():
            row_by_size = {row["n"]: row for row in group}
            first = row_by_size.get(sizes[0])
            last = row_by_size.get(sizes[-1])
            if first is not None and last is not None:
                changes.append(
                    f"{ESTIMATOR_TITLES[estimator]} {first['mae']:.3g} to {last['mae']:.3g} \u00b1 "
                    f"{last['mae_sd']:.1g}"
                )
        n_models = max(row["models"] for row in rows)
        yield (
            f"Over {n_models} models, {loss_title(loss)}, {rows[0]['score']}: MAE from n = "
            f"{sizes[0]} to {sizes[-1]}: {'; '.join(changes)} (\u00b1 the standard deviation "
            "between the models)."
        )
