"""The published tables: complete, as printed, under our names, and known to be doubtful where they are."""

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from abstain.errors import UnknownNameError
from abstain.metrics import METRICS
from abstain.metrics.catalogue import FAMILIES
from abstain_bench import published
from abstain_bench.networks import MODELS
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.tasks import TASKS

TABLES = published.tables()

#: For each table the compared columns and a digest of their cells in `../shared/data/published`.
DIGESTS = Path(__file__).with_name("digests.json")

#: Rows of each table, as counted when they were taken from the papers.
ROWS = {
    "augrc_table_1": 24, "augrc_table_2": 54, "augrc_table_3": 273, "augrc_table_4": 1092,
    "fd_shifts_table_1": 483, "fd_shifts_table_2": 120, "fd_shifts_table_3": 28,
    "fd_shifts_table_4": 36, "fd_shifts_table_5": 42, "fd_shifts_table_6": 42,
    "fd_shifts_table_7": 140, "fd_shifts_table_8": 483, "fd_shifts_table_9": 483,
    "fd_shifts_table_10": 483, "fd_shifts_table_11": 483, "fd_shifts_table_13": 462,
    "fd_shifts_table_14": 12, "fd_shifts_table_15": 5, "fd_shifts_table_16": 12,
    "population_aurc_table_1": 44, "population_aurc_table_S2": 6, "cwsa_table_1": 28,
    "cwsa_table_2": 28, "cwsa_table_3": 28, "cwsa_text": 27, "settings": 101,
}  # fmt: skip

#: What the papers report that is no metric here, but a number of a table all the same.
NO_METRIC = {"round_to_one_rate", "selective_accuracy", "coverage"}


def cells():
    """All of the tables; what stands in prose names methods and tasks in the words of the papers."""
    return [row for name in TABLES if name != "settings" for row in published.table(name)]


def test_every_table_is_there_whole():
    assert {name: len(published.table(name)) for name in TABLES} == ROWS


def compared_columns(columns):
    """Columns of the shared file that the package must repeat: the package has newer method names."""
    return [column for column in columns if column not in {"note", "method"}]


def digest(rows, columns):
    """Compute a digest of the cells of a table that does not depend on the order of the rows."""
    cells = sorted(json.dumps([row[column] for column in columns]) for row in rows)
    return hashlib.sha256("\n".join(cells).encode()).hexdigest()


@pytest.mark.parametrize("name", ROWS)
def test_the_cells_have_not_changed_since_they_were_compared_with_the_shared_file(name):
    stored = json.loads(DIGESTS.read_text(encoding="utf-8"))[name]
    assert digest(published.table(name), stored["columns"]) == stored["sha256"]


@pytest.mark.parametrize("name", ROWS)
def test_every_cell_equals_that_of_the_shared_file(name, shared):
    with (shared / "data/published" / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        expected = list(csv.DictReader(stream))
    columns = compared_columns(expected[0])
    stored = json.loads(DIGESTS.read_text(encoding="utf-8"))[name]
    assert stored == {"columns": columns, "sha256": digest(expected, columns)}
    result = published.table(name)

    def counted(rows):
        return Counter(tuple(row[column] for column in columns) for row in rows)

    assert counted(result) == counted(expected)
    # What the note of a cell says is in its note or, where it is a doubt, in that.
    noted = {tuple(r[c] for c in columns): r.get("note", "") for r in expected}
    for row in result:
        text = noted[tuple(row[c] for c in columns)]
        assert text in row["note"] or ("see README" in text and row["doubt"])


def test_a_number_is_the_printed_value_on_its_plain_scale():
    first = published.table("fd_shifts_table_1")[0]
    assert (first["value"], first["scale"], first["factor"]) == ("62.3", "x1000", "1000")
    assert first["number"] == pytest.approx(0.0623)
    share = published.table("fd_shifts_table_8")[0]
    assert (share["value"], share["number"]) == ("76.2", pytest.approx(0.762))
    rank = published.table("augrc_table_4")[0]
    assert (rank["rank"], rank["number"], rank["scale"]) == ("5", 5.0, "rank")
    words = [row for row in published.table("settings") if row["setting"] == "optimizer"]
    assert words
    assert all(row["number"] is None for row in words)


def test_every_cell_has_its_source():
    for name, one in TABLES.items():
        assert one.name == name
        assert one.title
        assert one.scale
        assert one.source
        for row in published.table(name):
            assert row["paper"] == one.paper or not one.paper
            assert row.get("table", "") == one.number
    assert TABLES["augrc_table_3"].source == "Traub et al. (2024), table 3"
    assert TABLES["augrc_table_3"].url.endswith("2407.01032")
    assert TABLES["settings"].url == ""


def test_nothing_of_a_table_can_be_changed():
    row = published.table("fd_shifts_table_1")[0]
    with pytest.raises(TypeError):
        row["value"] = "0"
    assert published.table("fd_shifts_table_1") is published.table("fd_shifts_table_1")


def test_an_unknown_table_raises_an_error_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"'augrc_table_5'.*augrc_table_"):
        published.table("augrc_table_5")


# -------------------------------------------------------------------------------- our names
def test_every_method_is_ours():
    pytest.importorskip("torch")
    from abstain.confidence import SCORES
    from abstain.training import OBJECTIVES

    named = {row["method"] for row in cells() if row.get("method")}
    assert {
        m for m in named if m not in METHODS and m not in OBJECTIVES and m not in SCORES
    } == set()
    assert len(named & {*METHODS}) >= 14


def test_every_metric_is_ours_or_known_to_be_none():
    named = {row["metric"] for row in cells() if row.get("metric")}
    # Where a metric depends on a threshold, that has a column of its own.
    words = {m: (m, f"{m}@0.5") for m in named}
    ours = {
        m for m in named if any(w in METRICS or any(f.parse(w) for f in FAMILIES) for w in words[m])
    }
    assert named - ours == NO_METRIC - ours
    assert {"aurc", "augrc", "failure_auroc", "ece", "accuracy", "cwsa", "cwsa_plus"} <= ours


def test_every_task_is_ours():
    named = {row["task"] for row in cells() if row.get("task")}
    every = {name.replace("-open-1..5", f"-open-{k}") for name in named for k in range(1, 6)}
    assert {task for task in every if task not in TASKS} == set()


def test_every_network_is_ours():
    pytest.importorskip("torch")
    assert {row["backbone"] for row in cells() if row.get("backbone")} <= {*MODELS}


# -------------------------------------------------------------------------------- doubts
def test_every_doubt_concerns_cells_or_its_table():
    for name, one in TABLES.items():
        for doubt in one.doubts:
            results = [row for row in published.table(name) if doubt.concerns(row)]
            assert bool(results) is bool(doubt.where), (name, doubt.text)
            assert all(doubt.text in row["doubt"] for row in results)


def test_the_cells_in_doubt_are_those_that_are_known():
    doubted = {name: sum(bool(row["doubt"]) for row in published.table(name)) for name in TABLES}
    # 13 methods, three studies of SVHN, and the method that the two tables do not share.
    assert doubted["augrc_table_3"] == 13 * 3 + 21 - 3
    assert doubted["cwsa_table_1"] == doubted["cwsa_table_2"] == 5 * 4
    assert doubted["cwsa_text"] == 3
    assert doubted["augrc_table_2"] == 0
    assert "Four cells are blank" in " ".join(
        d.text for d in TABLES["population_aurc_table_1"].doubts
    )


def test_the_files_are_small():
    folder = Path(published.__file__).parent / "facts"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 100_000
    assert {path.suffix for path in folder.iterdir()} == {".csv"}
