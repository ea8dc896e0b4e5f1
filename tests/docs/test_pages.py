"""What the pages must name, and that their examples are true."""

import doctest
import re
import shlex
import textwrap
from importlib.util import find_spec

import pytest
from tests.docs.blocks import DOCS, PAGES, ROOT, blocks, printed, run_command

import abstain as ab
from abstain import plots
from abstain.cli.app import complete_application
from abstain.confidence import SCORES
from abstain.evaluation.records import RESULT_COLUMNS
from abstain.metrics import METRICS
from abstain.predictions import LOSSES
from abstain.tables._column_selection import DEFAULT_NAMES
from abstain.tables.files import SUFFIXES
from abstain_bench.studies import STUDIES


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


#: Packages of extras that the examples of a page import.
NEEDS = {
    "finetune.md": ("torch",),
    "pytorch.md": ("torch", "torchmetrics"),
    "training.md": ("torch",),
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples(path):
    for package in NEEDS.get(path.name, ()):
        pytest.importorskip(package)
    # All examples of a page are one session, so that it need not repeat its imports.
    code = "\n".join(b.code for b in blocks(path.read_text("utf-8")) if b.language == "pycon")
    test = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_a_file_is_inspected_as_its_page_shows(tmp_path, monkeypatch):
    result = blocks((DOCS / "files.md").read_text("utf-8"))
    (csv,) = [block.code for block in result if block.language == "csv"]
    (tmp_path / "outputs.csv").write_text(csv, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    (shown,) = [b for b in result if b.code == "abstain inspect outputs.csv\n"]
    assert printed(run_command(["inspect", "outputs.csv"])) == printed(shown.output)
    # And the command that it prints works.
    assert run_command([*shlex.split(printed(shown.output)[-1])[1:]])


def test_every_public_name_is_in_the_interface_page():
    text = page("api.md")
    named = set(re.findall(r"^   ([A-Za-z_0-9]+)$", text, re.MULTILINE))
    named |= set(re.findall(r"`([a-z]+)`", text))
    assert set(ab.__all__) - named == set()
    absent = {name for name in named if not hasattr(ab, name)}
    assert {name for name in absent if not find_spec(f"abstain_bench.{name}")} == set()


@pytest.mark.parametrize(
    ("name", "catalogue"),
    [("metrics.md", METRICS), ("scores.md", SCORES), ("conventions.md", LOSSES)],
)
def test_every_entry_of_a_catalogue_is_named(name, catalogue):
    text = page(name)
    assert [entry for entry in catalogue if f"`{entry}`" not in text] == []


def test_every_metric_has_a_paragraph():
    headings = "\n".join(re.findall(r"^### .*$", page("metrics.md"), re.MULTILINE))
    assert [m for m in METRICS if f"`{m.partition('@')[0]}" not in headings] == []


def leaves(parent, above=""):
    """The commands that do something, by their names behind the name of the program."""
    for name in (name for name in parent if not name.startswith("-")):
        below = list(leaves(parent[name], f"{above}{name} "))
        yield from below or [(f"{above}{name}", parent[name])]


def test_every_command_and_option_has_an_address():
    commands = dict(leaves(complete_application()))
    assert {"evaluate", "study weights"} <= set(commands)
    for command, leaf in commands.items():
        text = page(f"cli/{command.replace(' ', '-')}.md")
        assert text.startswith(f"# `abstain {command}`\n")
        for argument in leaf.assemble_argument_collection():
            name = argument.names[0]
            assert name == "*" or re.search(rf"^### `{re.escape(name)}`", text, re.MULTILINE), name


def test_every_study_has_a_page():
    pages = {path.stem for path in PAGES if path.parent.name == "studies"}
    assert pages == set(STUDIES)


def test_the_columns_of_results_are_explained():
    explained = set(re.findall(r"`([a-z_]+)`", page("files.md")))
    assert set(RESULT_COLUMNS) <= explained


def test_the_usual_names_of_columns_equal_those_of_the_reader():
    table = page("files.md")
    assert [n for names in DEFAULT_NAMES.values() for n in names if f"`{n}`" not in table] == []
    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in table] == []


def test_every_figure_is_in_the_gallery():
    drawn = {name for name in dir(plots) if name.endswith("Display")}
    assert drawn == set(re.findall(r"plots\.(\w+Display)\b", page("gallery.md")))


def test_the_changes_of_ranks_in_the_gallery_are_changes():
    import matplotlib.pyplot as plt

    names = {}
    figure = r"gallery-(\d+)\n(?:   :nofigs:\n)?\n((?:(?:   .*)?\n)+?)```"
    for number, code in re.findall(figure, page("gallery.md")):
        if number in {"01", "11", "16", "17", "18"}:
            exec(textwrap.dedent(code), names)
    plt.close("all")
    assert {change.study for change in names["changes"] if change.change} == set(names["studies"])


def test_the_picture_is_light():
    picture = ROOT / "docs" / "_static" / "demo.png"
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size < 150_000
