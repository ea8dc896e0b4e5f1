"""What other programs print, and the conversions of docs/conventions.md to it."""

import re
from itertools import pairwise

import numpy as np
import pytest
from tests.architecture.source import ROOT

import abstain as ab

PAGE = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")

#: The ten samples of the page, most confident first.
TEN = np.arange(10, 0, -1) / 10
TEN_WRONG = np.array([1, 0, 0, 0, 1, 0, 0, 1, 0, 1])


def draw(seed, *, tied):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    c = rng.integers(0, 6, n) / 5 if tied else rng.permutation(n) / n
    graded = seed % 2
    return c, rng.random(n) if graded else (rng.random(n) < 0.4).astype(float)


def mean_of_risks(c, loss, *, extra):
    """Mean risk while one sample after the other leaves, divided by `extra` more below n."""
    left = list(loss[np.argsort(c, kind="stable")])
    risks = [sum(left) / len(left)]
    while len(left) > 1:
        left.pop(0)
        risks.append(sum(left) / (len(left) + extra))
    return sum(risks) / len(risks)


def old_area(c, loss):
    """Trapezoids over vertices after the first sample of each tie group, down to 1/n."""
    order = np.argsort(c, kind="stable")
    n, before = len(c), None
    vertices = [(1.0, loss.mean())]
    for gone, i in enumerate(order[:-1], start=1):
        if c[i] != before:
            vertices.append(((n - gone) / n, loss[order[gone:]].mean()))
        before = c[i]
    vertices.append((1 / n, vertices[-1][1]))
    return sum((x - y) * (r + s) / 2 for (x, r), (y, s) in pairwise(vertices))


def test_the_program_of_geifman_prints_this_for_the_ten_samples():
    printed = ab.published_aurc(TEN, TEN_WRONG, convention="geifman")
    assert printed == pytest.approx(0.31857142857142856, abs=1e-15)
    definition = ab.published_aurc(TEN, TEN_WRONG, convention="plugin")
    assert definition == pytest.approx(ab.aurc(TEN, TEN_WRONG, estimator="plugin"), abs=1e-15)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_old_programs_step_by_step(seed, tied):
    c, loss = draw(seed, tied=tied)
    got = {
        name: ab.published_aurc(c, loss, convention=name)
        for name in ("geifman", "fd-shifts-legacy", "plugin", "cwsa")
    }
    assert got["geifman"] == pytest.approx(mean_of_risks(c, loss, extra=1), abs=1e-12)
    assert got["fd-shifts-legacy"] == pytest.approx(1000 * old_area(c, loss), abs=1e-9)
    if not tied:
        # The conversions of the page.
        area, plugin = ab.aurc(c, loss), ab.aurc(c, loss, estimator="plugin")
        n, first = len(c), loss[np.argmax(c)]
        by_place = np.mean(loss[np.argsort(-c)] / np.arange(1, n + 1))
        assert got["plugin"] == pytest.approx(mean_of_risks(c, loss, extra=0), abs=1e-12)
        assert got["plugin"] == pytest.approx(plugin, abs=1e-12)
        assert got["geifman"] == pytest.approx(plugin - by_place + loss.mean() / n, abs=1e-12)
        assert got["fd-shifts-legacy"] == pytest.approx(1000 * (area - first / n), abs=1e-9)
        assert got["fd-shifts-legacy"] == pytest.approx(1000 * got["cwsa"], abs=1e-9)


def test_fd_shifts_reads_the_fpr_where_the_tpr_rounds_to_95_percent():
    metrics = pytest.importorskip("sklearn.metrics")
    from abstain.metrics import fpr_at_tpr

    # Of 2,000 successes a first threshold accepts 1,899, which is 0.9495 and not 0.95.
    c = np.repeat([0.9, 0.8, 0.7, 0.6], [1899, 10, 101, 90])
    loss = np.repeat([0, 1, 0, 1], [1899, 10, 101, 90])
    fpr, tpr, _ = metrics.roc_curve(1 - loss, c)
    printed = fpr[tpr >= 0.9495].min()
    assert printed == fpr_at_tpr(c, loss, tpr=0.9495) == 0.0
    assert fpr_at_tpr(c, loss) == pytest.approx(0.1)


#: The eleven samples of the page, and what each program printed for them (netcal 1.4.0 and the
#: adaptive error of torch-uncertainty at 0d0df2b2 by hand; the others again in the tests below).
ELEVEN = np.array([0, 0.3, 0.4, 0.4, 0.5, 0.6, 0.7, 0.75, 0.75, 0.8, 1])
ELEVEN_WRONG = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1])
BINS = {
    name: (bins, float(printed))
    for name, bins, printed in re.findall(
        r"^\| ([^|]+) \| [^|]+ \| `([^|]+)` \| (0\.\d{6}) \|$", PAGE, re.MULTILINE
    )
}
PRINTED = {
    "`ece`": 0.309090909090909,
    "scikit-learn, `calibration_curve`": 0.3090909090909091,
    "FD-Shifts": 0.30909090909090914,
    "torchmetrics; torch-uncertainty": 0.34545454545454546,
    "netcal": 0.21818181818181812,
    '`ece(..., binning="equal_mass")`': 0.36363636363636365,
    'scikit-learn, `strategy="quantile"`': 0.3272727272727272,
    "netcal, `equal_intervals=False`": 0.2727272727272727,
    "torch-uncertainty, adaptive": 0.39999999999999997,
}


def binned(name, c, b):
    """The bin of each sample by the formula that stands on the page."""
    edges = np.linspace(0, 1, b + 1)
    known = {
        "np": np,
        "c": c,
        "b": b,
        "n": c.size,
        "s": np.sort(c),
        "edges": edges,
        "cuts": np.quantile(c, edges),
        "len": len,
        "int": int,
    }
    return eval(BINS[name][0], {"__builtins__": {}} | known)


def error_of(bins, c, loss):
    return np.abs(np.bincount(bins, weights=c - (1 - loss))).sum() / c.size


def test_the_page_has_every_program():
    assert BINS.keys() == PRINTED.keys()


@pytest.mark.parametrize("name", PRINTED)
def test_the_bins_of_the_page_give_what_was_printed(name):
    result = error_of(binned(name, ELEVEN, 4), ELEVEN, ELEVEN_WRONG)
    assert result == pytest.approx(PRINTED[name], abs=1e-12)
    assert BINS[name][1] == pytest.approx(result, abs=5e-7)


def eighths(seed):
    """Confidences on edges, with 0 and 1 among them, and bins whose edges have no rounding."""
    rng = np.random.default_rng(seed)
    c = np.append(rng.integers(0, 9, int(rng.integers(2, 40))) / 8, (0.0, 1.0))
    return c, (rng.random(c.size) < 0.4).astype(float), int(2 ** rng.integers(0, 4))


@pytest.mark.parametrize("seed", range(15))
def test_our_bins_equal_those_of_the_page(seed):
    c, loss, b = eighths(seed)
    width = error_of(binned("`ece`", c, b), c, loss)
    assert ab.ece(c, loss, bins=b) == pytest.approx(width, abs=1e-12)
    mass = error_of(binned('`ece(..., binning="equal_mass")`', c, b), c, loss)
    assert ab.ece(c, loss, bins=b, binning="equal_mass") == pytest.approx(mass, abs=1e-12)
    fd_shifts = error_of(binned("FD-Shifts", c, b), c, loss)
    assert ab.ece(c, loss, bins=b) == pytest.approx(fd_shifts, abs=1e-12)
    netcal = error_of(binned("netcal", c, b), c, loss)
    below_one = np.minimum(c, np.nextafter(1, 0))
    ours = ab.ece(below_one, loss, bins=b, convention="right_open")
    assert ours == pytest.approx(netcal, abs=1e-12)


@pytest.mark.parametrize("seed", range(15))
def test_scikit_learn_has_these_bins(seed):
    calibration = pytest.importorskip("sklearn.calibration")
    c, loss, b = eighths(seed)
    for strategy, name in (
        ("uniform", "scikit-learn, `calibration_curve`"),
        ("quantile", 'scikit-learn, `strategy="quantile"`'),
    ):
        bins = binned(name, c, b)
        right, confidence = calibration.calibration_curve(
            1 - loss, c, n_bins=b, strategy=strategy, pos_label=1
        )
        held = [bins == i for i in np.unique(bins)]
        assert right == pytest.approx([1 - loss[i].mean() for i in held], abs=1e-12)
        assert confidence == pytest.approx([c[i].mean() for i in held], abs=1e-12)


@pytest.mark.parametrize("seed", range(15))
def test_torchmetrics_has_these_bins(seed):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    c, loss, b = eighths(seed)
    # It bins the probability of class 1, so it reads ours as that.
    theirs = functional.binary_calibration_error(
        torch.tensor(c), torch.tensor(1 - loss).int(), n_bins=b
    )
    bins = binned("torchmetrics; torch-uncertainty", c, b)
    assert error_of(bins, c, loss) == pytest.approx(float(theirs), abs=1e-6)
    right_open = ab.ece(c, loss, bins=b, convention="right_open")
    converted = right_open + np.mean(loss * (c == 1))
    assert converted == pytest.approx(error_of(bins, c, loss), abs=1e-12)


@pytest.mark.parametrize("b", [1, 3, 8])
def test_equal_mass_bins_agree_where_nothing_ties_and_all_have_the_same_size(b):
    c = np.random.default_rng(b).permutation(8 * b) / (8 * b) + 1e-3
    ours, *others = (
        binned(name, c, b) for name in list(PRINTED) if "mass" in name or "quantile" in name
    )
    others += [
        binned(name, c, b)
        for name in ("netcal, `equal_intervals=False`", "torch-uncertainty, adaptive")
    ]
    assert len(others) == 3
    for theirs in others:
        np.testing.assert_array_equal(theirs, ours)
