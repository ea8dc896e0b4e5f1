"""Measure the house and draw it from its imports.

`python tools/house.py` prints the table of docs/design.md for the source that is there;
`python tools/house.py --picture docs/_static/house.svg` also draws it; `--source ../old/src`
measures another checkout. It needs the extra `lint`: grimp, which import-linter is made of.
"""

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]

#: The rows of the picture, the highest first; `lint-imports` enforces them.
LAYERS = (
    ("cli",),
    ("report",),
    ("studies",),
    ("plots", "benchmark", "integrations"),
    ("evaluation", "streaming", "tables", "training"),
    ("metrics", "thresholds"),
    ("curves",),
    ("calibration", "confidence"),
    ("predictions", "inference", "simulate"),
    ("_foundation",),
    ("errors", "typing"),
)

#: Nearly every package imports them; their lines would hide the others.
_EVERYWHERE = ("_foundation", "errors", "typing")


@dataclass(frozen=True)
class House:
    """The package below a source folder."""

    source: Path

    @cached_property
    def trees(self) -> dict[Path, ast.Module]:
        """Each file with its syntax."""
        files = sorted((self.source / "abstain").rglob("*.py"))
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}

    @cached_property
    def imports(self) -> grimp.ImportGraph:
        """Who imports whom, inside functions too, for types alone not."""
        sys.path.insert(0, str(self.source))
        return grimp.build_graph("abstain", exclude_type_checking_imports=True, cache_dir=None)

    def lines(self, path: Path) -> int:
        """Count the lines of a file."""
        return path.read_text(encoding="utf-8").count("\n")

    def code_lines(self, path: Path) -> int:
        """Count the lines that hold code: no docstring, no comment, no blank."""
        text = path.read_text(encoding="utf-8")
        prose: set[int] = set()
        for node in ast.walk(self.trees[path]):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                ast.get_docstring(node, clean=False) is not None
            ):
                prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        shape = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
        shape |= {tokenize.DEDENT, tokenize.ENDMARKER}
        code: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in shape:
                code.update(range(token.start[0], token.end[0] + 1))
        return len(code - prose)

    def circles(self) -> list[set[str]]:
        """Return the sets of modules that import each other, the largest first."""
        return sorted(_knots(self._edges()), key=len, reverse=True)

    def _edges(self) -> dict[str, set[str]]:
        graph = self.imports
        # A package's face imports what is in it; that its modules belong to it is no circle.
        return {
            module: {
                other
                for other in graph.find_modules_directly_imported_by(module)
                if not module.startswith(f"{other}.")
            }
            for module in graph.modules
        }

    def private_imports(self) -> list[tuple[str, str]]:
        """Return (importer, imported) where a package takes another's private module."""
        return [
            (module, other)
            for module, others in sorted(self._edges().items())
            for other in sorted(others)
            if (owner := _owner(other)) and not f"{module}.".startswith(f"{owner}.")
        ]

    def traffic(self) -> Counter[tuple[str, str]]:
        """Count the imports between the packages of the first level."""
        pairs = Counter[tuple[str, str]]()
        for module, others in self._edges().items():
            for other in others:
                ends = _package(module), _package(other)
                if ends[0] != ends[1] and all(ends):
                    pairs[ends] += 1
        return pairs

    def table(self) -> Iterator[tuple[str, str]]:
        """Yield the rows of the table, a measure and its value."""
        sizes = {path: self.lines(path) for path in self.trees}
        longest = max(sizes, key=lambda path: sizes[path])
        nodes = [node for tree in self.trees.values() for node in ast.walk(tree)]
        functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        yield "files", f"{len(sizes):,}"
        yield "lines", f"{sum(sizes.values()):,}"
        yield "lines of code", f"{sum(map(self.code_lines, sizes)):,}"
        yield "median file", f"{statistics.median(sizes.values()):g}"
        yield "longest file", f"{sizes[longest]} ({longest.relative_to(self.source / 'abstain')})"
        yield "functions", f"{len(functions):,}"
        yield "circles of imports", f"{len(self.circles())}"
        yield "imports of another package's private module", f"{len(self.private_imports())}"


def _owner(module: str) -> str:
    """Return the package that a private module belongs to; empty for a public module."""
    parts = module.split(".")
    for i, part in enumerate(parts):
        if part.startswith("_") and part != "_foundation":
            return ".".join(parts[:i])
    return ""


def _package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _knots(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected parts of more than one module (Kosaraju)."""
    order: list[str] = []
    _walk(edges, edges, order)
    back: dict[str, set[str]] = {module: set() for module in edges}
    for module, others in edges.items():
        for other in others:
            back[other].add(module)
    parts: list[set[str]] = []
    seen: set[str] = set()
    for module in reversed(order):
        found: list[str] = []
        _walk(back, [module], found, seen)
        if len(found) > 1:
            parts.append(set(found))
    return parts


def _walk(
    edges: dict[str, set[str]],
    starts: Iterable[str],
    order: list[str],
    seen: set[str] | None = None,
) -> None:
    """Append the modules reached from the starts, each behind those that it leads to."""
    known = set() if seen is None else seen
    for start in starts:
        todo = [(start, False)]
        while todo:
            module, left = todo.pop()
            if left:
                order.append(module)
            elif module not in known:
                known.add(module)
                todo.append((module, True))
                todo.extend((other, False) for other in sorted(edges[module]))


def draw(house: House, picture: Path) -> None:
    """Draw the layers as rows, packages as boxes as wide as they have lines, imports as lines."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "abstain"
    figure = Figure(figsize=(11, 9.5), layout="constrained")
    axes = figure.subplots()
    places = {}
    for row, layer in enumerate(LAYERS):
        inside = {name: _files(house, name) for name in layer}
        widths = {name: _width(house, files) for name, files in inside.items()}
        left = -(sum(widths.values()) + 0.4 * (len(widths) - 1)) / 2
        for name, width in widths.items():
            places[name] = (left + width / 2, -row)
            lines = sum(map(house.lines, inside[name]))
            axes.barh(-row, width, 0.5, left, color="#dfe9f5", edgecolor="#33608c", zorder=2)
            said = f"{name}\n{len(inside[name])} files, {lines:,} lines"
            axes.text(*places[name], said, ha="center", va="center", fontsize=8, zorder=3)
            left += width + 0.4
    for (above, below), count in sorted(house.traffic().items()):
        if above in places and below in places and below not in _EVERYWHERE:
            (x, y), (to, end) = places[above], places[below]
            width = 0.3 + count**0.5 / 4
            axes.plot([x, to], [y - 0.25, end + 0.25], "#8a4f1d", lw=width, alpha=0.4, zorder=1)
    axes.set_axis_off()
    said = ", ".join(_EVERYWHERE)
    axes.set_title(f"A line for imports, thicker for more; {said} serve all", fontsize=10)
    figure.savefig(picture, metadata={"Date": None})


def _files(house: House, name: str) -> list[Path]:
    root = house.source / "abstain"
    return [p for p in house.trees if p.relative_to(root).parts[0].removesuffix(".py") == name]


def _width(house: House, files: list[Path]) -> float:
    return max(2.1, sum(map(house.lines, files)) / 1800)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="folder of the package")
    parser.add_argument("--picture", type=Path, help="SVG or PNG to draw")
    parser.add_argument("--offenders", action="store_true", help="name circles and private imports")
    asked = parser.parse_args(arguments)
    house = House(asked.source.resolve())
    for name, value in house.table():
        print(f"| {name} | {value} |")
    if asked.offenders:
        for circle in house.circles():
            print("circle:", ", ".join(sorted(circle)))
        for importer, imported in house.private_imports():
            print(f"private: {importer} imports {imported}")
    if asked.picture:
        draw(house, asked.picture)


if __name__ == "__main__":
    main()
