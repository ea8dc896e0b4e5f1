"""Rules that no linter has, or that must not be switched off line by line."""

import ast
from collections import Counter

import pytest
from tests.architecture.source import FILES, NUMERICS, SourceFile

from abstain.thresholds import RULES as DECISION_RULES

# numpy.random names that build a generator; all others touch the global state.
GENERATORS = {"BitGenerator", "Generator", "PCG64", "PCG64DXSM", "Philox", "SeedSequence", "SFC64",
              "default_rng"}  # fmt: skip
# What numerics may not import: drawing, printing, reading files, training. polars is left out: a
# record's .frame() builds its table with it when asked; test_imports.py keeps that lazy.
NOT_NUMERICS = {
    "altair", "cyclopts", "jinja2", "lightning", "lightning_fabric", "matplotlib", "narwhals",
    "pandas", "pyarrow", "rich", "seaborn", "torchmetrics", "vl_convert",
}  # fmt: skip


def bare_excepts(file: SourceFile) -> list[int]:
    return [n.lineno for n in file.walk() if isinstance(n, ast.ExceptHandler) and n.type is None]


def pickles(file: SourceFile) -> list[int]:
    """allow_pickle=True, weights_only=False, and the pickle modules themselves."""
    unsafe = {("allow_pickle", True), ("weights_only", False)}
    calls = [
        n.value.lineno
        for n in file.walk()
        if isinstance(n, ast.keyword)
        and isinstance(n.value, ast.Constant)
        and (n.arg, n.value.value) in unsafe
    ]
    modules = {"pickle", "cloudpickle", "dill", "joblib", "shelve"}
    return calls + [line for name, line in file.imports() if name in modules]


def global_randomness(file: SourceFile) -> list[int]:
    """np.random.<anything that is not a generator>, and the random module."""
    attributes = [
        n.lineno
        for n in file.walk()
        if isinstance(n, ast.Attribute)
        and n.attr not in GENERATORS
        and ast.unparse(n.value) in {"np.random", "numpy.random"}
    ]
    return attributes + [line for name, line in file.imports() if name == "random"]


def asserts(file: SourceFile) -> list[int]:
    return [n.lineno for n in file.walk() if isinstance(n, ast.Assert)]


def prints(file: SourceFile) -> list[int]:
    if file.is_command:
        return []
    calls = [n for n in file.walk() if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return [n.lineno for n in calls if n.func.id == "print"]


def array_api_imports(file: SourceFile) -> list[int]:
    if file.name == "_foundation/arrays.py":
        return []
    return [line for name, line in file.imports() if name == "array_api_compat"]


def numerics_that_do_more(file: SourceFile) -> list[int]:
    if file.top not in NUMERICS:
        return []
    return [line for name, line in file.imports() if name in NOT_NUMERICS]


def late_annotations(file: SourceFile) -> list[int]:
    """`from __future__ import annotations` disables the run-time type checks of the tests."""
    return [line for name, line in file.imports() if name == "__future__"]


#: Names of decision rules that are also names of quantities.
QUANTITIES = {"coverage", "cost", "risk"}


def decision_rules_by_name(file: SourceFile) -> list[int]:
    """Strings outside `thresholds/` that name a decision rule; docstrings are no such strings."""
    if file.top == "thresholds":
        return []
    docstrings = {n.value for n in file.walk() if isinstance(n, ast.Expr)}
    return [
        n.lineno
        for n in file.walk()
        if isinstance(n, ast.Constant)
        and n not in docstrings
        and n.value in DECISION_RULES.keys() - QUANTITIES
    ]


RULES = [
    bare_excepts,
    pickles,
    global_randomness,
    asserts,
    prints,
    array_api_imports,
    numerics_that_do_more,
    late_annotations,
    decision_rules_by_name,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule(rule):
    assert not [file.at(line) for file in FILES for line in rule(file)]


def test_no_module_is_a_drawer():
    drawers = {"utils", "util", "helpers", "common", "misc"}
    assert not [file.name for file in FILES if drawers & set(file.path.with_suffix("").parts[-3:])]


def test_no_name_is_exported_twice():
    # ruff checks that the names exist (F822).
    for file in FILES:
        for node in file.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
                assert len(names) == len(set(names)), file.name


def test_names_of_public_classes_and_catalogues_are_unique():
    names = Counter(
        node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.target)
        for file in FILES
        for node in file.tree.body
        if (isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
        or (isinstance(node, ast.AnnAssign) and "Catalogue[" in ast.unparse(node.annotation))
    )
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (bare_excepts, "try:\n    f()\nexcept:\n    g()"),
        (pickles, "np.load(f, allow_pickle=True)"),
        (pickles, "import pickle"),
        (global_randomness, "x = np.random.rand(3)"),
        (asserts, "assert x"),
        (prints, "print(1)"),
        (array_api_imports, "def f():\n    import array_api_compat.numpy as xp"),
        (numerics_that_do_more, "from matplotlib import pyplot as plt"),
        (late_annotations, "from __future__ import annotations"),
        (decision_rules_by_name, f"name = {min(DECISION_RULES.keys() - QUANTITIES)!r}"),
    ],
)
def test_the_rules_see_what_they_forbid(rule, code, tmp_path):
    (tmp_path / "metrics").mkdir()
    path = tmp_path / "metrics" / "bad.py"
    path.write_text(code, encoding="utf-8")
    assert rule(SourceFile(path, tmp_path))
