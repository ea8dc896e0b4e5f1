"""The package's source as the architecture tests see it: files, syntax trees, module names."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "abstain"

#: The layers that may only compute (DESIGN section 4).
NUMERICS = (
    "_foundation",
    "predictions",
    "inference",
    "simulate",
    "calibration",
    "confidence",
    "curves",
    "shift",
    "metrics",
    "thresholds",
)


@dataclass(frozen=True)
class SourceFile:
    """One Python file of the package."""

    path: Path

    @property
    def name(self) -> str:
        """Path below src/abstain, with forward slashes."""
        return self.path.relative_to(SRC).as_posix()

    @property
    def top(self) -> str:
        """The layer it belongs to."""
        return Path(self.name).parts[0].removesuffix(".py")

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    def walk(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [n for n in self.walk() if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    def imports(self) -> list[tuple[str, int]]:
        """Top-level names of the packages imported anywhere in the file, with the line."""
        found = []
        for node in self.walk():
            if isinstance(node, ast.Import):
                found += [(alias.name.split(".")[0], node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.append((node.module.split(".")[0], node.lineno))
        return found

    def at(self, line: int) -> str:
        """Where, in the form that editors open."""
        return f"src/abstain/{self.name}:{line}"


FILES = [SourceFile(path) for path in sorted(SRC.rglob("*.py"))]
