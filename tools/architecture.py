"""Measure the source and draw its imports.

`python -m tools.architecture` prints the table of docs/design.md for the source that is there;
`--picture docs/_static/architecture.svg` also draws it, `--offenders` names what breaks the rules,
and `--calls` counts the files whose code a public call runs. tests/architecture defines cycles and
private modules, and pyproject.toml the layers.
"""

import argparse
import ast
import io
import statistics
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.architecture.modules import ImportGraph
from tests.architecture.source import FILES, ROOT, SourceFile

#: Nearly every package imports them; their lines would hide the others.
_EVERYWHERE = ("_foundation", "errors", "typing")

#: What a line may hold beside code.
_SHAPE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)


def layers() -> list[list[str]]:
    """Return the packages by layer, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip() for name in row.split("|")] for row in rows]


def lines(file: SourceFile) -> int:
    """Count the lines of a file."""
    return file.text.count("\n")


def code_lines(file: SourceFile) -> int:
    """Count the lines that hold code: no docstring, no comment, no blank."""
    prose: set[int] = set()
    for node in file.walk():
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type not in _SHAPE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose)


def table(graph: ImportGraph) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table, a measure and its value."""
    sizes = {file.name: lines(file) for file in FILES}
    longest = max(sizes, key=lambda name: sizes[name])
    yield "files", f"{len(sizes):,}"
    yield "lines", f"{sum(sizes.values()):,}"
    yield "lines of code", f"{sum(map(code_lines, FILES)):,}"
    yield "median file", f"{statistics.median(sizes.values()):g}"
    yield "longest file", f"{sizes[longest]} ({longest})"
    yield "functions", f"{sum(len(file.functions()) for file in FILES):,}"
    yield "modules in a circle of imports", f"{len(graph.in_circles())}"
    yield "packages that import another's private module", f"{len(graph.foreign_privates())}"
    yield "families of siblings", f"{len(graph.families())}"


def calls() -> Iterator[tuple[str, int]]:
    """Yield public calls and how many files of the package each runs code of."""
    import numpy as np

    import abstain as ab
    from abstain.evaluation import compare
    from abstain.report import html_report

    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    predictions = ab.Predictions(logits=logits, labels=rng.integers(3, size=300))
    loss = predictions.prediction != predictions.labels
    evaluation = ab.evaluate(predictions)
    public: dict[str, Callable[[], Any]] = {
        "augrc": lambda: ab.augrc(logits.max(axis=1), loss),
        "evaluate": lambda: ab.evaluate(predictions),
        "compare": lambda: compare(predictions, metrics=["augrc"]),
        "set_threshold": lambda: ab.set_threshold(
            predictions, score="msr", coverage=0.5, method="coverage"
        ),
        "html_report": lambda: html_report(evaluation),
    }
    for name, call in public.items():
        call()  # imports are no part of it
        yield name, len(_files_run(call))


def _files_run(call: Callable[[], Any]) -> set[str]:
    """Return the files of the package that a call enters a function of."""
    inside, seen = str(ROOT / "src" / "abstain"), set()
    sys.setprofile(lambda frame, *_: seen.add(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in seen if name.startswith(inside)}


def traffic(graph: ImportGraph) -> Counter[tuple[str, str]]:
    """Count the imports between the packages of the first level."""
    pairs = Counter[tuple[str, str]]()
    for module, others in graph.imports.items():
        for other in others:
            ends = _package(module), _package(other)
            if ends[0] != ends[1] and all(ends):
                pairs[ends] += 1
    return pairs


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def draw(graph: ImportGraph, picture: Path) -> None:
    """Draw the layers as rows, packages as boxes as wide as they have lines, imports as lines."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "abstain"
    figure = Figure(figsize=(11, 9.5), layout="constrained")
    axes = figure.subplots()
    places = {}
    for row, layer in enumerate(layers()):
        inside = {name: [file for file in FILES if file.top == name] for name in layer}
        sizes = {name: sum(map(lines, files)) for name, files in inside.items()}
        widths = {name: max(2.1, size / 1800) for name, size in sizes.items()}
        left = -(sum(widths.values()) + 0.4 * (len(widths) - 1)) / 2
        for name, width in widths.items():
            places[name] = (left + width / 2, -row)
            axes.barh(-row, width, 0.5, left, color="#dfe9f5", edgecolor="#33608c", zorder=2)
            said = f"{name}\n{len(inside[name])} files, {sizes[name]:,} lines"
            axes.text(*places[name], said, ha="center", va="center", fontsize=8, zorder=3)
            left += width + 0.4
    for (above, below), count in sorted(traffic(graph).items()):
        if above in places and below in places and below not in _EVERYWHERE:
            (x, y), (to, end) = places[above], places[below]
            width = 0.3 + count**0.5 / 4
            axes.plot([x, to], [y - 0.25, end + 0.25], "#8a4f1d", lw=width, alpha=0.4, zorder=1)
    axes.set_axis_off()
    said = ", ".join(_EVERYWHERE)
    axes.set_title(f"A line for imports, thicker for more; {said} serve all", fontsize=10)
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--picture", type=Path, help="SVG or PNG to draw")
    parser.add_argument("--calls", action="store_true", help="count the files that calls run")
    parser.add_argument("--offenders", action="store_true", help="name what is against the rules")
    asked = parser.parse_args(arguments)
    graph = ImportGraph.of(FILES)
    for name, value in table(graph):
        print(f"| {name} | {value} |")
    for name, files in calls() if asked.calls else ():
        print(f"| files that `{name}` runs | {files} |")
    if asked.offenders:
        found = graph.in_circles() | graph.foreign_privates() | graph.families()
        print("\n".join(sorted(found)))
    if asked.picture:
        draw(graph, asked.picture)


if __name__ == "__main__":
    main()
