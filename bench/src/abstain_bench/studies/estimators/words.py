"""What the estimators are found to do, as shares of the truth: two tables, and sentences."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from abstain_bench.studies._sentences import counted, value_range
from abstain_bench.studies._sources import OWN
from abstain_bench.studies._study import Row
from abstain_bench.studies._words import (
    AREA_ESTIMATORS,
    ESTIMATOR_TITLES,
    loss_said,
)

#: From so many Monte-Carlo standard errors on a bias is called one.
_CLEAR: Final = 4.0

#: As a share of the truth: where every estimate is the truth, nothing but this is left.
_ROUNDING: Final = 1e-12

#: Errors are called the same that differ by no more, as a share.
_ALIKE: Final = 0.05


def summary_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return bias and RMSE of each estimator as shares of the truth, medians over the cases."""
    out = []
    sizes = _three(rows)
    for name in dict.fromkeys(row["estimator"] for row in rows):
        mine = [row for row in rows if row["estimator"] == name]
        cases = {"cases": len(_at(mine, sizes[0]))}
        out.append({"estimator": name, **cases, **_shares(mine, sizes, np.median)})
    return out


def by_data_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the same for each data set and loss, averaged over the scores."""
    several = len({row["data"] for row in rows}) > 1
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["data"], row["loss"], row["estimator"]), []).append(row)
    return [
        {
            **({"data": data} if several else {}),
            "loss": loss,
            "estimator": estimator,
            **_shares(mine, _three(mine), np.mean),
        }
        for (data, loss, estimator), mine in groups.items()
    ]


def _shares(rows: Sequence[Row], sizes: Sequence[int], average: Any) -> dict[str, float]:
    """Return bias and RMSE at some sizes, averaged in some way over the cases that have a truth."""
    return {
        f"{what}_at_{n}": float(average([value(row) for row in _at(rows, n)] or [np.nan]))
        for what, value in (("bias", _bias), ("RMSE", _rmse))
        for n in sizes
    }


def _three(rows: Sequence[Row]) -> list[int]:
    """Return the smallest, the middle and the largest size."""
    known = sorted({row["n"] for row in rows})
    return list(dict.fromkeys((known[0], known[len(known) // 2], known[-1])))


def _at(rows: Sequence[Row], n: int, estimator: str = "") -> list[Row]:
    """Return the rows at a size of which a share of the truth can be taken."""
    return [r for r in rows if r["n"] == n and r["truth"] and estimator in {"", r["estimator"]}]


def _bias(row: Row) -> float:
    return _rounded(row["bias"] / row["truth"])


def _rmse(row: Row) -> float:
    return _rounded(np.sqrt(row["mse"]) / row["truth"])


def _rounded(share: float) -> float:
    return 0.0 if abs(share) < _ROUNDING else float(share)


def verdict_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say which estimator is nearest to the truth where, and what no sample size mends."""
    said = [_agreeing(rows), _nearest(rows), *_biases(rows), _no_bound(rows), _no_loss(rows)]
    return tuple(sentence for sentence in said if sentence)


def _agreeing(rows: Sequence[Row]) -> str:
    """Say from which size on it does not matter which consistent estimator is taken."""
    sizes = sorted({row["n"] for row in rows})
    apart = {n: _apart(rows, n) for n in sizes}
    if not all(np.isfinite(list(apart.values()))):
        return ""
    late = next((i for i, n in reversed(list(enumerate(sizes))) if apart[n] > _ALIKE), -1)
    same = f"plug-in and log have the same error, within {100 * _ALIKE:g} %"
    other = "SELE and 2 x SELE estimate AUGRC and twice AUGRC, not the AURC"
    if late + 1 == len(sizes):
        return f"At no size studied {same}. {other}."
    return f"From n = {sizes[late + 1]} on {same}. {other}."


def _apart(rows: Sequence[Row], n: int) -> float:
    """Return the largest share by which the errors of plug-in and log differ in a case."""
    error = {(*_case(row), row["estimator"]): _rmse(row) for row in _at(rows, n)}
    pairs = [
        (error.get((*case, "plugin")), error.get((*case, "log")))
        for case in {key[:3] for key in error}
    ]
    known = [abs(a / b - 1) for a, b in pairs if a and b]
    return max(known, default=float("nan"))


def _case(row: Row) -> tuple[str, str, str]:
    return row["data"], row["loss"], row["score"]


def _nearest(rows: Sequence[Row]) -> str:
    """Say which estimator of the AURC has the smallest error at the ends of the sizes."""
    sizes = _three(rows)
    parts = []
    for n in dict.fromkeys((sizes[0], sizes[-1])):
        here = [row for row in _at(rows, n) if row["target"] == "aurc"]
        if not here:
            return ""
        names = {row["estimator"] for row in here}
        found = sorted((np.median([_rmse(r) for r in _at(here, n, name)]), name) for name in names)
        listed = ", ".join(f"{ESTIMATOR_TITLES[name]} {error:.3g}" for error, name in found)
        parts.append(f"at n = {n} {listed}")
    return f"RMSE as a share of the AURC, median over the cases: {'; '.join(parts)}."


def _biases(rows: Sequence[Row]) -> Iterator[str]:
    """Say how large the biases are, and whether they go away."""
    sizes = _three(rows)
    last = sizes[-1]
    at_last = {name: own for name in AREA_ESTIMATORS if (own := _at(rows, last, name))}
    kept = [name for name in ("plugin", "log") if name in at_last]
    if kept:
        said = "; ".join(
            f"{ESTIMATOR_TITLES[name]} "
            + " and ".join(
                f"{_biases_said(_at(rows, n, name))} at n = {n}"
                for n in dict.fromkeys((sizes[0], last))
            )
            for name in kept
        )
        pairs = [row for name in kept for row in at_last[name]]
        yield (
            f"Bias as a share of the AURC: {said}, there more than {_CLEAR:g} "
            f"Monte-Carlo standard errors from 0 in {sum(map(_is_clear, pairs))} of "
            f"{len(pairs)} pairs of estimator and case."
        )
    other = [name for name in at_last if not AREA_ESTIMATORS[name].consistent]
    if other:
        listed = ", ".join(f"{ESTIMATOR_TITLES[n]} {_biases_said(at_last[n])}" for n in other)
        yield (
            "SELE goes to AUGRC and 2 x SELE to twice AUGRC, wherever the AURC is; their bias at "
            f"n = {last}: {listed} of the AURC."
        )


def _biases_said(rows: Sequence[Row]) -> str:
    return value_range([_bias(row) for row in rows], "{:+.2g}")


def _is_clear(row: Row) -> bool:
    """Tell whether a bias is more than the chance of the draws and the rounding of sums."""
    return bool(abs(_bias(row)) > _CLEAR * row["bias_se"] / row["truth"] + _ROUNDING)


def _no_bound(rows: Sequence[Row]) -> str:
    """Say where twice the AUGRC, which 2 x SELE converges to, is below the AURC."""
    truths: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        truths.setdefault(_case(row), {})[row["target"]] = row["truth"]
    known = {case: t for case, t in truths.items() if len(t) == 2 and t["aurc"]}
    below = {case: t for case, t in known.items() if 2 * t["augrc"] < t["aurc"] * (1 - 1e-9)}
    if not known:
        return ""
    if not below:
        return (
            "2 x SELE goes to 2 AUGRC, here never below the AURC "
            f"({counted(len(known), 'case')}); it need not be so."
        )
    case = max(below, key=lambda c: below[c]["aurc"] - 2 * below[c]["augrc"])
    t = below[case]
    where = case[0] if case[2] == OWN else f"{case[0]} ({case[2]}, {loss_said(case[1])})"
    return (
        f"2 x SELE is no upper bound of the AURC: on {where} it goes to {2 * t['augrc']:.4g}, "
        f"below the AURC of {t['aurc']:.4g} ({len(below)} of {counted(len(known), 'case')})."
    )


def _no_loss(rows: Sequence[Row]) -> str:
    """Say how many cases have no loss, so that no share of the AURC can be taken."""
    without = {_case(row) for row in rows if row["target"] == "aurc" and not row["truth"]}
    if not without:
        return ""
    cases = counted(len(without), "case has", "cases have")
    return f"{cases} no loss at all and no part in shares of the AURC."
