"""The import table of DESIGN section 4 holds, and what is a package's own stays there."""

import os
import subprocess
import sys

import pytest
from tests.architecture.modules import ImportGraph
from tests.architecture.remaining import FAMILIES, FOREIGN_PRIVATES, IN_CIRCLES
from tests.architecture.source import BENCH, FILES, ROOT, SRC, SourceFile

GRAPH = ImportGraph.of(FILES)


@pytest.mark.parametrize("folder", [ROOT, ROOT / "bench"])
def test_imports_point_down(folder):
    pytest.importorskip("importlinter")
    code = "from importlinter.cli import lint_imports_command as main; main()"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (SRC.parent, BENCH.parent)))}
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


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


def graph_of(folder, files: dict[str, str]) -> ImportGraph:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return ImportGraph.of([SourceFile(path, folder) for path in sorted(folder.rglob("*.py"))])


@pytest.fixture
def small(tmp_path):
    return lambda files: graph_of(tmp_path / "abstain", files)


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
    assert found.families() == {"abstain/a/b_*"}


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
