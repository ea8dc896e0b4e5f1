"""Measure the source and draw its imports.

`python -m tools.architecture` prints the table of docs/design.md for the current source.
`--figure docs/_static/architecture.svg` also draws the packages, `--offenders` lists the modules
that break the rules, and `--calls` counts the files whose code a public call runs.
tests/architecture defines cycles and private modules. pyproject.toml defines the layers.
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
from tests.architecture.source import ABSTAIN_FILES, FILES, ROOT, SourceFile

#: Packages that nearly every package imports; their lines would hide the others.
_COMMON_PACKAGES = ("abstain._foundation", "abstain.errors", "abstain.typing")

#: Tokens that are not code.
_NON_CODE_TOKENS = frozenset(
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
    """Return the packages of both distributions by layer, the highest first."""
    rows = []
    for folder, distribution in ((ROOT / "bench", "abstain_bench"), (ROOT, "abstain")):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        contract = project["tool"]["importlinter"]["contracts"][0]
        rows += [
            [f"{distribution}.{name.strip()}" for name in row.split("|")]
            for row in contract["layers"]
        ]
    return rows


def lines(file: SourceFile) -> int:
    """Count the lines of a file."""
    return file.text.count("\n")


def code_lines(file: SourceFile) -> int:
    """Count the lines of code without docstrings, comments, blank lines and imports."""
    skipped: set[int] = set()
    for node in file.walk():
        if isinstance(node, ast.Import | ast.ImportFrom):
            skipped.update(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            skipped.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type not in _NON_CODE_TOKENS:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - skipped)


def table(graph: ImportGraph) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: a measure and its values for both distributions."""
    both = [ABSTAIN_FILES, [file for file in FILES if file not in ABSTAIN_FILES]]
    yield "measure", "abstain", "abstain-bench"
    yield "files", *(f"{len(files):,}" for files in both)
    yield "lines", *(f"{sum(map(lines, files)):,}" for files in both)
    yield "lines of code", *(f"{sum(map(code_lines, files)):,}" for files in both)
    yield "median file", *(f"{statistics.median(map(lines, files)):g}" for files in both)
    longest = [max(files, key=lines) for files in both]
    yield "longest file", *(f"{lines(file)} ({file.name})" for file in longest)
    yield "functions", *(f"{sum(len(f.functions()) for f in files):,}" for files in both)
    for title, offenders in (
        ("modules in an import cycle", graph.in_circles()),
        ("packages that import another's private module", graph.foreign_privates()),
        ("families of siblings", graph.families()),
    ):
        n_bench = sum("abstain_bench" in name for name in offenders)
        yield title, f"{len(offenders) - n_bench}", f"{n_bench}"


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
        call()  # the first call also imports modules
        yield name, len(_files_run(call))


def _files_run(call: Callable[[], Any]) -> set[str]:
    """Return the files of the package that have a function which the call runs."""
    package, files = str(ROOT / "src" / "abstain"), set()
    sys.setprofile(lambda frame, *_: files.add(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.setprofile(None)
    return {file for file in files if file.startswith(package)}


def package_imports(graph: ImportGraph) -> Counter[tuple[str, str]]:
    """Count the imports between the packages of the first level."""
    pairs = Counter[tuple[str, str]]()
    for module, imported_modules in graph.imports.items():
        for imported in imported_modules:
            importing_package, imported_package = _package(module), _package(imported)
            if importing_package != imported_package and importing_package and imported_package:
                pairs[importing_package, imported_package] += 1
    return pairs


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2]) if "." in module else ""


def draw(graph: ImportGraph, path: Path) -> None:
    """Draw layers as rows, packages as boxes (their width is the size), and imports as lines."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "abstain"
    figure = Figure(figsize=(11, 14), layout="constrained")
    axes = figure.subplots()
    centers = {}
    for row, layer in enumerate(layers()):
        files_of = {
            name: [file for file in FILES if _package(file.module) == name] for name in layer
        }
        sizes = {name: sum(map(lines, files)) for name, files in files_of.items()}
        widths = {name: max(2.1, size / 1800) for name, size in sizes.items()}
        left = -(sum(widths.values()) + 0.4 * (len(widths) - 1)) / 2
        for name, width in widths.items():
            centers[name] = (left + width / 2, -row)
            color = "#f3e6d8" if name.startswith("abstain_bench") else "#dfe9f5"
            axes.barh(-row, width, 0.5, left, color=color, edgecolor="#33608c", zorder=2)
            label = f"{name.partition('.')[2]}\n{len(files_of[name])} files, {sizes[name]:,} lines"
            axes.text(*centers[name], label, ha="center", va="center", fontsize=8, zorder=3)
            left += width + 0.4
    for (above, below), count in sorted(package_imports(graph).items()):
        if above in centers and below in centers and below not in _COMMON_PACKAGES:
            (x_above, y_above), (x_below, y_below) = centers[above], centers[below]
            width = 0.3 + count**0.5 / 4
            xs, ys = [x_above, x_below], [y_above - 0.25, y_below + 0.25]
            axes.plot(xs, ys, "#8a4f1d", lw=width, alpha=0.4, zorder=1)
    axes.set_axis_off()
    axes.set_title(
        "Packages of abstain-bench (top) and abstain (bottom). A line is an import.\n"
        "Imports of _foundation, errors and typing are not drawn.",
        fontsize=10,
    )
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw the packages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--figure", type=Path, help="SVG or PNG to draw")
    parser.add_argument("--calls", action="store_true", help="count the files that calls run")
    parser.add_argument(
        "--offenders", action="store_true", help="list the modules that break a rule"
    )
    options = parser.parse_args(arguments)
    graph = ImportGraph.of(FILES)
    for row in table(graph):
        print("| " + " | ".join(row) + " |")
    for name, files in calls() if options.calls else ():
        print(f"| files that `{name}` runs | {files} |")
    if options.offenders:
        offenders = graph.in_circles() | graph.foreign_privates() | graph.families()
        print("\n".join(sorted(offenders)))
    if options.figure:
        draw(graph, options.figure)


if __name__ == "__main__":
    main()
