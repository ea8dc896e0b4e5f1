"""OC-AUC, OC-AP and the AUROC of the accepted."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from abstain._foundation.scored import ClassView, Scored
from abstain.errors import DomainError, ShapeError, UndefinedMetricWarning
from abstain.metrics.binary_tasks import ENTRIES, accepted_auroc, oc_ap, oc_auc

REVIEWS = (oc_auc, oc_ap)
PEERS = {oc_auc: roc_auc_score, oc_ap: average_precision_score}


def draw(seed, n=60, *, tied=False):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    score = np.round(np.clip(0.3 * y + 0.7 * rng.random(n), 0, 1), 2)
    c = rng.integers(0, 6, n) if tied else rng.permutation(n)
    return c, y, score, rng.integers(0, 4, n)


@pytest.mark.parametrize("function", REVIEWS)
@pytest.mark.parametrize("review", [0.0, 0.1, 0.25, 0.5])
def test_reviewed_samples_get_the_score_of_the_truth(function, review):
    c, y, score, _ = draw(3)
    reviewed = c < round(review * c.size)
    answered = np.where(reviewed, np.where(y == 1, 2.0, -1.0), score)
    expected = PEERS[function](y, answered)
    assert function(c, y, score, review=review) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("function", REVIEWS)
@pytest.mark.parametrize("review", [0.13, 0.37, 0.9])
def test_a_tie_group_at_the_edge_is_reviewed_in_part(function, review):
    c, y, score, _ = draw(4, tied=True)
    n = c.size
    share = [(review * n - (c < x).sum()) / (c == x).sum() for x in c]
    share = np.clip(share, 0, 1)
    # Each sample twice: its reviewed part and the rest.
    labels = np.concatenate((y, y))
    answered = np.concatenate((np.where(y == 1, 2.0, -1.0), score))
    expected = PEERS[function](labels, answered, sample_weight=np.concatenate((share, 1 - share)))
    assert function(c, y, score, review=review) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.8, 1.0])
def test_accepted_auroc_equals_that_of_the_most_confident(coverage):
    c, y, score, _ = draw(5)
    mask = c >= round((1 - coverage) * c.size)
    expected = roc_auc_score(y[mask], score[mask])
    assert accepted_auroc(c, y, score, coverage=coverage) == pytest.approx(expected, abs=1e-12)


def test_accepted_auroc_takes_the_same_share_of_each_tied_sample():
    c, y, score, _ = draw(6, tied=True)
    n = c.size
    share = np.clip([(0.55 * n - (c > x).sum()) / (c == x).sum() for x in c], 0, 1)
    expected = roc_auc_score(y, score, sample_weight=share)
    assert accepted_auroc(c, y, score, coverage=0.55) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("function", [*REVIEWS, accepted_auroc])
def test_weights_repeat_and_order_does_not_matter(function):
    c, y, score, w = draw(7, tied=True)
    value = function(c, y, score, weight=w)
    repeated = function(*(np.repeat(x, w) for x in (c, y, score)))
    assert repeated == pytest.approx(value, abs=1e-12)
    order = np.random.default_rng(0).permutation(c.size)
    assert function(c[order], y[order], score[order], weight=w[order]) == pytest.approx(value)
    assert function(np.tile(c, 2), np.tile(y, 2), np.tile(score, 2)) == pytest.approx(
        function(c, y, score)
    )
    assert function(np.exp(c), y, score, weight=w) == value


def test_reviewing_everything_is_perfect():
    c, y, score, w = draw(8)
    assert oc_auc(c, y, 1 - score, review=1.0) == 1.0
    assert oc_ap(c, y, 1 - score, review=1.0, weight=w) == 1.0


def test_the_reference_codes_example_with_fine_bins():
    # uncertainty-baselines, testCustomBinningScore: 0.31 and 0.32 are reviewed. With four
    # thresholds it prints 0.625; of the four pairs three are in order.
    y, score = [1, 0, 0, 1], [0.31, 0.32, 0.83, 0.64]
    assert oc_auc(score, y, score, review=0.5) == 0.75


def test_one_class_gives_a_reason():
    with pytest.warns(UndefinedMetricWarning, match="all samples have the same class"):
        assert np.isnan(oc_auc([0.1], [1], [0.3]))
    with pytest.warns(UndefinedMetricWarning, match="there are no positives"):
        assert np.isnan(oc_ap([0.1, 0.2], [0, 0], [0.3, 0.4]))
    with pytest.warns(UndefinedMetricWarning, match="accepted samples do not contain both classes"):
        assert np.isnan(accepted_auroc([0.1, 0.2], [0, 1], [0.3, 0.4], coverage=0.5))
    with pytest.warns(UndefinedMetricWarning, match="accepted samples do not contain both classes"):
        assert np.isnan(accepted_auroc([0.1, 0.2], [0, 1], [0.3, 0.4], coverage=0.0))


def test_all_tied():
    c, y, score, _ = draw(9)
    flat = np.ones(c.size)
    assert accepted_auroc(flat, y, score) == pytest.approx(roc_auc_score(y, score))
    assert accepted_auroc(c, y, flat) == pytest.approx(0.5)


def entry_value(name, view, c, weight=None):
    entry = next(e for e in ENTRIES if e.name == name)
    s = Scored(c, (view.labels != view.prediction).astype(int), weight, class_view=view)
    assert not entry.reason_not_applicable(s)
    return entry.compute(s)


@pytest.mark.parametrize("logs", [True, False])
def test_the_catalogue_reads_the_second_class(logs):
    c, y, score, w = draw(10)
    p = np.stack((1 - score, score), axis=1)
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    view = ClassView(y, p.argmax(axis=1), ("no", "yes"), p, log_p)
    if not logs:
        view = ClassView(y, p.argmax(axis=1), ("no", "yes"), p)
        entry = ENTRIES[0]
        assert entry.compute(Scored(c, y, w, class_view=view)).value == pytest.approx(
            oc_auc(c, y, score, weight=w)
        )
        return
    w = w.astype(float)
    for name, function in (
        ("oc_auc", oc_auc),
        ("oc_ap", oc_ap),
        ("accepted_auroc", accepted_auroc),
    ):
        value = entry_value(name, view, c, w).value
        assert value == pytest.approx(function(c, y, score, weight=w), abs=1e-12)


def test_log_odds_keep_the_order_where_probabilities_saturate():
    log_p = np.array([[-40.0, 0.0], [-41.0, 0.0], [-39.0, 0.0]])
    labels = np.array([0, 1, 0])
    view = ClassView(labels, np.ones(3, dtype=int), ("no", "yes"), np.exp(log_p), log_p)
    measured = entry_value("accepted_auroc", view, np.ones(3))
    assert measured.value == 1.0
    assert measured.n_accepted == 3


def test_unknown_classes_give_a_reason():
    p = np.array([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    view = ClassView(np.array([1, 0, -1]), p.argmax(axis=1), (0, 1), p, np.log(p))
    assert entry_value("oc_auc", view, np.arange(3)).reason == "1 samples have an unknown class"
    known = entry_value("oc_auc", view, np.arange(3), np.array([1.0, 1.0, 0.0]))
    assert known.value == 1.0


def test_entries_ask_for_two_classes():
    p = np.full((3, 3), 1 / 3)
    view = ClassView(np.arange(3), np.arange(3), (0, 1, 2), p, np.log(p))
    s = Scored(np.arange(3.0), np.zeros(3), class_view=view)
    assert {e.reason_not_applicable(s) for e in ENTRIES} == {"needs a task with two classes"}


@pytest.mark.parametrize("function", [*REVIEWS, accepted_auroc])
def test_messages(function):
    with pytest.raises(DomainError, match=r"`labels` must be 0 or 1 .* got 2 at index 1"):
        function([0.1, 0.2], [1, 2], [0.5, 0.5])
    with pytest.raises(ShapeError, match="`positive_score` must have one entry for each of the 2"):
        function([0.1, 0.2], [1, 0], [0.5])
    option = "coverage" if function is accepted_auroc else "review"
    with pytest.raises(DomainError, match=rf"`{option}` must lie in \[0, 1\]; got -0.1"):
        function([0.1, 0.2], [1, 0], [0.5, 0.5], **{option: -0.1})
