"""Write docs/performance.md from the catalogue of cases and the stored results."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.cases import SECTIONS
from benchmarks.cases.entry import BenchmarkCase, Section, Target, Variant
from benchmarks.cases.kernels import NUMBA, NUMPY
from benchmarks.growth import costs_by_size, exponents
from benchmarks.measuring.rounds import Measurement
from benchmarks.results import CaseResult, Results
from benchmarks.table import markdown
from benchmarks.targets import bytes_per_sample, missed_targets

#: Prefixes of names that are formatted as code, because they are Python code or commands.
_CODE_PREFIXES = (
    "ab.",
    "abstain evaluate -",
    "abstain -",
    "abstain list",
    "python ",
    "np.",
    "torch.",
    "pip ",
)
#: Pattern of a call with a description after it.
_DESCRIBED_CALL = re.compile(r"ab\.\w+, ")
_UNITS = {"ratio": "", "seconds": " s", "beyond": " s more", "bytes": " bytes", "MiB": " MiB"}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"

HEAD = """# Performance

This page lists the time and the memory of calls and commands. The first table contains the commands
that users run most. The other sections compare single calls with a reference and with other
libraries.
"""

METHOD = """## Method of measurement

`make bench` measures all cases and writes this page. `make bench-check` measures some cases again
and lists the variants that exceed their stored values by more than 20%. The compared values are the
time relative to the reference, the memory and the size of the page. The time relative to the
reference depends little on the machine and its load.

The variants of a table and their reference are timed in the same rounds. The best round of each
variant counts. Ratios are ratios of CPU time. If a variant uses several threads, its ratio is that
of wall time. The memory of a call is the increase of the resident memory to its peak during the
call, in a separate process. The memory of a command is the peak resident memory of its process. The
column "target" contains the largest accepted value. An asterisk marks a missed target.
"""


def page(results: Results, cases: Mapping[str, BenchmarkCase], *, figure: str = "") -> str:
    """Return the Markdown text of the page.

    `figure` is the path of the figure about growth, relative to the page.
    """
    lines = [HEAD]
    for section in SECTIONS:
        in_section = [case for case in cases.values() if case.section == section.name]
        measured = [case for case in in_section if case.name in results.cases]
        lines += ["", f"## {section.title}", "", *_wrap(section.text)]
        if figure and any(case.growing for case in measured):
            lines += ["", f"![Cost per unit against size]({figure})"]
        # Sections without measurements keep their headings, because other pages link to them.
        lines += (
            _section_lines(section, measured, results) if measured else ["", "Not measured yet."]
        )
        if section is SECTIONS[0]:
            lines += ["", METHOD, *(_environment(results) if results.cases else ())]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _section_lines(
    section: Section, cases: Sequence[BenchmarkCase], results: Results
) -> Iterator[str]:
    columns = [case for case in cases if case.column]
    if columns and section.cell == "seconds":
        yield from _users_table(columns, results)
    elif columns:
        yield from _table_of_cases(columns, results, section.cell)
    for case in cases:
        result = results.cases[case.name]
        if case.growing:
            yield from _growth_table(case, result)
        elif not case.column:
            yield from _table_of_variants(case, result)
    yield from _reasons(cases, results)


def _environment(results: Results) -> Iterator[str]:
    """Yield the machine, the dates, the commits and the versions of the measurements."""
    measured = results.cases.values()
    dates = [result.date for result in measured]
    loads = [result.load for result in measured]
    minutes = sum(result.duration for result in measured) / 60
    machines = Counter(result.machine for result in measured)
    commits = Counter(result.commit for result in measured)
    yield f"Machine: {'; '.join(filter(None, machines))}.\n"
    yield (
        f"Measured: {min(dates)} to {max(dates)}, in {minutes:.0f} minutes. The load average "
        f"before each case was {min(loads):.1f} to {max(loads):.1f}.\n"
    )
    if any(commits):
        yield f"Commits: {'; '.join(filter(None, commits))}.\n"
    versions: dict[str, set[str]] = {}
    for result in measured:
        for package, version in result.versions.items():
            versions.setdefault(package, set()).add(version)
    text = ", ".join(f"{package} {' or '.join(sorted(v))}" for package, v in versions.items())
    yield from _wrap(f"Versions: {text}.")


def _users_table(cases: Sequence[BenchmarkCase], results: Results) -> Iterator[str]:
    """Yield a table of seconds and memory: one row per command, one column per number of rows."""
    names = list(dict.fromkeys(variant.name for case in cases for variant in case.variants))
    rows = []
    for name in names:
        cells = []
        for case in cases:
            measurement = results.cases[case.name].variants.get(name)
            if measurement is None or measurement.reason:
                cells.append("")
            else:
                cells.append(f"{short(measurement.seconds)} s, {_memory(measurement.peak)}")
        rows.append([f"`{name}`", *cells])
    yield ""
    yield markdown(["", *(case.column for case in cases)], rows)


def _memory(mebibytes: float | None) -> str:
    if mebibytes is None:
        return "-"
    return f"{mebibytes:.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:.1f} GiB"


def _table_of_cases(cases: Sequence[BenchmarkCase], results: Results, cell: str) -> Iterator[str]:
    """Yield a table with one row per variant and one column per case.

    Values of the NumPy kernels are in parentheses.
    """
    names = list(dict.fromkeys(variant.name for case in cases for variant in case.variants))
    reference = code(cases[0].reference.name)
    first = f"{reference}, ms" if cell == "ratio" else reference
    rows = [[first, *(_reference_cell(case, results, cell) for case in cases)]]
    rows += [[code(name), *(_cell(name, case, results, cell) for case in cases)] for name in names]
    rows += _memory_rows(cases, results)
    yield ""
    unit = f"relative to {reference}" if cell == "ratio" else "ns per sample"
    yield markdown([unit, *(case.column for case in cases)], rows)


def _reference_cell(case: BenchmarkCase, results: Results, cell: str) -> str:
    seconds = results.cases[case.name].variants[case.reference.key].seconds
    return short(1e3 * seconds if cell == "ratio" else 1e9 * seconds / case.n)


def _cell(name: str, case: BenchmarkCase, results: Results, cell: str) -> str:
    measurements = results.cases[case.name].variants
    texts = {}
    for variant in case.variants:
        measurement = measurements.get(variant.key)
        if variant.name != name or measurement is None or measurement.reason:
            continue
        value = measurement.ratio if cell == "ratio" else 1e9 * measurement.seconds / case.n
        missed = "ratio" in _missed_quantities(variant, case, measurements)
        texts[variant.kernels] = _mark(value, missed=missed)
    if NUMPY in texts:
        return f"{texts.get(NUMBA, '-')} ({texts[NUMPY]})"
    return next(iter(texts.values()), "")


def _missed_quantities(
    variant: Variant, case: BenchmarkCase, measurements: Mapping[str, Measurement]
) -> set[str]:
    return {target.quantity for target in missed_targets(variant, case, measurements)}


def _memory_rows(cases: Sequence[BenchmarkCase], results: Results) -> Iterator[list[str]]:
    """Yield a row with the extra bytes per sample of each variant whose memory was measured."""
    titles = {
        variant.key: _title(variant)
        for case in cases
        for variant in case.variants
        if variant.memory
    }
    for key, title in titles.items():
        cells = [_memory_cell(key, case, results) for case in cases]
        if any(cells):
            yield [f"{title}: extra bytes per sample", *cells]


def _memory_cell(key: str, case: BenchmarkCase, results: Results) -> str:
    measurements = results.cases[case.name].variants
    variant = next((variant for variant in case.variants if variant.key == key), None)
    if variant is None or key not in measurements:
        return ""
    n_bytes = bytes_per_sample(measurements[key], case)
    if n_bytes is None:
        return ""
    return _mark(n_bytes, missed="bytes" in _missed_quantities(variant, case, measurements))


def _table_of_variants(case: BenchmarkCase, result: CaseResult) -> Iterator[str]:
    """Yield a table with one row per variant."""
    measurements = result.variants
    variants = [
        variant
        for variant in (case.reference, *case.variants)
        if variant.key in measurements and not measurements[variant.key].reason
    ]
    if not variants:
        return
    facts = list(dict.fromkeys(f for variant in variants for f in measurements[variant.key].facts))
    is_command = case.runs_processes or any(m.facts for m in measurements.values())
    header = ["", "seconds", "CPU seconds", f"relative to {code(case.reference.name)}"]
    header += [f"ns per {_unit(case)}"] if case.n else []
    header += ["MiB" if is_command else "extra MiB", *facts, "target"]
    rows = []
    for variant in variants:
        measurement = measurements[variant.key]
        row = [_title(variant)]
        row += map(short, (measurement.seconds, measurement.cpu_seconds, measurement.ratio))
        row += [short(1e9 * measurement.seconds / case.n)] if case.n else []
        row += ["" if measurement.peak is None else short(measurement.peak)]
        row += [short(measurement.facts[f]) if f in measurement.facts else "" for f in facts]
        rows.append([*row, _targets(variant, case, measurements)])
    yield f"\n### {_heading(case)}\n"
    if case.description:
        yield case.description + "\n"
    yield markdown(header, rows)


def _heading(case: BenchmarkCase) -> str:
    if case.name.startswith("abstain "):
        return case.name
    return f"{case.name[0].upper()}{case.name[1:]}"


def _unit(case: BenchmarkCase) -> str:
    return {"commands": "row", "updates": "update"}.get(case.section, "sample")


def _growth_table(case: BenchmarkCase, result: CaseResult) -> Iterator[str]:
    """Yield a table of the cost per unit at each size and the exponents, one row per series."""
    series = costs_by_size(case, result.variants)
    yield f"\n### {_heading(case)}\n"
    yield f"{case.description} CPU microseconds divided by the number of {case.growing}.\n"
    sizes = sorted({size for line in series.values() for size in line.sizes})
    rows = []
    for name, line in series.items():
        costs = dict(zip(line.sizes, line.microseconds_per_unit, strict=True))
        cells = [short(costs[n]) if n in costs else "" for n in sizes]
        fitted, last = exponents(line.sizes, line.costs)
        peak = "" if line.peaks[-1] is None else short(line.peaks[-1])
        rows.append([code(name), *cells, f"{fitted:.2f}", f"{last:.2f}", peak])
    header = [
        "",
        *(f"{int(n):,}" for n in sizes),
        "exponent",
        "exponent, last two sizes",
        "MiB, last size",
    ]
    columns = [i for i in range(len(header)) if i == 0 or any(row[i] for row in rows)]
    yield markdown([header[i] for i in columns], [[row[i] for i in columns] for row in rows])


def _reasons(cases: Sequence[BenchmarkCase], results: Results) -> Iterator[str]:
    """Yield a sentence for each reason that lists the variants without a measurement."""
    keys_by_reason: dict[str, list[str]] = {}
    for case in cases:
        for variant in case.variants:
            measurement = results.cases[case.name].variants.get(variant.key)
            if measurement is None or not measurement.reason:
                continue
            keys = keys_by_reason.setdefault(measurement.reason, [])
            if code(variant.key) not in keys:
                keys.append(code(variant.key))
    for reason, keys in keys_by_reason.items():
        names = keys if len(keys) < 6 else [*keys[:4], f"{len(keys) - 4} more"]
        yield ""
        yield from _wrap(f"Not measured: {', '.join(names)}: {_one_line(reason)}.")


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "/").rstrip(".")[:300]


def _targets(variant: Variant, case: BenchmarkCase, measurements: Mapping[str, Measurement]) -> str:
    missed = missed_targets(variant, case, measurements)
    return ", ".join(
        _mark(target.at_most, missed=target in missed) + _target_unit(target)
        for target in variant.targets
    )


def _target_unit(target: Target) -> str:
    if target.compared_to:
        return f" x {target.compared_to}"
    return _UNITS.get(target.quantity, f" ({target.quantity})")


def _mark(value: float, *, missed: bool) -> str:
    return short(value) + ("\\*" if missed else "")


def short(x: float) -> str:
    """Format a number with two significant digits."""
    if x != x:
        return "-"
    if x == 0 or 1e-3 <= abs(x) < 10:
        return f"{x:.2g}" if abs(x) < 1 else f"{x:.1f}"
    return f"{x:,.0f}" if abs(x) >= 10 else f"{x:.1e}"


def code(name: str) -> str:
    """Format Python code and commands in a name as code."""
    call, _, more = name.partition(", ") if _DESCRIBED_CALL.match(name) else (name, "", "")
    text = f"`{call}`" if name.startswith(_CODE_PREFIXES) else call
    return f"{text}, {more}" if more else text


def _title(variant: Variant) -> str:
    name = code(variant.name)
    return f"{name}, {variant.kernels}" if variant.kernels else name


def _wrap(text: str, width: int = 120) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    if line:
        yield line
