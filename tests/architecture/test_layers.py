"""The import table of DESIGN section 4 holds, and what is a package's own stays there."""

import os
import subprocess
import sys
import tomllib

import pytest
from tests.architecture.modules import ImportGraph
from tests.architecture.remaining import FAMILIES, FOREIGN_PRIVATES, IN_CIRCLES
from tests.architecture.source import FILES, ROOT, SRC, SourceFile

GRAPH = ImportGraph.of(FILES)


def contract() -> dict:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return config["tool"]["importlinter"]["contracts"][0]


def layers() -> list[str]:
    return [name.strip() for row in contract()["layers"] for name in row.split("|")]


def exists(layer: str) -> bool:
    return (SRC / f"{layer}.py").exists() or (SRC / layer / "__init__.py").exists()


def test_every_layer_that_is_not_optional_exists():
    assert not [name for name in layers() if not name.startswith("(") and not exists(name)]


def test_imports_point_down():
    pytest.importorskip("importlinter")
    code = "from importlinter.cli import lint_imports_command as main; main()"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_layer_that_exists_is_not_optional():
    optional = [name.strip("()") for name in layers() if name.startswith("(")]
    assert not [name for name in optional if exists(name)], "take the parentheses off"


def check(found: set[str], remaining: frozenset[str]):
    """What is found is what the ledger still allows: it only shrinks."""
    assert not found - remaining
    assert not remaining - found, "cured: take these lines out of tests/architecture/remaining.py"


def test_what_is_private_to_a_package_is_imported_inside_it():
    check(GRAPH.foreign_privates(), FOREIGN_PRIVATES)


def test_three_siblings_that_share_the_first_word_are_a_folder():
    check(GRAPH.families(), FAMILIES)


def test_no_way_of_imports_leads_back():
    check(GRAPH.in_circles(), IN_CIRCLES)


def graph_of(tmp_path, files: dict[str, str]) -> ImportGraph:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return ImportGraph.of([SourceFile(path) for path in sorted(tmp_path.rglob("*.py"))])


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.architecture.source.SRC", tmp_path)
    return lambda files: graph_of(tmp_path, files)


def test_a_private_module_is_seen_from_outside(small):
    imports = "from abstain._foundation import ranks\nfrom abstain.a._own import x\n"
    found = small(
        {
            "_foundation/ranks.py": "",
            "a/_own.py": "",
            "a/inside.py": imports,
            "a/below/deep.py": imports,
            "b/outside.py": "def f():\n    from abstain.a import _own\n",
        }
    )
    assert found.foreign_privates() == {"abstain.b -> abstain.a._own"}


def test_a_family_is_seen(small):
    found = small(dict.fromkeys(("a/_b.py", "a/b_c.py", "a/b_d/e.py", "a/f_g.py", "a/f.py"), ""))
    assert found.families() == {"a/b_*"}


def test_a_circle_is_seen(small):
    found = small(
        {
            "a/one.py": "def f():\n    from abstain.a import two\n",
            "a/two.py": "from abstain.a.three import x\n",
            "a/three.py": "import abstain.a.one\n",
            "a/four.py": "from abstain.a.one import f\n",
            "a/five.py": "if TYPE_CHECKING:\n    import abstain.a.six\n",
            "a/six.py": "from abstain.a import five\n",
        }
    )
    assert found.in_circles() == {"abstain.a.one", "abstain.a.two", "abstain.a.three"}
