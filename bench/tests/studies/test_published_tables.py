"""The published tables against each other: counts that were found by hand once, and broken tables."""

from collections import Counter
from types import MappingProxyType

import numpy as np
import pytest

import abstain as ab
from abstain_bench.published import table, tables
from abstain_bench.studies import study_published
from abstain_bench.studies._area_estimators import augrc_from_factors
from abstain_bench.studies.published import contradictions, recomputed


@pytest.fixture(scope="module")
def found():
    return study_published()


def changed(monkeypatch, module, name, change):
    """Let a module read one table with cells that `change` alters."""
    cells = tuple(MappingProxyType({**cell, **change(cell)}) for cell in table(name))
    monkeypatch.setattr(module, "table", lambda asked: cells if asked == name else table(asked))


# ---------------------------------------------------------------------------------- the ranks
def test_the_ranks_of_every_two_tables(found):
    rows = {(r["table"], r["against"], r["part"]): r for r in found.rows("ranks")}
    counts = {
        key: tuple(row[k] for k in ("ranks", "equal", "possible", "pairs", "reversed"))
        for key, row in rows.items()
        if row["ranks"] is not None
    }
    assert counts == {
        ("fd_shifts_table_1", "fd_shifts_table_11", ""): (483, 482, 483, 2254, 0),
        ("fd_shifts_table_9", "fd_shifts_table_13", "proposed"): (231, 196, 231, 1082, 0),
        ("augrc_table_3", "augrc_table_4", "each by its own metric"): (252, 252, 252, 1287, 0),
        ("augrc_table_3", "augrc_table_4", "both by AUGRC"): (252, 252, 252, 1287, 0),
    }
    assert recomputed.invalid_rank_columns() == []


def test_ranks_as_they_are_printed_count_a_method_without_numbers(found):
    counts = {
        (row["against"], row["part"]): (row["equal_as_printed"], row["printed"])
        for row in found.rows("ranks")
        if row["ranks"] is not None
    }
    assert counts == {
        ("fd_shifts_table_11", ""): (482, 483),
        ("fd_shifts_table_13", "proposed"): (196, 231),
        ("augrc_table_4", "each by its own metric"): (208, 273),
        ("augrc_table_4", "both by AUGRC"): (208, 273),
    }
    (text,) = (text for text in found.verdict if text.startswith("As printed"))
    assert "208 of 273" in text
    assert "252 of 252" in text
    assert "the ranks include MCD-EE instead of MCD-MI, and no number of MCD-EE is printed" in text
    # By hand: the ranks of a column of the table of numbers, against those of the other table.
    numbers = recomputed.table_columns("augrc_table_3")
    _, ranks = recomputed.ranks_by_selection()["both by AUGRC"]
    equal = {"shared": 0, "renamed": 0}
    for column, own in numbers.items():
        for method, value in own.items():
            rank = 1 + sum(other < value for other in own.values())
            printed = ranks[column].get(method, ranks[column]["MCD-EE"])
            equal["shared" if method in ranks[column] else "renamed"] += rank == printed
    # If MCD-EE were another name of MCD-MI, all 21 of its ranks would be equal.
    assert equal == {"shared": 201, "renamed": 7}


def test_ranks_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    numbers = dict(enumerate(np.random.default_rng(0).integers(6, size=15).tolist()))
    for own, method in ((recomputed.min_ranks, "min"), (recomputed.max_ranks, "max")):
        expected = stats.rankdata(list(numbers.values()), method=method)
        assert [*own(numbers).values()] == expected.tolist()


def test_taus_are_those_of_scipy(found):
    stats = pytest.importorskip("scipy.stats")
    first, second = recomputed.ranks_by_selection()["each by its own metric"]
    for row in found.rows("changes"):
        at = recomputed.PrintedColumn("CNN", row["dataset"], row["study"])
        names = list(first[at])
        expected = stats.kendalltau([first[at][n] for n in names], [second[at][n] for n in names])
        assert row["tau"] == pytest.approx(expected.statistic)


def test_the_two_metrics_rank_alike_but_not_everywhere(found):
    rows = found.rows("changes")
    assert len(rows) == 21
    taus = {(r["dataset"], r["study"]): (r["tau"], r["tau_of_one_choice"]) for r in rows}
    assert taus["BREEDS", "iid"] == pytest.approx((0.536, 0.658), abs=5e-4)
    assert taus["CIFAR-10", "cor"] == pytest.approx((1.0, 1.0))
    assert min(tau for tau, _ in taus.values()) == taus["BREEDS", "iid"][0]
    # Ranks by AUGRC are the same in both parts: only the choice for AURC differs.
    (_, one), (_, other) = recomputed.ranks_by_selection().values()
    assert one == other


def test_a_rank_that_contradicts_its_number_is_counted(monkeypatch):
    first = table("fd_shifts_table_11")[0]
    assert (first["printed"], first["rank"]) == ("MSR", "6")
    changed(
        monkeypatch, recomputed, "fd_shifts_table_11",
        lambda cell: {"number": 12.5} if cell is first else {},
    )  # fmt: skip
    sums = Counter()
    for row in recomputed.recompute_ranks():
        if row["against"] == "fd_shifts_table_11":
            sums.update(reversed=row["reversed"], impossible=row["ranks"] - row["possible"])
    assert sums["reversed"] == 6
    assert sums["impossible"] == 7
    assert recomputed.invalid_rank_columns() == [
        ("fd_shifts_table_11", "", ("CNN", "iWildCam", "iid"))
    ]


# ------------------------------------------------------------------------------ the relations
def test_the_area_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    loss = rng.random(2_000) < 0.3
    confidence = rng.normal(size=2_000) - loss
    auroc = ab.failure_auroc(confidence, loss)
    assert augrc_from_factors(1 - loss.mean(), auroc) == pytest.approx(ab.augrc(confidence, loss))


def test_areas_follow_from_accuracy_and_auroc(found):
    rows = list(recomputed.recompute_areas())
    off = np.array([row["relative_difference"] for row in rows])
    assert len(rows) == 210
    assert abs(np.median(off)) < 0.002
    assert (np.abs(off) <= 0.03).sum() == 178
    assert (np.abs(off) <= 0.10).sum() == 209
    # A mean over severities is no area of one accuracy and one AUROC: the formula is too low.
    cor = [row for row in found.rows("relations") if row["study"] == "cor"]
    assert cor[0]["median_relative_difference"] == pytest.approx(-0.0476, abs=1e-3)


def test_accuracies_beside_new_classes_follow_from_those_without():
    rows = list(recomputed.recompute_accuracies())
    assert len(rows) == 189
    assert max(abs(row["difference"]) for row in rows) < 0.00065


def test_what_is_printed_twice_is_the_same_but_for_the_other_runs():
    rows = list(recomputed.compare_repeated_numbers())
    apart = Counter((r["classifier"], r["dataset"]) for r in rows if not r["same"])
    assert len(rows) == 38
    assert apart == {
        ("CNN", "iWildCam"): 3, ("CNN", "BREEDS"): 3, ("CNN", "CIFAR-100"): 3,
        ("ViT", "iWildCam"): 3, ("ViT", "CAMELYON"): 3, ("ViT", "SVHN"): 3,
    }  # fmt: skip
    # The doubts that are packaged are of the same cells.
    doubted = {(r["classifier"], r["dataset"]) for r in table("fd_shifts_table_2") if r["doubt"]}
    assert doubted == set(apart)


# -------------------------------------------------------------------------- what does not fit
def test_what_cannot_be_right(found):
    rows = found.rows("contradictions")
    papers = Counter(row["source"].partition(" ")[0] for row in rows)
    assert papers == {"Jaeger": 9, "Traub": 2, "Zhou": 4, "Shahnazari": 5}
    said = {f"{row['location']}: {row['finding']}" for row in rows}
    for part in (
        "table 12: the text has no such table",
        "CIFAR-10, DG-MCD-MSR: the reward 20 is not in the search grid",
        "CIFAR-100 iid (CNN), ConfidNet: 0.05 here, 0.11 in appendix D",
        "columns c10, c100, ti have the ranks of ti, c10, c100 in Jaeger et al. (2023), table 11: 0 ",
        "has MCD-EE where Traub et al. (2024), table 3 has MCD-MI",
        "WideResNet28x10: SELE and alpha-hat' Est. have the same mean and standard deviation: 5.607 ± 0.707",
        "calibrated, CWSA+: the prose has above 0.71, the nearest cell of",
        "thresholds 0.60, 0.70, 0.80, 0.90, 0.95: CWSA is above coverage x CWSA+",
        "thresholds 0.90, 0.95: no count of correct answers",
    ):
        assert any(part in text for text in said), part
    assert sum(row["cells"] for row in rows if "no number of" in row["finding"]) == 4


def test_every_contradiction_is_a_packaged_doubt(found):
    """What a reader of the tables is told and what the study finds are the same cells."""
    lines = {
        threshold
        for threshold, line in contradictions.lines_by_threshold("cwsa_table_1").items()
        if contradictions.is_above_bound(line)
    }
    (doubt,) = [d for d in tables()["cwsa_table_1"].doubts if "no data allow" in d.text]
    assert lines == set(doubt.where["threshold"])
    prose = [row for row in table("cwsa_text") if row["doubt"]]
    assert len(prose) == len(list(contradictions._unsupported_prose())) == 3


def test_swapped_columns_are_found_and_those_in_order_are_not(monkeypatch):
    cells = table("augrc_table_4")
    names = {"ns-ncs:c10": "ns-ncs:ti", "ns-ncs:c100": "ns-ncs:c10", "ns-ncs:ti": "ns-ncs:c100"}

    def renamed(cell):
        own = cell["dataset"] == "SVHN"
        return {"study": names.get(cell["study"], cell["study"])} if own else {}

    assert len(cells) == 1092
    assert len(list(contradictions._swapped_columns())) == 1
    changed(monkeypatch, recomputed, "augrc_table_4", renamed)
    assert list(contradictions._swapped_columns()) == []


# ------------------------------------------------------------------------------- the result
def test_every_number_is_a_row(found):
    frame = found.frame()
    assert frame.columns[:3] == ["check", "table", "against"]
    assert set(frame["check"]) == {
        "ranks", "ranks of two papers", "two metrics", "area from others", "accuracy from others",
        "printed twice",
    }  # fmt: skip
    assert frame["value"].null_count() == 0
    assert frame.filter(check="area from others", quantity="computed").height == 210


def test_the_verdict_says_what_was_found(found):
    said = " ".join(found.verdict)
    assert "0 of 5910 pairs of methods without ties have the opposite order" in said
    assert "482 of 483 in Jaeger et al. (2023), table 11" in said
    assert "is 0.86 over 21 studies, and the smallest 0.54 (BREEDS iid)" in said
    assert "of 210 cells, 85% differ by at most 3% and 99.5% by at most 10%" in said
    assert "20 findings are contradictions or numbers of other runs" in said
    assert study_published().tables == found.tables


def test_its_list_of_tables_is_that_of_the_package(found):
    assert [row["table"] for row in found.rows("tables")] == list(tables())
    assert sum(row["cells"] for row in found.rows("tables")) == 5019
