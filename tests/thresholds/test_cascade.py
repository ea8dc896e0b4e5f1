"""Cascades: every choice of thresholds by brute force, closed forms, guarantees by simulation."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from abstain.errors import DomainError, FileFormatError, InputError, MissingInputError, ShapeError
from abstain.tables import load, save
from abstain.thresholds import Cascade, CascadePlan, CascadeStage, daily_share
from abstain.thresholds.cascade import (
    CascadeData,
    check_decisions,
    compute_frontier,
    select_cascade,
)

PRICES = {"one": 1.0, "two": 7.0, "three": 20.0}


def stages(names):
    return tuple(CascadeStage(name, cost=PRICES[name]) for name in names)


def drawn(rng, n, names, *, values=6, graded=False, person=0.0):
    """Samples with many ties, as stages of growing skill see them."""
    hard = rng.random(n)
    confidences, losses = [], []
    for index, _ in enumerate(names):
        sure = np.clip(1 - hard + rng.normal(0, 0.2, n), 0, 1)
        confidences.append(np.round(sure * values) / values)
        wrong = rng.random(n) < 0.6 * hard ** (1 + index)
        losses.append(np.where(wrong, rng.random(n), 0.0) if graded else wrong)
    return CascadeData.from_arrays(names, confidences, losses, person)


def by_hand(data, chosen, plan):
    """Risk, reviews and cost of stages with thresholds, sample by sample."""
    loss = reviews = cost = 0.0
    for row in range(data.n):
        for index, stage in enumerate(chosen):
            if stage.answers == "none":
                continue
            cost += stage.cost
            if stage.answers == "all" or data.confidences[index][row] >= stage.threshold:
                loss += data.required_losses[index][row]
                break
        else:
            reviews += 1
            loss += data.required_losses[-1][row]
    return (
        loss / data.n,
        reviews / data.n,
        (cost + plan.person_cost * reviews + plan.error_cost * loss) / data.n,
    )


@pytest.mark.parametrize("names", [("one",), ("one", "two"), ("one", "two", "three")])
@pytest.mark.parametrize("graded", [False, True])
def test_every_choice_is_what_brute_force_finds(names, graded):
    rng = np.random.default_rng(1)
    person = rng.random(60) < 0.1 if graded else 0.0
    data = drawn(rng, 60, names, values=3, graded=graded, person=person)
    plan = CascadePlan(0.2, 0.1, capacity=0.5, person_cost=30, error_cost=5)
    frontier = compute_frontier(data, stages(names), plan)
    assert frontier.risk.size == np.prod(frontier.shape) >= 5 ** len(names)
    for choice in range(frontier.risk.size):
        risk, reviews, cost = by_hand(data, frontier.stages_for_choice(choice), plan)
        assert frontier.risk[choice] == pytest.approx(risk, abs=1e-12)
        assert frontier.reviews[choice] == pytest.approx(reviews, abs=1e-12)
        assert frontier.cost[choice] == pytest.approx(cost, rel=1e-12)


def test_the_frontier_is_what_no_pair_of_thresholds_beats():
    data = drawn(np.random.default_rng(3), 400, ("one", "two"))
    frontier = compute_frontier(data, stages(("one", "two")), CascadePlan(0.1, 0.1, person_cost=30))
    best = {
        i
        for i in range(frontier.risk.size)
        if not any(
            (frontier.risk[j] <= frontier.risk[i] and frontier.cost[j] < frontier.cost[i])
            or (frontier.risk[j] < frontier.risk[i] and frontier.cost[j] <= frontier.cost[i])
            for j in range(frontier.risk.size)
        )
    }
    ours = frontier.efficient()
    assert {(frontier.risk[i], frontier.cost[i]) for i in ours} == {
        (frontier.risk[i], frontier.cost[i]) for i in best
    }
    assert np.all(np.diff(frontier.risk[ours]) > 0)
    assert np.all(np.diff(frontier.cost[ours]) < 0)


def test_what_is_tested_and_chosen_is_what_brute_force_over_pairs_finds():
    """The order from one part, exact binomial tests on the other, the cheapest that passed."""
    data = drawn(np.random.default_rng(5), 600, ("one", "two"))
    plan = CascadePlan(0.18, 0.1, capacity=0.5, person_cost=30, seed=4)
    frontier = compute_frontier(data, stages(("one", "two")), plan)
    rows = np.random.default_rng(4).permutation(600)
    parts = [data.subset(np.sort(rows[:300])), data.subset(np.sort(rows[300:]))]
    grids = [[None, *np.unique(x), np.inf] for x in parts[0].confidences]
    tried = []
    for first, second in itertools.product(*grids):
        one, two = (
            CascadeStage(name, "all" if t is None else "none" if t == np.inf else "some",
                         None if t in {None, np.inf} else float(t), PRICES[name])
            for name, t in (("one", first), ("two", second))
        )  # fmt: skip
        seen = [by_hand(part, (one, two), plan) for part in parts]
        load = 0.0 if None in {first, second} else 1.0
        p = [
            max(binom.cdf(round(300 * risk), 300, plan.max_risk),
                load * binom.cdf(round(300 * reviews), 300, plan.capacity))
            for risk, reviews, _ in seen
        ]  # fmt: skip
        tried.append((p[0], seen[0][2], p[1], seen[0][2] + seen[1][2], len(tried)))
    ahead, passed = np.inf, []
    for _, cost, p, both, place in sorted(tried):
        if cost >= ahead - 1e-9:
            continue
        ahead = cost
        if p > plan.delta:
            break
        passed.append((both, place))
    assert frontier.certified.tolist() == [place for _, place in passed]
    assert len(passed) >= 3
    assert frontier.selected == min(passed)[1]


def test_three_stages_and_large_data_have_no_more_choices():
    data = drawn(np.random.default_rng(2), 3000, tuple(PRICES), values=10_000)
    frontier = compute_frontier(data, stages(PRICES), CascadePlan(0.1, 0.1))
    assert 2**13 < frontier.risk.size <= 2**14


# ------------------------------------------------------------------------------- closed forms
def uniform(n):
    """Every combination of two even confidences once, with the mean losses (1-c) and (1-c)/2."""
    grid = (np.arange(n) + 0.5) / n
    first, second = (x.ravel() for x in np.meshgrid(grid, grid, indexing="ij"))
    return CascadeData.from_arrays(
        ("one", "two"), (first, second), (1 - first, (1 - second) / 2), 0.1
    )


def test_risk_load_and_cost_of_uniform_confidences_have_a_closed_form():
    n = 100
    data = uniform(n)
    plan = CascadePlan(0.2, 0.1, person_cost=30, error_cost=5)
    frontier = compute_frontier(data, stages(("one", "two")), plan)
    for choice in range(0, frontier.risk.size, 97):
        chosen = frontier.stages_for_choice(choice)
        s, t = (
            {"all": 0.0, "none": 1.0, "some": (x.threshold or 0) - 0.5 / n}[x.answers]
            for x in chosen
        )
        risk = (1 - s) ** 2 / 2 + s * ((1 - t) ** 2 / 4 + t * 0.1)
        cost = (chosen[0].answers != "none") + 7 * s * (chosen[1].answers != "none")
        assert frontier.reviews[choice] == pytest.approx(s * t)
        assert frontier.risk[choice] == pytest.approx(risk)
        assert frontier.cost[choice] == pytest.approx(cost + 30 * s * t + 5 * risk)


@pytest.mark.parametrize("tested", [58, 59])
def test_without_a_failure_the_p_value_is_a_power(tested):
    """59 samples without a failure certify 5 % at delta 0.05: 0.95**59 < 0.05 < 0.95**58."""
    n = 2 * tested
    data = CascadeData.from_arrays(("one",), (np.linspace(0, 1, n),), (np.zeros(n),))
    frontier = compute_frontier(data, stages(("one",)), CascadePlan(0.05, 0.05))
    assert frontier.p_value == pytest.approx(0.95**tested)
    made = select_cascade(frontier, data)
    assert made.attainable == (tested == 59)
    if made.attainable:
        assert made.stages[0].answers == "all"
        assert made.answered == (1.0, 0.0)
    else:
        assert "58 samples" in made.reason
        assert "requires 59" in made.reason


@pytest.mark.parametrize(("reviews", "arrivals"), [(0, 10), (3, 10), (40, 400), (399, 400)])
@pytest.mark.parametrize("overflow", [0.01, 0.3])
def test_days_with_too_many_are_as_rare_as_asked(reviews, arrivals, overflow):
    share = daily_share(reviews, arrivals, overflow=overflow)
    assert binom.sf(reviews, arrivals, share) == pytest.approx(overflow)
    assert binom.sf(reviews, arrivals, share * 1.001) > overflow
    assert daily_share(arrivals, arrivals) == 1


# --------------------------------------------------------------------------------- guarantees
#: Ten kinds of samples with both confidences and both error rates: everything true is known.
KINDS = [np.arange(1, 11) / 10, np.array([5, 1, 6, 2, 7, 3, 8, 4, 9, 10]) / 10]
WRONG = [np.linspace(0.5, 0.0, 10), np.linspace(0.2, 0.0, 10)]


def of_kinds(rng, n, person=0.0):
    kind = rng.integers(10, size=n)
    losses = [rng.random(n) < wrong[kind] for wrong in WRONG]
    return CascadeData.from_arrays(("one", "two"), [c[kind] for c in KINDS], losses, person)


def truth(made, person=0.0):
    """The true risk and load of a cascade on the ten kinds."""
    who = made.decide(*KINDS)
    risk = np.choose(who, [*WRONG, np.full(10, person)]).mean()
    return risk, (who == 2).mean()


@pytest.mark.parametrize(
    ("target", "capacity", "person"),
    [(0.06, 1.0, 0.0), (0.08, 0.35, 0.0), (0.105, 0.0, 0.0), (0.07, 1.0, 0.02)],
)
def test_risk_and_load_are_broken_no_more_often_than_delta(target, capacity, person):
    rng, delta, sets = np.random.default_rng(11), 0.2, 300
    broken = attained = 0
    plan = CascadePlan(target, delta, capacity=capacity, person_cost=30)
    for _ in range(sets):
        data = of_kinds(rng, 300, person)
        made = select_cascade(compute_frontier(data, stages(("one", "two")), plan), data)
        risk, load = truth(made, person)
        attained += made.attainable
        broken += made.attainable and (risk > target or load > capacity)
    assert attained > 0.1 * sets
    assert broken / sets <= delta + 4 * np.sqrt(delta * (1 - delta) / sets)


def test_the_cheapest_pair_on_all_samples_is_broken_far_more_often():
    """So the test above can fail."""
    rng, target, broken = np.random.default_rng(11), 0.06, 0
    plan = CascadePlan(target, 0.2, person_cost=30)
    for _ in range(200):
        data = of_kinds(rng, 300)
        frontier = compute_frontier(data, stages(("one", "two")), plan)
        fine = np.flatnonzero(frontier.risk <= target)
        plain = frontier.stages_for_choice(int(fine[np.argmin(frontier.cost[fine])]))
        risk, _ = truth(Cascade(plain, plan, 300, 150, (0.0, 0.0, 0.0), 0.0))
        broken += risk > target
    assert broken / 200 > 0.4


# ------------------------------------------------------------------------------------- record
def made(answers=("some", "some"), thresholds=(0.9, 0.7), **more):
    each = zip(("one", "two"), answers, thresholds, strict=True)
    parts = tuple(CascadeStage(name, a, t, PRICES[name]) for name, a, t in each)
    plan = CascadePlan(0.05, 0.1, person_cost=30, **more)
    return Cascade(parts, plan, 100, 50, (0.5, 0.4, 0.1), 0.01, 2.0)


def test_who_answers():
    nan = np.nan
    assert made().decide([0.9, 0.1, 0.1], [nan, 0.7, 0.69]).tolist() == [0, 1, 2]
    assert made().decide([0.9, 0.1, 0.1]).tolist() == [0, 1, 1]
    skipped = made(("some", "none"), (0.9, None))
    assert skipped.decide([0.9, 0.1]).tolist() == [0, 2]
    assert skipped.decide([0.9, 0.1], [nan, nan]).tolist() == [0, 2]
    assert made(("none", "all"), (None, None)).decide([nan, nan], [0.0, 1.0]).tolist() == [1, 1]


def test_is_said_in_a_sentence():
    assert str(made()) == (
        "One answers from a confidence of 0.9 on, two answers from a confidence of 0.7 on, the "
        "person the rest; 10% of the calibration samples went to the person; with "
        "probability 0.9 or more over calibration sets, the true risk of all answers is at most 0.05."
    )
    nobody = made(("none", "all"), (None, None), capacity=0)
    assert str(nobody).startswith("One is not run, two answers all; with probability 0.9 or more")


def test_what_a_sample_costs_is_what_was_run_on_it():
    assert made().costs(np.array([0, 1, 2])).tolist() == [1, 8, 38]
    assert made(("none", "some"), (None, 0.7)).costs(np.array([1, 2])).tolist() == [7, 37]


def test_the_scale_of_few_confidences_can_be_said():
    """What reaches the second stage lies in [0, 1], as probabilities do."""
    first, second = made().stages
    odds = replace(made(), stages=(first, replace(second, scale="log-odds")))
    sure = [np.nan, 0.71, 0.2]
    with pytest.raises(InputError, match="another scale"):
        odds.decide([0.9, 0.1, 0.1], sure)
    assert odds.decide([0.9, 0.1, 0.1], sure, scale="score").tolist() == [0, 1, 2]


def test_refuses_confidences_that_are_incompatible():
    with pytest.raises(DomainError, match="confidence of 'two'"):
        made().decide([0.9, 0.1], [np.nan, np.nan])
    with pytest.raises(ShapeError, match="'two'"):
        made().decide([0.9, 0.1], [0.5])
    with pytest.raises(InputError, match="pass confidences of one, two"):
        made().decide()
    with pytest.raises(InputError, match="another scale"):
        CascadeStage("one", "some", 0.9, scale="probability").accepts([3.0, -2.0])


def test_is_saved_and_loaded_bit_for_bit(tmp_path):
    first = made(thresholds=(0.1 + 0.2, 1 / 3))
    assert load(save(first, tmp_path / "cascade.json")) == first
    days = daily_share(40, 400)
    second = made(capacity=days, reviews=40, arrivals=400, overflow=0.05)
    assert Cascade.from_json(second.to_json()) == second


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version"),
        ({"kind": "decision rule"}, "kind"),
        ({"stages": []}, "stages"),
        ({"answered": [1.0]}, "answered"),
        ({"tested": 101}, "tested"),
        ({"reason": "none is sure enough"}, "must send everything to the person"),
        ({"more": 1}, "more"),
    ],
)
def test_refuses_a_file_that_was_edited_to_nonsense(change, said):
    fields = json.loads(made().to_json())
    with pytest.raises(FileFormatError, match=said):
        Cascade.from_json(json.dumps(fields | change))


@pytest.mark.parametrize(
    ("part", "field", "value", "said"),
    [
        ("plan", "delta", 5, "delta"),
        ("plan", "capacity", 0.2, "capacity"),
        ("plan", "arrivals", None, "go together"),
        ("stages", "threshold", None, "threshold"),
        ("stages", "name", "person", "person"),
    ],
)
def test_refuses_a_part_that_was_edited_to_nonsense(part, field, value, said):
    share = daily_share(40, 400)
    fields = json.loads(made(capacity=share, reviews=40, arrivals=400, overflow=0.05).to_json())
    (fields[part][0] if part == "stages" else fields[part])[field] = value
    with pytest.raises(FileFormatError, match=said):
        Cascade.from_json(json.dumps(fields))


# -------------------------------------------------------------------------------------- check
def test_a_check_counts_what_each_stage_answers():
    first = np.array([0.9, 0.9, 0.1, 0.1, 0.1, 0.1])
    second = np.array([0.0, 0.0, 0.8, 0.8, 0.1, 0.1])
    wrong = ([1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0])
    data = CascadeData.from_arrays(
        ("one", "two"), (first, second), wrong, np.array([0, 0, 0, 0, 0, 1])
    )
    cascade = made(capacity=0.5)
    result = check_decisions(cascade, cascade.decide(first, second), data)
    assert [(s.n_answered, s.risk) for s in result.stages] == [(2, 0.5), (2, 1.0), (2, 0.5)]
    assert result.risk == pytest.approx(4 / 6)
    assert result.load.reviews == pytest.approx(1 / 3)
    assert result.load.cost == pytest.approx((2 * 1 + 2 * 8 + 2 * 38) / 6)
    assert result.excess_verdict == "broken"
    assert result.load.verdict == "cannot tell"
    assert result.verdict == "broken"


def test_both_intervals_of_a_check_hold_together():
    """Each at 1 - (1 - level)/2: with a load that is limited, risk has the wider interval."""
    x = np.repeat([0.9, 0.1], 500)
    wrong = np.arange(1000) % 20 == 0
    data = CascadeData.from_arrays(("one", "two"), (x, x), (wrong, wrong))
    free, limited = made(), made(capacity=0.6)
    one, both = (check_decisions(c, c.decide(x, x), data, level=0.9) for c in (free, limited))
    assert one.risk == both.risk
    assert both.risk_interval.high > one.risk_interval.high
    assert both.risk_interval.level == pytest.approx(0.95)
    assert (one.load.verdict, both.load.verdict) == ("no target", "holds")


def test_refuses_samples_without_losses_to_choose_on():
    data = CascadeData.from_arrays(("one",), ([0.1, 0.9],), None)
    with pytest.raises(MissingInputError, match="losses"):
        compute_frontier(data, stages(("one",)), CascadePlan(0.1, 0.1))
    with pytest.raises(DomainError, match="'one'"):
        CascadeData.from_arrays(("one",), ([0.1, 0.9],), ([0, 2],))
