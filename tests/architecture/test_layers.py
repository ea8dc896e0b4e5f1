"""Import rules that import-linter has not; `lint-imports` checks the layers themselves."""

import pytest
from tests.architecture.modules import ImportGraph
from tests.architecture.source import FILES, SourceFile

GRAPH = ImportGraph.of(FILES)


def test_private_modules_are_imported_only_in_their_package():
    assert not GRAPH.foreign_privates()


def test_three_siblings_with_the_same_first_word_are_a_folder():
    assert not GRAPH.families()


def test_imports_have_no_cycles():
    assert not GRAPH.in_circles()


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
    imports = "from abstain._foundation import tie_groups\nfrom abstain.a._own import x\n"
    result = small(
        {
            "_foundation/tie_groups.py": "",
            "a/_own.py": "",
            "a/inside.py": imports,
            "a/below/deep.py": imports,
            "b/outside.py": "def f():\n    from abstain.a import _own\n",
        }
    )
    assert result.foreign_privates() == {"abstain.b -> abstain.a._own"}


def test_a_family_is_seen(small):
    result = small(dict.fromkeys(("a/_b.py", "a/b_c.py", "a/b_d/e.py", "a/f_g.py", "a/f.py"), ""))
    assert result.families() == {"abstain/a/b_*"}


def test_a_circle_is_seen(small):
    result = small(
        {
            "a/one.py": "def f():\n    from abstain.a import two\n",
            "a/two.py": "from abstain.a.three import x\n",
            "a/three.py": "import abstain.a.one\n",
            "a/four.py": "from abstain.a.one import f\n",
            "a/five.py": "if TYPE_CHECKING:\n    import abstain.a.six\n",
            "a/six.py": "from abstain.a import five\n",
        }
    )
    assert result.in_circles() == {"abstain.a.one", "abstain.a.two", "abstain.a.three"}
