"""R1 to R5 of every metric: against a search of its own, the paper's text, and closed forms."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from abstain._foundation.scored import MetricValue, validate_samples
from abstain.errors import InputError, UnknownNameError
from abstain.metrics import METRICS, Need, augrc, aurc, f1_auc, failure_auroc, metric_named
from abstain.metrics.catalogue import FAMILIES
from abstain.metrics.entry import Measurement
from abstain_bench.studies import study_requirements
from abstain_bench.studies._area_estimators import augrc_from_factors
from abstain_bench.studies.requirements import (
    _metric_names,
    _verdict_from_json,
    _verdict_to_json,
    closed_forms,
)
from abstain_bench.studies.requirements.decisions import (
    READINGS,
    REQUIREMENTS,
    find_disagreements,
    judge_metric,
)
from abstain_bench.studies.requirements.systems import (
    ClassInputs,
    all_systems,
    systems_with_few_failures,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "choosing-a-metric.md").read_text(encoding="utf-8")
ROUNDING = 1e-9
SIZE = 5

#: Metrics of confidence and loss alone, which order and loss decide.
PLAIN = [
    m.name
    for m in METRICS.values()
    if m.measurement.rank_based and m.measurement.needs <= {Need.BINARY_LOSS}
]
CLASSES = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES}


def augrc_with(**changes):
    """Return AUGRC with other fields of its identity."""
    known = METRICS["augrc"]
    return replace(known, identity=replace(known.identity, **changes))


@pytest.fixture(scope="module")
def result():
    mine = METRICS.add(augrc_with(name="mine", violated_requirements=None))
    try:
        asked = [*PLAIN, "nll", "brier", "accuracy", "ece", "coverage@2risk", "mine"]
        return study_requirements(metrics=asked, orders=SIZE)
    finally:
        del METRICS._entries[mine.name]


@pytest.fixture(scope="module")
def judgments():
    return {name: judge_metric(METRICS[name], SIZE if name in PLAIN else 4) for name in METRICS}


def orders_of(n):
    return [np.array(o, float) for o in itertools.product((0, 1), repeat=n)]


def few():
    for k in (1, 2):
        for at in itertools.combinations(range(20), k):
            yield np.isin(np.arange(20), at).astype(float)


def value_of(name, loss):
    metric = metric_named(name)
    confidence = np.linspace(0.95, 0.55, len(loss))
    return float(metric.compute(validate_samples(confidence, np.asarray(loss, float))).value)


def badness(name, orders):
    sign = 1 if metric_named(name).lower_is_better else -1
    return np.array([sign * value_of(name, loss) for loss in orders])


def factors(orders):
    """Accuracy and failure AUROC of orders with some of both; the rows that are such."""
    both = [i for i, loss in enumerate(orders) if 0 < loss.sum() < len(loss)]
    confidence = np.arange(len(orders[0]), 0, -1)
    return (
        np.array([1 - orders[i].mean() for i in both]),
        np.array([failure_auroc(confidence, orders[i]) for i in both]),
        both,
    )


def searched(name):
    """The least n that breaks each reading, by comparing every two orders."""
    broken = {}
    for orders in [*(orders_of(n) for n in range(2, SIZE + 1)), list(few())]:
        n, value = len(orders[0]), badness(name, orders)
        accuracy, ranking, both = factors(orders)
        apart = np.abs(np.subtract.outer(accuracy, accuracy)) > ROUNDING
        other = np.abs(np.subtract.outer(ranking, ranking)) > ROUNDING
        worse = np.subtract.outer(value[both], value[both])
        better = (~other & (accuracy[:, None] > accuracy) & apart) | (
            ~apart & (ranking[:, None] > ranking) & other
        )
        steps, swaps = moves(orders, value)
        lost = np.concatenate([worse[better & np.isfinite(worse)], [-np.inf]])
        result = {
            ("R2", "weak"): lost.max() > ROUNDING,
            ("R2", "strict"): lost.max() > -ROUNDING,
            ("R2", "step, weak"): max(steps, default=-1) > ROUNDING,
            ("R2", "step, strict"): max(steps, default=-1) > -ROUNDING,
            ("R3", ""): any(np.ptp(g) > ROUNDING or min(g) <= ROUNDING for g in swaps.values()),
        }
        for reading, is_broken in result.items():
            if is_broken:
                broken.setdefault(reading, n)
    return broken


def moves(orders, value):
    """How much worse each single step makes it, and the gain of each pair put right."""
    look = {tuple(loss): v for loss, v in zip(orders, value, strict=True)}
    steps, swaps = [], {}
    for loss, before in look.items():
        for i in range(len(loss)):
            mended = look.get((*loss[:i], 0.0, *loss[i + 1 :]), np.nan)
            if loss[i] == 1 and np.isfinite(mended - before):
                steps.append(mended - before)
            after = look.get((*loss[:i], 0.0, 1.0, *loss[i + 2 :]), np.nan)
            if loss[i : i + 2] == (1, 0) and np.isfinite(after - before):
                steps.append(after - before)
                swaps.setdefault(sum(loss), []).append(before - after)
    return steps, swaps


@pytest.mark.parametrize("name", PLAIN)
def test_the_readings_are_those_of_a_search_over_all_pairs(name, judgments):
    broken = searched(name)
    for key, finding in judgments[name].verdicts.items():
        reading = READINGS[key]
        if reading.requirement in {"R2", "R3"}:
            at = broken.get((reading.requirement, reading.variant))
            assert (finding.holds, finding.n_samples if at else None) == (at is None, at), (
                reading.column
            )


@pytest.mark.parametrize("name", PLAIN)
def test_a_counterexample_is_one(name, judgments):
    for key, finding in judgments[name].verdicts.items():
        example, reading = finding.counterexample, READINGS[key]
        if example is None or reading.requirement != "R2":
            continue
        before, after = ([c == "x" for c in word] for word in (example.before, example.after))
        assert value_of(name, before) == pytest.approx(example.value_before)
        assert value_of(name, after) == pytest.approx(example.value_after)
        sign = 1 if METRICS[name].lower_is_better else -1
        worse = sign * (example.value_after - example.value_before)
        assert worse > (ROUNDING if reading.variant.endswith("weak") else -ROUNDING)
        if reading.is_from_paper:
            confidence = np.arange(len(before), 0, -1)
            ranking = [failure_auroc(confidence, loss) for loss in (before, after)]
            gains = sum(before) - sum(after), ranking[1] - ranking[0]
            # One factor improves, the other stays.
            assert sorted(np.sign(np.round(gains, 9))) == [0, 1]


def test_the_smallest_counterexample_of_the_aurc():
    # By hand: one accuracy, 3 of 6 pairs right before and 4 after.
    example = judge_metric(METRICS["aurc"], 5).verdicts["never worse"].counterexample
    assert (example.before, example.after) == ("oxxxo", "xooxx")
    risks = [0, 1 / 2, 2 / 3, 3 / 4, 3 / 5], [1, 1 / 2, 1 / 3, 1 / 2, 3 / 5]
    for risk, value in zip(risks, (example.value_before, example.value_after), strict=True):
        trapezoid = (sum(risk) + (risk[0] - risk[-1]) / 2) / 5
        assert value == pytest.approx(trapezoid)
    assert all(
        judge_metric(METRICS["aurc"], 4).verdicts[r].n_samples == 20 for r in ("never worse",)
    )


def test_verdicts_on_the_metrics_of_the_paper(judgments):
    def row(name):
        return "".join("+-"[not f.holds] for f in judgments[name].verdicts.values())

    # R1, R2 weak and strict, by steps, R3, R4, R5 weak and strict.
    assert {name: row(name) for name in ("augrc", "sele", "two_sele")} == dict.fromkeys(
        ("augrc", "sele", "two_sele"), "+++++++++"
    )
    assert row("aurc") == row("aurc_plugin") == row("aurc_log") == row("auarc") == "+--++-+++"
    assert row("e_aurc") == row("normalized_aurc") == "+-----+++"
    assert row("f1_auc") == "+-----++-"
    assert row("failure_auroc") == "-+---++--"
    assert row("prr") == "-+---++++"
    assert row("nll") == row("brier") == "+--++--+-"
    assert row("oc_auc") == row("oc_ap") == "+-----++-"
    assert row("accuracy")[:3] == "-+-"
    # Calibration reads more of a score than its order.
    assert (
        judgments["ece"].verdicts["any score"].counterexample.reason == Need.UNIT_CONFIDENCE.value
    )


def test_where_the_paper_is_met_in_no_reading_is_what_the_page_tells(judgments):
    apart = {(j.metric.name, requirement) for j, requirement in find_disagreements(judgments)}
    told = set(re.findall(r"^\| `(\w+)` \| (R\d) \| (?:holds|broken) \|", PAGE, re.MULTILINE))
    assert apart == told
    assert apart == {("e_aurc", "R5"), ("oc_auc", "R1"), ("oc_ap", "R1")}


def test_what_the_paper_does_not_name_is_no_verdict(judgments):
    # Of a metric the text names what it breaks; of AUGRC alone it says that it meets all.
    assert {j.paper_verdict(r) for r in REQUIREMENTS for j in [judgments["augrc"]]} == {True}
    named = {r: judgments["f1_auc"].paper_verdict(r) for r in REQUIREMENTS}
    assert named == {"R1": None, "R2": False, "R3": None, "R4": None, "R5": False}
    rows = study_requirements(metrics=["f1_auc", "prr"], orders=3).rows()
    paper = {(row["metric"], row["requirement"]): row["paper"] for row in rows if row["paper"]}
    assert paper[("f1_auc", "R3")] == "not stated"
    assert paper[("f1_auc", "R5")] == "broken"
    assert not any(metric == "prr" for metric, _ in paper)


def test_variants_of_a_metric_are_counted_once():
    names = ["augrc", "aurc", "aurc_plugin", "aurc_log", "oc_auc", "oc_ap", "oc_auc@0.5review"]
    (said,) = (
        text
        for text in study_requirements(metrics=names, orders=3).verdict
        if "The paper states" in text
    )
    # Five of AUGRC, two of AURC and three of OC-AUC.
    assert said.startswith("The paper states 10 verdicts on 3 of these metrics. ")
    assert "no verdict on the other 5 pairs" in said
    assert {m.identity.requirements_from for m in METRICS.values()} == {"", "aurc", "oc_auc"}
    for identity in (metric.identity for metric in METRICS.values()):
        reference = METRICS[identity.requirements_from or identity.name].identity
        assert identity.violated_requirements == reference.violated_requirements


#: What Traub et al. (2024, section 2.4) say a metric breaks, by how its paragraph begins.
PARAGRAPHS = {
    "AURC": ("aurc", "aurc_plugin", "aurc_log"),
    "e-AURC": ("e_aurc",),
    "NLL / Brier Score": ("nll", "brier"),
    "AUROC": ("failure_auroc",),
    "OC-AUC": ("oc_auc", "oc_ap"),
    "AUROC-AURC": ("auroc_retention",),
    "NAURC": ("normalized_aurc",),
    "F1-AUC": ("f1_auc",),
    "ARC": ("auarc",),
}


def test_what_entries_say_of_the_paper_is_in_its_text(shared):
    text = (shared / "papers" / "traub2024_augrc_full.txt").read_text(encoding="utf-8")
    text = text[text.index("2.4 Current multi-threshold") : text.index("\n3 Area under")]
    text = text[text.index("\nAURC:") :]
    starts = sorted((re.search(rf"(?:\n|[.)] ){n}: ", text).start(), n) for n in PARAGRAPHS)
    ends = [start for start, _ in starts[1:]] + [len(text)]
    for (start, paragraph), end in zip(starts, ends, strict=True):
        said = tuple(sorted(set(re.findall(r"R[1-5]", text[start:end]))))
        for name in PARAGRAPHS[paragraph]:
            assert METRICS[name].identity.violated_requirements == said


def test_metrics_that_the_paper_does_not_judge_say_so():
    known = {name for names in PARAGRAPHS.values() for name in names} | {"augrc"}
    assert METRICS["augrc"].identity.violated_requirements == ()
    assert {
        name for name, m in METRICS.items() if m.identity.violated_requirements is not None
    } == known
    assert {r for m in METRICS.values() for r in m.identity.violated_requirements or ()} <= set(
        REQUIREMENTS
    )


def test_all_metrics_and_families_are_there(result, judgments):
    names = _metric_names(None)
    assert set(METRICS) < set(names)
    assert all(family.example_name in names for family in FAMILIES)
    assert all(f.text != "undefined" for j in judgments.values() for f in j.verdicts.values())
    rows = result.frame("summary")["metric"]
    assert result.frame().height == len(rows) * len(READINGS)
    assert result.frame().filter(verdict="broken")["reason"].str.len_chars().min() > 0


def test_a_metric_of_your_own_joins_by_being_registered(result):
    row = result.frame("summary").filter(metric="mine").row(0, named=True)
    assert row["R2 strict"]
    assert row["the_paper"] == "not judged"


def test_a_wrong_metric_breaks_what_it_should():
    turned = augrc_with(name="turned", lower_is_better=False)
    result = judge_metric(turned, 3).verdicts
    assert {r.column for n, r in READINGS.items() if not result[n].holds} == {
        "R2 weak", "R2 strict", "R2 step, weak", "R2 step, strict", "R3",
    }  # fmt: skip
    assert result["never worse"].n_samples == 2


def test_a_metric_that_is_never_defined_is_not_judged():
    nothing = replace(
        augrc_with(name="nothing", violated_requirements=("R2",)),
        measurement=Measurement(lambda s: MetricValue(float("nan"))),
    )
    judgment = judge_metric(nothing, 3)
    assert {f.text for f in judgment.verdicts.values()} == {"undefined"}


def test_to_become_undefined_is_to_be_moved(judgments):
    # Turned around it may reject no failure, and is then undefined.
    assert judgments["rejection_quality@80cov"].verdicts["any score"].holds


def test_what_only_open_sets_define_is_shown_some(judgments):
    example = judgments["oscr"].verdicts["always better"].counterexample
    assert "?" in example.before
    systems = all_systems(2, ClassInputs.OPEN)
    # Three kinds of a sample: right, wrong, of no known class.
    assert sorted(map(systems.format_row, range(9))) == sorted(
        "".join(pair) for pair in itertools.product("ox?", repeat=2)
    )
    assert (systems.scored(0).class_view.labels == -1).sum() == systems.n_second_class[0]


def test_systems_are_all_there_are():
    plain, labeled = all_systems(3), all_systems(3, ClassInputs.CLASSES, scales=2)
    assert plain.is_failure.shape == (8, 3)
    assert labeled.is_failure.shape == (8 * 8 * 2, 3)
    assert len({(labeled.format_row(i)) for i in range(128)}) == 128
    # 2 x 1 places for a pair of neighbors in the wrong order, and any third one.
    assert [tuple(map(plain.format_row, pair)) for pair in plain.swaps] == [
        ("xoo", "oxo"), ("xox", "oxx"), ("oxo", "oox"), ("xxo", "xox"),
    ]  # fmt: skip
    assert len(plain.corrections) == 3 * 4
    assert systems_with_few_failures().is_failure.shape == (20 + 190, 20)
    for systems in (plain, systems_with_few_failures()):
        confidence = np.arange(systems.n_samples, 0, -1)
        rows = np.flatnonzero(systems.has_ranking)
        exact = [failure_auroc(confidence, systems.is_failure[i]) for i in rows]
        scale = systems.ranking[rows[np.argmax(exact)]] / max(exact)
        np.testing.assert_allclose(systems.ranking[rows] / scale, exact)


def test_classes_are_those_of_one_test_set():
    systems = all_systems(3, ClassInputs.CLASSES)
    for before, after in (*systems.swaps, *systems.corrections):
        assert systems.n_second_class[before] == systems.n_second_class[after]
    view = systems.scored(5).class_view
    assert ((view.labels != view.prediction) == systems.is_failure[5]).all()


def test_the_turning_point_of_the_f1_auc():
    accuracy, most = closed_forms.turning_point()
    # Eq. 11 and the paper's 0.56; independently of the closed form.
    best = minimize_scalar(
        lambda a: -closed_forms.best_f1_auc(a), bounds=(0.1, 1), method="bounded"
    )
    assert accuracy == pytest.approx(best.x, abs=1e-5)
    assert accuracy == pytest.approx(0.5562, abs=5e-5)
    assert most == pytest.approx(-best.fun)
    rows = {row["n"]: row for row in closed_forms.turning_point_rows()}
    for n in (20, 100, 1000):
        assert rows[n]["accuracy"] == pytest.approx(accuracy, abs=1 / n)
        assert rows[n]["F1-AUC_without_failures"] == pytest.approx(2 - 2 * np.log(2), abs=0.2 / n)
    assert rows[1000]["max_F1-AUC"] == pytest.approx(most, abs=1e-5)


def test_a_perfect_ranking_is_the_best_of_all_orders():
    confidence = np.arange(7, 0, -1)
    best = {}
    for loss in orders_of(7)[:-1]:
        right = int(7 - loss.sum())
        best[right] = max(best.get(right, 0), f1_auc(confidence, loss))
    assert [best[k] for k in range(1, 8)] == pytest.approx(list(closed_forms._best_f1_aucs(7)))


def test_eq_7_is_the_augrc_of_every_order():
    confidence = np.arange(6, 0, -1)
    for loss in orders_of(6)[1:-1]:
        ranking = failure_auroc(confidence, loss)
        expected = augrc_from_factors(1 - loss.mean(), ranking)
        assert augrc(confidence, loss) == pytest.approx(float(expected))
    spread = closed_forms.areas_at_equal_factors(6)
    assert spread["AUGRC"] < 1e-15
    values = {}
    for loss in orders_of(6)[1:-1]:
        key = loss.sum(), round(failure_auroc(confidence, loss), 9)
        values.setdefault(key, []).append(aurc(confidence, loss))
    assert spread["AURC"] == pytest.approx(max(max(v) / min(v) - 1 for v in values.values()))


def test_the_surface_falls_with_both_factors():
    whole = closed_forms.surface().surfaces["AUGRC (eq. 7)"]
    assert (np.diff(whole, axis=0) < 0).all()
    assert (np.diff(whole, axis=1) < 0).all()


def test_contributions_are_linear_and_harmonic():
    rows = closed_forms.contribution_rows(9)
    for k, row in enumerate(rows, start=1):
        assert row["AUGRC"] == pytest.approx((9 - k + 1 / 2) / 81)
        assert row["AURC_plug-in"] == pytest.approx(sum(1 / j for j in range(k, 10)) / 9)
        one = np.arange(1, 10) == k
        assert row["AURC"] == pytest.approx(aurc(np.arange(9, 0, -1), one))


def test_the_toy_is_as_the_paper_tells_of_its_own():
    first, second, third = closed_forms.toy_rows()
    assert first["accuracy"] == second["accuracy"] > third["accuracy"]
    assert first["failure_AUROC"] == second["failure_AUROC"] > third["failure_AUROC"]
    assert second["AURC"] < first["AURC"]
    assert third["AURC"] < first["AURC"]
    assert first["AUGRC"] == pytest.approx(second["AUGRC"])
    assert third["AUGRC"] > first["AUGRC"]
    # No order of as many failures is further from CSF-1 at the same failure AUROC.
    assert first["AURC"] - second["AURC"] == pytest.approx(0.1976, abs=1e-4)


def test_sentences_follow_from_the_numbers(result):
    assert "AUGRC, SELE, 2 x SELE, AUGRC." in result.verdict[0]
    alone = study_requirements(metrics=["aurc"], orders=3)
    assert alone.verdict[0].startswith("None of 1 metric meets all")
    assert not any("R2 depends" in sentence for sentence in alone.verdict)
    bare = study_requirements(metrics=["sele"], orders=3)
    assert not any("paper's" in sentence for sentence in bare.verdict)
    assert set(bare.figures) == {"verdicts", "surface", "f1-auc", "contributions", "toy-curves"}


def test_the_verdict_counts_the_papers(result):
    counted = re.search(
        r"states (\d+) verdicts on (\d+) of .* metrics. (\d+) of them agree with every reading, "
        r"(\d+) with one of two, and (\d+) with none \(.* the other (\d+) pairs",
        result.verdict[2],
    )
    named, judged_there, *parts, unnamed = map(int, counted.groups())
    own = [METRICS[n] for n in result.parameters["metrics"] if n in METRICS]
    own = [
        m
        for m in own
        if m.identity.violated_requirements is not None and not m.identity.requirements_from
    ]
    assert judged_there == len(own)
    assert (
        named
        == sum(len(m.identity.violated_requirements) or 5 for m in own)
        == sum(parts)
        == 5 * len(own) - unnamed
    )
    assert parts[2] == len(result.rows("against-the-paper"))


def test_figures_show_what_the_tables_say(result):
    grid = result.figures["verdicts"].frame()
    row = grid.filter(row="aurc")
    assert dict(row.select("column", "verdict").rows())["R2 paper"] == "broken"
    assert dict(row.select("column", "verdict").rows())["R2 step, weak"] == "holds"
    assert "R1 paper" not in result.figures["other-verdicts"].columns


def test_what_cannot_be_asked():
    with pytest.raises(InputError, match=r"`orders` must be 2 to 10.*got 11"):
        study_requirements(orders=11)
    with pytest.raises(InputError, match="orders"):
        study_requirements(orders=1)
    with pytest.raises(UnknownNameError, match="augcr"):
        study_requirements(metrics=["augcr"])


@pytest.mark.slow
def test_seven_samples_break_no_more_than_five():
    for metric in METRICS.values():
        if not metric.measurement.needs & CLASSES:
            five, seven = (
                [f.holds for f in judge_metric(metric, n).verdicts.values()] for n in (5, 7)
            )
            assert five == seven, metric.name


# ----------------------------------------------------------------------------- from where it was
def test_what_is_decided_is_kept_for_the_same_question(tmp_path):
    asked = {"metrics": ["augrc", "aurc", "ece", "accuracy"], "orders": 4}
    whole = study_requirements(**asked)
    told = []

    def stop(outcome, *_):
        told.append((outcome.job.name, outcome.status))
        if outcome.status == "done" and len(told) > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study_requirements(**asked, out=tmp_path, on_outcome=stop)
    told.clear()
    result = study_requirements(**asked, out=tmp_path, on_outcome=lambda o, *_: told.append(o))
    statuses = [outcome.status for outcome in told if outcome.status != "begun"]
    assert sorted(statuses) == ["done", "kept", "kept"]
    assert str(result.tables) == str(whole.tables)
    assert result.verdict == whole.verdict
    told.clear()
    study_requirements(
        **{**asked, "orders": 3}, out=tmp_path, on_outcome=lambda o, *_: told.append(o)
    )
    assert {outcome.status for outcome in told} == {"begun", "done"}


def test_stored_verdicts_of_earlier_versions_are_read():
    verdict = judge_metric(METRICS["aurc"], 5).verdicts["never worse"]
    stored = _verdict_to_json(verdict)
    assert _verdict_from_json(stored) == verdict
    stored["example"]["why"] = stored["example"].pop("reason")
    assert _verdict_from_json(stored) == verdict
