"""The source of both distributions as the architecture tests see it: files, trees, module names."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The folders of the distributions `abstain` and `abstain-bench`.
SRC = ROOT / "src" / "abstain"
BENCH = ROOT / "bench" / "src" / "abstain_bench"

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
    """One Python file of a distribution."""

    path: Path
    folder: Path = SRC

    @property
    def name(self) -> str:
        """Path below the folder of its distribution, with forward slashes."""
        return self.path.relative_to(self.folder).as_posix()

    @property
    def module(self) -> str:
        """The name that it is imported by."""
        parts = (self.folder.name, *self.name.removesuffix(".py").split("/"))
        return ".".join(part for part in parts if part != "__init__")

    @property
    def top(self) -> str:
        """The layer it belongs to."""
        return Path(self.name).parts[0].removesuffix(".py")

    @property
    def is_command(self) -> bool:
        return self.top in {"cli", "commands"}

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
        results = []
        for node in self.walk():
            if isinstance(node, ast.Import):
                results += [(alias.name.split(".")[0], node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                results.append((node.module.split(".")[0], node.lineno))
        return results

    def at(self, line: int) -> str:
        """Where, in the form that editors open."""
        return f"{self.path.relative_to(ROOT)}:{line}"


ABSTAIN_FILES = [SourceFile(path) for path in sorted(SRC.rglob("*.py"))]
FILES = [*ABSTAIN_FILES, *(SourceFile(path, BENCH) for path in sorted(BENCH.rglob("*.py")))]
