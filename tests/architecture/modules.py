"""The modules of the package, who imports whom, and what stands against the architecture rules."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.architecture.source import SourceFile

WORDS_OF_ONE_FAMILY = 3


@dataclass(frozen=True)
class ImportGraph:
    """The files of the package by the name that they are imported by."""

    files: dict[str, SourceFile]

    @classmethod
    def of(cls, files: list[SourceFile]) -> "ImportGraph":
        return cls({file.module: file for file in files})

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules that each module names in an import, at its top or inside a function."""
        return {name: set(self._of_one(name)) - {name} for name in self.files}

    def _of_one(self, name: str) -> list[str]:
        results = []
        for node in _run(self.files[name].tree):
            if isinstance(node, ast.Import):
                results += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                below = [f"{module}.{alias.name}" for alias in node.names]
                results += [inner if inner in self.files else module for inner in below]
        return [module for module in results if module in self.files]

    def foreign_privates(self) -> set[str]:
        """`package -> module` where the package is not the one that the module is private to."""
        names = set()
        for importer, modules in self.imports.items():
            for module in modules:
                owner = _owner(module)
                if owner is not None and not f"{importer}.".startswith(f"{owner}."):
                    names.add(f"{self._package(importer)} -> {module}")
        return names

    def families(self) -> set[str]:
        """`folder/word_*` where three siblings or more begin with the word."""
        siblings = {_sibling(file) for file in self.files.values()}
        siblings |= {_sibling_folder(file) for file in self.files.values()}
        counts = Counter(
            f"{folder}/{name.lstrip('_').split('_')[0]}_*".removeprefix("./")
            for folder, name in siblings
            if name.strip("_")
        )
        return {family for family, count in counts.items() if count >= WORDS_OF_ONE_FAMILY}

    def in_circles(self) -> set[str]:
        """The modules from which a way of imports leads back to themselves."""
        imports = self.imports
        return {name for name in imports if name in _reached(name, imports)}

    def _package(self, module: str) -> str:
        is_folder = self.files[module].path.name == "__init__.py"
        return module if is_folder else module.rpartition(".")[0]


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below that is run: not what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.If) or "TYPE_CHECKING" not in ast.unparse(child.test):
            yield child
            yield from _run(child)


def _owner(module: str) -> str | None:
    """The package that a module is private to; `_foundation` is open to the whole package."""
    parts = module.split(".")
    for index, part in enumerate(parts):
        if part.startswith("_") and part not in {"_foundation", "__main__"}:
            return ".".join(parts[:index])
    return None


def _sibling(file: SourceFile) -> tuple[str, str]:
    path = Path(file.folder.name, file.name)
    return str(path.parent), path.stem if path.stem not in {"__init__", "__main__"} else ""


def _sibling_folder(file: SourceFile) -> tuple[str, str]:
    folder = Path(file.folder.name, file.name).parent
    return str(folder.parent), folder.name


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += imports[module]
    return reached
