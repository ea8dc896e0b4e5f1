"""The examples of the pages are current, and the pages mention every public name and option."""

import doctest
import re
import shlex
import textwrap
from importlib.util import find_spec

import pytest
from tests.docs.blocks import DOCS, PAGES, ROOT, blocks, output_lines, run_command

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
    # The examples of a page run in one session, so later examples can use earlier imports.
    code = "\n".join(b.code for b in blocks(path.read_text("utf-8")) if b.language == "pycon")
    test = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_output_of_inspect(tmp_path, monkeypatch):
    page_blocks = blocks((DOCS / "files.md").read_text("utf-8"))
    (csv,) = [block.code for block in page_blocks if block.language == "csv"]
    (tmp_path / "outputs.csv").write_text(csv, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    (example,) = [b for b in page_blocks if b.code == "abstain inspect outputs.csv\n"]
    expected = output_lines(example.output)
    assert output_lines(run_command(["inspect", "outputs.csv"])) == expected
    # The last line of the output is a command that works.
    assert run_command([*shlex.split(expected[-1])[1:]])


def test_every_public_name_is_in_the_api_page():
    text = page("api.md")
    names = set(re.findall(r"^   ([A-Za-z_0-9]+)$", text, re.MULTILINE))
    names |= set(re.findall(r"`([a-z]+)`", text))
    assert set(ab.__all__) - names == set()
    not_in_abstain = {name for name in names if not hasattr(ab, name)}
    assert {name for name in not_in_abstain if not find_spec(f"abstain_bench.{name}")} == set()


@pytest.mark.parametrize(
    ("name", "catalogue"),
    [("metrics.md", METRICS), ("scores.md", SCORES), ("conventions.md", LOSSES)],
)
def test_every_entry_of_a_catalogue_is_mentioned(name, catalogue):
    text = page(name)
    assert [entry for entry in catalogue if f"`{entry}`" not in text] == []


def test_every_metric_has_a_paragraph():
    headings = "\n".join(re.findall(r"^### .*$", page("metrics.md"), re.MULTILINE))
    assert [m for m in METRICS if f"`{m.partition('@')[0]}" not in headings] == []


def leaf_commands(parent, prefix=""):
    """Yield the commands without subcommands, by their names after the name of the program."""
    for name in (name for name in parent if not name.startswith("-")):
        subcommands = list(leaf_commands(parent[name], f"{prefix}{name} "))
        yield from subcommands or [(f"{prefix}{name}", parent[name])]


def test_every_command_has_a_page_and_every_option_a_heading():
    commands = dict(leaf_commands(complete_application()))
    assert {"evaluate", "study weights"} <= set(commands)
    for command, app in commands.items():
        text = page(f"cli/{command.replace(' ', '-')}.md")
        assert text.startswith(f"# `abstain {command}`\n")
        for argument in app.assemble_argument_collection():
            name = argument.names[0]
            assert name == "*" or re.search(rf"^### `{re.escape(name)}`", text, re.MULTILINE), name


def test_every_study_has_a_page():
    pages = {path.stem for path in PAGES if path.parent.name == "studies"}
    assert pages == set(STUDIES)


def test_every_column_of_results_is_documented():
    documented = set(re.findall(r"`([a-z_]+)`", page("files.md")))
    assert set(RESULT_COLUMNS) <= documented


def test_every_default_column_name_is_documented():
    table = page("files.md")
    assert [n for names in DEFAULT_NAMES.values() for n in names if f"`{n}`" not in table] == []
    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in table] == []


def test_every_figure_is_in_the_gallery():
    displays = {name for name in dir(plots) if name.endswith("Display")}
    assert displays == set(re.findall(r"plots\.(\w+Display)\b", page("gallery.md")))


def test_the_gallery_has_an_example_of_a_rank_change_in_each_study():
    import matplotlib.pyplot as plt

    names = {}
    figure = r"gallery-(\d+)\n(?:   :nofigs:\n)?\n((?:(?:   .*)?\n)+?)```"
    for number, code in re.findall(figure, page("gallery.md")):
        if number in {"01", "11", "16", "17", "18"}:
            exec(textwrap.dedent(code), names)
    plt.close("all")
    assert {change.study for change in names["changes"] if change.change} == set(names["studies"])


def test_the_image_of_the_readme_is_small():
    image = ROOT / "docs" / "_static" / "demo.png"
    assert image.read_bytes()[:4] == b"\x89PNG"
    assert image.stat().st_size < 150_000
