"""The numbers that the paper prints of its simulated models, set against what such models have."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.simulate import Population
from abstain_bench.published import table
from abstain_bench.studies._sentences import listed
from abstain_bench.studies._tables import Row
from abstain_bench.studies.cwsa.claims import OPEN, Claim, judged_by
from abstain_bench.studies.cwsa.models import (
    CALIBRATED,
    OF_ALL,
    OVERCONFIDENT,
    OVERCONFIDENT_TEXT,
    PERFECT,
    PERFECT_TEXT,
    QUANTITIES,
    RANDOM,
    TITLES,
    UNDERCONFIDENT,
    Simulated,
    expected_of,
)

#: Which of our models the prose describes under a name, and where it does.
_MEANT: Final = {
    CALIBRATED: (CALIBRATED, "5.3"),
    OVERCONFIDENT: (OVERCONFIDENT_TEXT, "5.4"),
    UNDERCONFIDENT: (UNDERCONFIDENT, "5.5"),
    RANDOM: (RANDOM, "5.6"),
    PERFECT: (PERFECT_TEXT, "5.7"),
}

#: The tables, and what each is of.
_TABLES: Final = ("cwsa_table_1", "cwsa_table_2", "cwsa_table_3")

#: The samples of each of their models.
_SAMPLES: Final = 1000

#: Beyond so many standard deviations a number is of another model.
_FAR: Final = 4.0

#: Four standard deviations of the mean of a thousand weights.
_NEAR: Final = 0.08

_QUANTITY: Final = {name.casefold(): name for name in (*QUANTITIES, *OF_ALL)}
_ENDS: Final = {"lowest": 0.5, "highest": 0.99}


def printed_rows(simulated: Mapping[str, Simulated]) -> list[Row]:
    """Set every printed number of a simulated model against its law, where it says at what."""
    cells = [(fact, "text") for fact in table("cwsa_text")]
    cells += [(fact, "table") for name in _TABLES for fact in table(name)]
    return [_row(fact, simulated, where) for fact, where in cells]


def _row(fact: Mapping[str, Any], simulated: Mapping[str, Simulated], where: str) -> Row:
    name, section = _MEANT[fact["model"]]
    model, quantity = simulated[name], _QUANTITY[fact["metric"].casefold()]
    row: dict[str, Any] = {
        "section": section,
        "where": where,
        "model": fact["model"],
        "quantity": quantity,
        "threshold": fact["threshold"],
        "printed": fact["number"],
    }
    found = _expected(model, quantity, fact)
    if found is None:
        return row | {"expected": None, "sd": None, "away": None}
    expected, spread = found
    spread *= np.sqrt(model.samples / _SAMPLES)
    short = fact["number"] - expected
    gap = max(short, 0.0) if "above" in fact.get("qualifier", "") else abs(short)
    # Digits that are not printed are no difference.
    gap = max(gap - 0.5 * 10.0 ** -_decimals(fact["value"]), 0.0)
    away = gap / spread if spread > 1e-12 else float("inf") if gap > 1e-9 else 0.0
    return row | {"expected": expected, "sd": spread, "away": away}


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _expected(
    model: Simulated, quantity: str, fact: Mapping[str, Any]
) -> tuple[float, float] | None:
    """Return the expected number and its standard deviation, or None where no place is said."""
    if quantity in OF_ALL:
        exact = model.ece if quantity == OF_ALL[0] else model.population.aurc()
        return exact, float(model.spread(quantity)[0])
    values, spread = model.expected[quantity], model.spread(quantity)
    place, at = fact["threshold"], fact.get("threshold_used") or ""
    if "peak" in fact.get("qualifier", ""):
        best = int(np.nanargmax(values))
        return float(values[best]), float(spread[best])
    if place == "all":
        return float(np.nanmean(values)), float(np.nanmax(spread))
    try:
        t = float(at or _ENDS.get(place, place))
    except ValueError:
        return None
    known = np.isfinite(values) & np.isfinite(spread)
    if not known.any():
        return None
    grid = model.thresholds[known]
    exact = float(np.interp(t, grid, values[known]))
    return exact, float(np.interp(t, grid, spread[known]))


def printed_claims(rows: Sequence[Row], bold: Population) -> Iterator[Claim]:
    """Decide whether the printed numbers are those of the models that are described."""
    for name, (_, section) in _MEANT.items():
        mine = [row for row in rows if row["model"] == name]
        for where in dict.fromkeys(row["where"] for row in mine):
            yield _of_numbers(name, section, [row for row in mine if row["where"] == where])
    for name in _TABLES:
        yield _possible(name)
    yield _constant()
    if lost := {r["quantity"]: r["printed"] for r in rows if "lost" in r["threshold"]}:
        yield _one_place(lost, bold)


def _of_numbers(name: str, section: str, rows: Sequence[Row]) -> Claim:
    known = [row for row in rows if row["away"] is not None]
    far = sorted((row for row in known if row["away"] > _FAR), key=lambda row: -row["away"])
    said = [
        f"{_title(row['quantity'])}{_place(row)} {row['printed']:g} instead of "
        f"{row['expected']:.4g}"
        for row in far
    ]
    evidence = f"{len(known) - len(far)} of {len(known)} within {_FAR:g} standard deviations"
    return Claim(
        section,
        f"The numbers of the {rows[0]['where']} are those of the {name} model",
        judged_by(holds=not far, ever=len(far) < len(known)) if known else OPEN,
        f"{evidence}; {listed(said, 3)}" if said else evidence,
    )


def _title(quantity: str) -> str:
    return TITLES.get(quantity, quantity)


def _place(row: Row) -> str:
    return f" at {row['threshold']}" if row["threshold"] else ""


def _cells(name: str) -> dict[str, dict[str, float]]:
    """Return a table by threshold and quantity."""
    out: dict[str, dict[str, float]] = {}
    for fact in table(name):
        out.setdefault(fact["threshold"], {})[fact["metric"]] = fact["number"]
    return out


def _possible(name: str) -> Claim:
    """Check what holds of any model: CWSA is at most coverage x CWSA+."""
    cells = _cells(name)
    coverage, _, signed, plus = QUANTITIES
    # Of numbers that are rounded to the fourth digit, and coverages to the third.
    broken = [at for at, row in cells.items() if row[signed] > row[coverage] * row[plus] + 6e-4]
    model = table(name)[0]["model"]
    return Claim(
        _MEANT[model][1],
        f"The rows of the table of the {model} model can be of one model",
        judged_by(holds=not broken, ever=len(broken) < len(cells)),
        f"CWSA exceeds coverage x CWSA+, which it cannot, at {len(broken)} of {len(cells)} "
        f"thresholds{': ' if broken else ''}{', '.join(broken)}",
    )


def _constant() -> Claim:
    name = _TABLES[1]
    kept = [row[QUANTITIES[1]] for row in _cells(name).values()]
    return Claim(
        _MEANT[OVERCONFIDENT][1],
        "The selective accuracy stays at 94.3 % over all thresholds, since all samples are kept",
        judged_by(holds=max(kept) - min(kept) < 5e-4),
        f"{min(kept):.4f} to {max(kept):.4f} in the table there",
    )


def _one_place(lost: Mapping[str, float], bold: Population) -> Claim:
    """Look for the threshold, lost in the text, at which the overconfident model has both."""
    grid = np.linspace(_ENDS["lowest"], _ENDS["highest"], 491)
    exact = expected_of(bold, grid)
    away = {name: np.abs(exact[name] - value) for name, value in lost.items()}
    near = {name: float(grid[np.argmin(gap)]) for name, gap in away.items()}
    # A sample of a thousand has either within about this of the law.
    together = np.max(list(away.values()), axis=0) < _NEAR
    said = [f"{_title(n)} {lost[n]:g} near the threshold {at:.2f}" for n, at in near.items()]
    both = " and ".join(f"{_title(name)} {value:g}" for name, value in lost.items())
    return Claim(
        _MEANT[OVERCONFIDENT][1],
        f"The overconfident model has {both} at one threshold",
        judged_by(holds=bool(together.any())),
        f"its law has {', and '.join(said)}",
    )
