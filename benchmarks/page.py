"""The page of what was measured: docs/performance.md, made from the catalogue and the table."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.cases import SECTIONS
from benchmarks.cases.entry import Contender, Race, Section, Target
from benchmarks.cases.kernels import NUMBA, NUMPY
from benchmarks.growth import exponents, lines
from benchmarks.measuring.rounds import Found
from benchmarks.results import Measured, Results
from benchmarks.table import markdown
from benchmarks.targets import bytes_a_sample, missed

#: How names begin that are typed.
_TYPED = (
    "ab.",
    "abstain evaluate -",
    "abstain -",
    "abstain list",
    "python ",
    "np.",
    "torch.",
    "pip ",
)
#: A call that words follow.
_CALL = re.compile(r"ab\.\w+, ")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"

HEAD = """# Performance

What a person waits for, by each way into the package: a public call on arrays, a command on a
file. `make bench` measures all of it in one run and writes this page; `make bench-check` measures
the quick part again and prints which contender takes 20% more than here, in the ratio to its
reference (or in memory, or in the size of its page), so that another machine or load is not the
reason.

The contenders of a table take turns with a reference, and the best round of each counts. Ratios
are to that reference, in time of the processor; of the wall clock where several threads work.
Memory of a call is the peak beyond what was resident before, in a process of its own; of a command,
the peak of its process. "At most" is the target; an asterisk marks a missed target.
"""


def page(results: Results, races: Mapping[str, Race], *, figure: str = "") -> str:
    """Return the page; `figure` is where the picture of growth lies, seen from it."""
    told = [HEAD, *_where(results)] if results.races else [HEAD]
    for section in SECTIONS:
        own = [race for race in races.values() if race.section == section.name]
        there = [race for race in own if race.name in results.races]
        told += ["", f"## {section.title}", "", *_wrapped(section.text)]
        if figure and any(race.grows for race in there):
            told += ["", f"![Cost of each against how many there are]({figure})"]
        # Headings stay where nothing was measured: other pages point to them.
        told += _of_section(section, there, results) if there else ["", "Not measured yet."]
    return "\n".join(told) + "\n"


def _of_section(section: Section, races: Sequence[Race], results: Results) -> Iterator[str]:
    columns = [race for race in races if race.column]
    if columns:
        yield from _side_by_side(columns, results, section.cell)
    for race in races:
        measured = results.races[race.name]
        if race.grows:
            yield from _growing(race, measured)
        elif not race.column:
            yield from _plain(race, measured)
    yield from _absent(races, results)


def _where(results: Results) -> Iterator[str]:
    """Say on what machine, when, and with what."""
    for name, told in (("Machine", "machine"), ("Measured", "when"), ("Of", "commit")):
        found = Counter(getattr(one, told) for one in results.races.values())
        if name == "Measured":
            loads = [one.load for one in results.races.values()] or [0.0]
            minutes = sum(one.took for one in results.races.values()) / 60
            yield (
                f"{name}: {min(found, default='-')} to {max(found, default='-')}, in {minutes:.0f} "
                f"minutes; load before each race {min(loads):.1f} to {max(loads):.1f}.\n"
            )
        elif any(found):
            yield f"{name}: {'; '.join(filter(None, found))}.\n"
    known: dict[str, set[str]] = {}
    for one in results.races.values():
        for package, version in one.versions.items():
            known.setdefault(package, set()).add(version)
    told = ", ".join(f"{package} {' or '.join(sorted(v))}" for package, v in known.items())
    yield from _wrapped(f"Versions: {told}.")


def _side_by_side(races: Sequence[Race], results: Results, cell: str) -> Iterator[str]:
    """Lay out a row for each contender and a column for each race (NumPy's kernels in brackets)."""
    keys = list(dict.fromkeys(contender.name for race in races for contender in race.contenders))
    rows = [[code(name), *(_cell(name, race, results, cell) for race in races)] for name in keys]
    base = code(races[0].reference.name)
    unit = "ms" if cell == "ratio" else ""
    first = [_reference(race, results, cell) for race in races]
    rows.insert(0, [f"{base}, {unit}" if unit else base, *first])
    rows += _memory_rows(races, results)
    yield ""
    head = f"in {base}" if cell == "ratio" else "ns a sample"
    yield markdown([head, *(race.column for race in races)], rows)


def _reference(race: Race, results: Results, cell: str) -> str:
    seconds = results.races[race.name].contenders[race.reference.key].seconds
    return short(1e3 * seconds if cell == "ratio" else 1e9 * seconds / race.n)


def _cell(name: str, race: Race, results: Results, cell: str) -> str:
    found = results.races[race.name].contenders
    told = {}
    for contender in race.contenders:
        if contender.name == name and contender.key in found and not found[contender.key].reason:
            own = found[contender.key]
            value = own.ratio if cell == "ratio" else 1e9 * own.seconds / race.n
            told[contender.kernels] = _with_mark(value, "ratio" in _kinds(contender, race, found))
    if NUMPY in told:
        return f"{told.get(NUMBA, '-')} ({told[NUMPY]})"
    return next(iter(told.values()), "")


def _kinds(contender: Contender, race: Race, found: Mapping[str, Found]) -> set[str]:
    return {target.of for target in missed(contender, race, found)}


def _memory_rows(races: Sequence[Race], results: Results) -> Iterator[list[str]]:
    """Yield the extra bytes a sample of the contenders of which they are known."""
    shown = {
        contender.key: _shown(contender)
        for race in races
        for contender in race.contenders
        if contender.memory
    }
    for key, name in shown.items():
        cells = []
        for race in races:
            found = results.races[race.name].contenders
            contender = next((one for one in race.contenders if one.key == key), None)
            there = contender is not None and key in found and found[key].peak is not None
            over = there and "bytes" in _kinds(contender, race, found)
            each = bytes_a_sample(found[key], race) if there else None
            cells.append("" if each is None else _with_mark(each, over))
        if any(cells):
            yield [f"{name}: extra bytes a sample", *cells]


def _plain(race: Race, measured: Measured) -> Iterator[str]:
    """Lay out one row for each contender."""
    contenders = [
        contender
        for contender in (race.reference, *race.contenders)
        if contender.key in measured.contenders
    ]
    shown = [contender for contender in contenders if not measured.contenders[contender.key].reason]
    facts = list(
        dict.fromkeys(f for contender in shown for f in measured.contenders[contender.key].facts)
    )
    commands = any(contender.facts for contender in measured.contenders.values()) or race.processes
    head = ["", "seconds", "processor", f"in {code(race.reference.name)}"]
    head += ["ns a " + _unit(race)] if race.n else []
    head += ["MiB" if commands else "extra MiB", *facts, "at most"]
    rows = []
    for contender in shown:
        found = measured.contenders[contender.key]
        row = [_shown(contender), short(found.seconds), short(found.processor), short(found.ratio)]
        row += [short(1e9 * found.seconds / race.n)] if race.n else []
        row += ["" if found.peak is None else short(found.peak)]
        row += [short(found.facts[f]) if f in found.facts else "" for f in facts]
        rows.append([*row, _limits(contender, race, measured.contenders)])
    if not shown:
        return
    yield f"\n### {_title(race)}\n"
    if race.about:
        yield race.about + "\n"
    yield markdown(head, rows)


def _title(race: Race) -> str:
    typed = race.name.startswith("abstain ")
    return race.name if typed else f"{race.name[0].upper()}{race.name[1:]}"


def _unit(race: Race) -> str:
    return {"commands": "row", "updates": "update"}.get(race.section, "sample")


def _growing(race: Race, measured: Measured) -> Iterator[str]:
    """Lay out one row for each series: the cost of a unit at each size, and exponents."""
    series = lines(race, measured.contenders)
    yield f"\n### {_title(race)}\n"
    yield f"{race.about} Microseconds of the processor for each of the {race.grows}.\n"
    sizes = sorted({size for line in series.values() for size in line.sizes})
    rows = []
    for name, line in series.items():
        each = dict(zip(line.sizes, line.each, strict=True))
        cells = [short(each[n]) if n in each else "" for n in sizes]
        fitted, last = exponents(line.sizes, line.costs)
        peak = "" if line.peaks[-1] is None else short(line.peaks[-1])
        rows.append([code(name), *cells, f"{fitted:.2f}", f"{last:.2f}", peak])
    head = ["", *(f"{int(n):,}" for n in sizes), "exponent", "of the last two", "MiB of the last"]
    keep = [i for i in range(len(head)) if i == 0 or any(row[i] for row in rows)]
    yield markdown([head[i] for i in keep], [[row[i] for i in keep] for row in rows])


def _absent(races: Sequence[Race], results: Results) -> Iterator[str]:
    """Say once of each contender that was not measured why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for race in races:
        for contender in race.contenders:
            found = results.races[race.name].contenders.get(contender.key)
            if found is not None and found.reason:
                reasons.setdefault((contender.key, found.reason), []).append(race.name)
    by_reason: dict[str, list[str]] = {}
    for key, reason in reasons:
        by_reason.setdefault(reason, []).append(code(key))
    for reason, keys in by_reason.items():
        told = keys if len(keys) < 6 else [*keys[:4], f"{len(keys) - 4} more"]
        yield ""
        yield from _wrapped(f"Not measured: {', '.join(told)}: {_one_line(reason)}.")


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "/").rstrip(".")[:300]


def _limits(contender: Contender, race: Race, contenders: Mapping[str, Found]) -> str:
    over = missed(contender, race, contenders)
    return ", ".join(
        _with_mark(target.at_most, target in over) + _of(target) for target in contender.targets
    )


def _of(target: Target) -> str:
    words = {"ratio": "", "seconds": " s", "beyond": " s more", "bytes": " bytes", "MiB": " MiB"}
    if target.than:
        return f" x {target.than}"
    return words.get(target.of, f" ({target.of})")


def _with_mark(value: float, missed: bool) -> str:
    return short(value) + ("\\*" if missed else "")


def short(x: float) -> str:
    """Write a number in as few digits as are worth reading."""
    if x != x:
        return "-"
    if x == 0 or 1e-3 <= abs(x) < 10:
        return f"{x:.2g}" if abs(x) < 1 else f"{x:.1f}"
    return f"{x:,.0f}" if abs(x) >= 10 else f"{x:.1e}"


def code(name: str) -> str:
    """Write what is typed as code, what is said as words."""
    call, _, more = name.partition(", ") if _CALL.match(name) else (name, "", "")
    typed = f"`{call}`" if name.startswith(_TYPED) else call
    return f"{typed}, {more}" if more else typed


def _shown(contender: Contender) -> str:
    return (
        f"{code(contender.name)}, {contender.kernels}"
        if contender.kernels
        else code(contender.name)
    )


def _wrapped(text: str, width: int = 104) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    if line:
        yield line
