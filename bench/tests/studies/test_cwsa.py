"""The study of CWSA: its numbers against closed forms, its claims against what they are about."""

import numpy as np
import pytest

import abstain as ab
from abstain import simulate
from abstain.errors import InputError, MissingInputError
from abstain_bench.published import table
from abstain_bench.studies import study_cwsa
from abstain_bench.studies.cwsa.claims import (
    FAILS,
    HOLDS,
    PARTLY,
    Axioms,
    check_sharpening,
    check_values_on_data,
)
from abstain_bench.studies.cwsa.experiments import add_label_noise, sharpening_rows
from abstain_bench.studies.cwsa.models import (
    ProbabilisticPredictions,
    digits,
    models,
    population_ece,
    population_sweep,
)
from abstain_bench.studies.cwsa.printed_numbers import check_printed_numbers

GRID = np.linspace(0.5, 0.99, 20)


@pytest.fixture(scope="module")
def result():
    return study_cwsa(repeats=40)


def claims(result, part):
    return [row for row in result.rows("claims") if part in f"{row['claim']}: {row['reading']}"]


def test_the_five_models_have_the_values_of_their_law(result):
    rows = {row["model"]: row for row in result.rows("models")}
    exact = {
        "calibrated": (0.225, 0.5),
        "overconfident": (0.3, 0.4),
        "underconfident": (0.0, None),
        "perfect": (0.75, 0.75),
        "random": (-1 / 42, 1 / 6),
    }
    for name, values in exact.items():
        row = rows[name]
        assert (row["cwsa"], row["cwsa_plus"]) == pytest.approx(values, abs=1e-12)
        error = row["cwsa_mean_deviation"] / np.sqrt(40)
        assert abs(row["cwsa_mean"] - row["cwsa"]) <= 4 * error + 1e-12
    assert rows["random"]["AURC"] == pytest.approx(2 / 3)
    assert rows["random"]["ECE"] == pytest.approx(0.65 - 1 / 3)


def test_the_ece_of_a_population_is_that_of_a_large_sample():
    for name, law in models().items():
        if name != "perfect, certain":
            sample = law.sample(200_000, rng=2)
            assert population_ece(law) == pytest.approx(ab.ece(*sample, bins=10), abs=0.005), name


def test_results_are_tidy(result):
    frame = result.frame()
    assert frame.columns[:5] == ["experiment", "data", "setting", "threshold", "quantity"]
    sweep = frame.filter(experiment="sweep", data="calibrated", quantity="cwsa")
    np.testing.assert_allclose(sweep["threshold"], GRID)
    law = simulate.make("cwsa-calibrated")
    np.testing.assert_allclose(sweep["expected"], simulate.expected_cwsa(law, GRID))
    experiments = {"sweep", "label-noise", "imbalance", "shift", "sharpening"}
    assert set(frame["experiment"]) == experiments


def test_the_same_seed_gives_the_same(result):
    again = study_cwsa(repeats=40)
    assert again.frame().equals(result.frame())
    assert again.verdict == result.verdict
    other = study_cwsa(repeats=40, rng=1)
    assert not other.frame().equals(result.frame())


def test_label_noise_has_a_law(result):
    rows = [row for row in result.rows("label-noise") if row["data"] == "calibrated"]
    assert [row["expected_cwsa"] for row in rows] == pytest.approx(
        [0.225, 0.18, 0.135, 0.09, 0.045]
    )
    assert all(abs(row["cwsa"] - row["expected_cwsa"]) < 0.05 for row in rows)
    # The law of the labels by brute force.
    law, draw = simulate.make("cwsa-random"), np.random.default_rng(0)
    confidence, loss = law.sample(100_000, rng=draw)
    model, after = (
        ProbabilisticPredictions("", confidence, loss, n_classes=3),
        add_label_noise(law, 0.3, 3),
    )
    named = np.where(loss > 0, draw.integers(1, 3, loss.size), 0)
    false = (draw.random(loss.size) < 0.3) * draw.integers(1, 3, loss.size)
    drawn, exact = (named != false).astype(float), model.with_label_noise(0.3).loss
    assert drawn.mean() == pytest.approx(after.risk, abs=0.006)
    assert exact.mean() == pytest.approx(drawn.mean(), abs=0.006)
    expected = simulate.expected_cwsa(after, 0.6)
    for losses in (drawn, exact):
        assert ab.cwsa(confidence, losses, threshold=0.6) == pytest.approx(expected, abs=0.004)


def test_a_rare_class_hides(result):
    rows = result.rows("imbalance")
    assert [row["share"] for row in rows] == [0.02, 0.05, 0.1, 0.2, 0.4]
    cwsa = [row["cwsa"] for row in rows]
    assert cwsa == sorted(cwsa, reverse=True)
    # What the class itself has, weighed with the rest, is the whole.
    own = rows[0]["cwsa_of_class"]
    rest = [(row["cwsa"] - row["share"] * own) / (1 - row["share"]) for row in rows]
    assert np.ptp(rest) < 1e-12


def test_a_shift_is_of_the_pictures(result):
    rows = result.rows("shift")
    right = [row["accuracy"] for row in rows]
    assert right == sorted(right, reverse=True)
    # The shift changes the confidences themselves.
    assert len({row["mean_confidence"] for row in rows}) == len(rows)


def test_bolder_claims_of_the_same_answers_score_better(result):
    rows = [row for row in result.rows("sharpening") if row["threshold"] == 0.5]
    cwsa = {row["temperature"]: row["cwsa"] for row in rows}
    brier = {row["temperature"]: row["Brier"] for row in rows}
    assert min(cwsa, key=cwsa.get) == 5.0
    honest = min(brier, key=brier.get)
    assert max(cwsa, key=cwsa.get) < honest
    assert "rewards overconfidence" in result.verdict[0]
    (claim,) = claims(result, "better calibrated confidences")
    assert claim["verdict"] == FAILS


def test_of_answers_that_are_mostly_wrong_bolder_claims_score_worse():
    # The other side: the verdict follows from the data.
    law = simulate.block_scores([0.5], [0.95], [1.0], [0.8])
    judged = ProbabilisticPredictions("liar", *law.sample(4000, rng=0))
    rows = sharpening_rows(judged, np.array([0.5, 0.6]))
    best = max(rows[::2], key=lambda row: row["cwsa"])
    assert best["temperature"] == 5.0
    claim = check_sharpening(rows)
    assert claim.verdict != HOLDS or "CWSA+ at 0" in claim.evidence


def test_sharpening_without_logits_keeps_the_order():
    c = np.array([0.6, 0.9, 1.0, 0.2])
    judged = ProbabilisticPredictions("", c, np.zeros(4))
    sharp = judged.scale_confidence(0.5)
    np.testing.assert_allclose(sharp[:2], [0.36 / 0.52, 0.81 / 0.82])
    assert (np.argsort(sharp) == np.argsort(c)).all()
    # Of confidences that round to 1 when they are sharpened, the log-odds keep the order.
    near = ProbabilisticPredictions(
        "", 1 - np.array([0.3, 1e-3, 1e-6, 1e-13, 1e-15, 0.0]), np.zeros(6)
    )
    assert (np.diff(near.scale_log_odds(0.05)) > 0).all()
    assert (near.scale_confidence(0.05) == 1.0).sum() > 1
    np.testing.assert_allclose(judged.scale_confidence(1.0), c)
    logits = np.log([[0.7, 0.2, 0.1]])
    three = ProbabilisticPredictions("", np.array([0.7]), np.zeros(1), logits)
    assert three.scale_confidence(0.5)[0] == pytest.approx(0.49 / 0.54)
    assert three.scale_log_odds(0.5)[0] == pytest.approx(np.log(0.49 / 0.05))


def test_no_temperature_moves_the_rank_metric_of_a_confidence():
    rng = np.random.default_rng(0)
    c = 1 - 10.0 ** -rng.uniform(0.1, 8, 2000)
    judged = ProbabilisticPredictions(
        "", c, (rng.random(c.size) < 3 * (1 - c) ** 0.2 - 0.1).astype(float)
    )
    rows = sharpening_rows(judged, np.array([0.5, 0.6]))
    # Many confidences are 1 in float64 at the lowest temperature; ranked by them, the area moves.
    assert ab.augrc(judged.scale_confidence(0.05), judged.loss) != pytest.approx(rows[0]["AUGRC"])
    assert len({round(row["AUGRC"], 14) for row in rows}) == 1
    assert rows[0]["AUGRC"] == ab.augrc(c, judged.loss)


# ------------------------------------------------------------------------------------- claims
def test_the_axioms_that_hold_hold(result):
    for part in (
        "two accepted correct",
        "never lowers CWSA (tables",
        "lowers CWSA more",
        "Abstention",
    ):
        assert [row["verdict"] for row in claims(result, part)] == [HOLDS], part
    assert [row["verdict"] for row in claims(result, "Normalization")] == [HOLDS]


def test_a_surer_right_answer_lowers_cwsa_plus(result):
    for part in ("(equation: over the accepted)", "never lowers CWSA+"):
        assert [row["verdict"] for row in claims(result, part)] == [FAILS]
    # By hand: the second right answer is accepted at 0.8 with weight 0.
    before = ab.cwsa_plus([0.9, 0.7], [0, 0], threshold=0.8)
    assert ab.cwsa_plus([0.9, 0.8], [0, 0], threshold=0.8) == pytest.approx(before / 2)


def test_claims_without_failures_are_not_decided():
    judged = ProbabilisticPredictions("right", np.linspace(0.4, 1, 50), np.zeros(50))
    verdicts = {claim.claim: claim.verdict for claim in Axioms(judged, GRID).claims()}
    assert {claim.data for claim in Axioms(judged, GRID).claims()} == {"right"}
    assert verdicts["CWSA+ also penalizes overconfident errors"] == "not decided"


def test_what_is_said_of_values_follows_from_them():
    # CWSA that rises: sure and right above, sure and wrong below.
    c = np.concatenate((np.full(50, 0.6), np.full(50, 0.999)))
    loss = np.concatenate((np.ones(50), np.zeros(50)))
    result = {
        claim.claim: claim
        for claim in check_values_on_data(ProbabilisticPredictions("x", c, loss), GRID)
    }
    rising = next(claim for name, claim in result.items() if "increases" in name)
    assert rising.verdict == PARTLY


def test_the_models_are_ranked_by_their_law(result):
    for name, ahead in (("CWSA+", 4), ("CWSA", 0)):
        (row,) = claims(result, f"{name} ranks the calibrated")
        assert f"at {ahead} of 20" in row["evidence"]
        assert row["verdict"] == PARTLY
    laws = models()
    good, bold = (
        population_sweep(laws[n], GRID) for n in ("calibrated", "overconfident, 90% accuracy")
    )
    assert (bold.cwsa > good.cwsa).all()
    assert ab.cwsa_sweep(np.ones(9), np.zeros(9)).auc_mcc() == 0.0
    assert claims(result, "AUC-MCC ranks")[0]["verdict"] == FAILS


# ------------------------------------------------------------------------------ printed numbers
def test_printed_tables_against_their_models(result):
    rows = result.rows("printed")
    assert len(rows) == 27 + 3 * 28
    verdicts = {row["claim"]: row["verdict"] for row in result.rows("claims")}
    for model, expected in (("calibrated", PARTLY), ("overconfident", HOLDS), ("random", HOLDS)):
        assert verdicts[f"The numbers of the table are those of the {model} model"] == expected
    assert (
        verdicts["The rows of the table of the calibrated model are possible for one model"]
        == PARTLY
    )
    assert verdicts["The rows of the table of the random model are possible for one model"] == HOLDS


def test_impossible_rows_are_those_of_the_published_note(result):
    (row,) = claims(result, "rows of the table of the calibrated")
    noted = {f["threshold"] for f in table("cwsa_table_1") if "impossible" in f["note"]}
    assert set(row["evidence"].partition(": ")[2].split(", ")) == noted


def test_a_pair_of_numbers_that_no_threshold_has(result):
    (row,) = claims(result, "at one threshold")
    assert row["verdict"] == FAILS
    law = simulate.uniform_confidence(informed_share=0.9)
    assert simulate.expected_cwsa(law, 0.95) == pytest.approx(0.221, abs=0.01)
    assert simulate.expected_cwsa_plus(law, 0.77) == pytest.approx(0.742, abs=0.03)


def test_a_printed_number_that_is_far_is_named(result):
    rows = [dict(row) for row in result.rows("printed") if row["model"] == "random"]
    first = rows[0] | {"distance_in_sd": 9.0, "printed": 0.7}
    said = [
        claim
        for claim in check_printed_numbers([first, *rows[1:]], models()["overconfident"])
        if "random" in claim.claim
    ]
    assert said[0].verdict == PARTLY
    assert "0.7 instead of" in said[0].evidence


# ------------------------------------------------------------------------------------- inputs
def test_digits_are_the_same_each_time():
    first, second = digits(noise_levels=(0.0, 2.0)), digits(noise_levels=(0.0, 2.0))
    assert [one.name for one in first] == ["digits", "digits, noise 2"]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.confidence, other.confidence)
    assert first[0].accuracy > 0.95 > first[1].accuracy - 0.05


def test_a_file_takes_the_place_of_the_digits():
    rng = np.random.default_rng(0)
    c = rng.random(400)
    p = ab.Predictions(confidence=c, loss=(rng.random(400) > c).astype(float))
    result = study_cwsa({"mine": p}, thresholds=[0.3, 0.6, 0.9], repeats=3)
    assert result.parameters["data"] == ("mine",)
    assert not {"shift", "comparison"} & set(result.tables)
    assert "imbalance" not in result.tables
    sweep = result.frame().filter(experiment="sweep", data="mine", quantity="cwsa_plus")
    direct = ab.cwsa_sweep(c, p.loss, thresholds=[0.3, 0.6, 0.9])
    np.testing.assert_allclose(sweep["value"], direct.cwsa_plus)
    # The printed numbers keep the thresholds of the paper.
    assert len(result.rows("printed")) == 111


def two_models():
    rng = np.random.default_rng(0)
    out = {}
    for name, accuracy in (("worse", 0.6), ("better", 0.95)):
        c = rng.random(300) ** 0.5
        out[name] = ab.Predictions(confidence=c, loss=(rng.random(300) > accuracy).astype(float))
    return out


def test_every_experiment_is_run_on_every_file():
    result = study_cwsa(two_models(), repeats=2)
    for name in ("label-noise", "sharpening", "comparison", "claims"):
        assert {"worse", "better"} <= {row["data"] for row in result.rows(name)}, name
    assert (
        sum(
            "reward overconfidence" in text or "rewards overconfidence" in text
            for text in result.verdict
        )
        == 2
    )
    # Nobody said that one is a shift of the other.
    assert "shift" not in result.tables
    assert not any("From " in text for text in result.verdict)
    (text,) = (text for text in result.verdict if "--reference" in text)
    assert "worse: accuracy" in text
    assert "better: accuracy" in text


def test_a_reference_makes_the_other_files_shifts():
    result = study_cwsa(two_models(), reference="worse", repeats=2)
    assert "comparison" not in result.tables
    assert [row["data"] for row in result.rows("shift")] == ["worse", "better"]
    assert any(text.startswith("From worse to better: accuracy 0.") for text in result.verdict)
    assert {row["data"] for row in result.rows("sharpening")} == {"worse"}
    with pytest.raises(InputError, match=r"no data set is named 'wrse'.*'worse'"):
        study_cwsa(two_models(), reference="wrse", repeats=2)


def test_the_readings_of_a_claim_are_one_claim(result):
    rows = result.rows("claims")
    readings = [row["reading"] for row in rows if row["claim"].startswith("Monotonicity")]
    assert len(set(readings)) == 4
    # Four readings of one axiom, two of another, and 27 claims with one reading.
    assert len(rows) == 33
    assert result.verdict[2].startswith("Of 29 claims, ")


def test_what_it_cannot_study_is_refused():
    with pytest.raises(MissingInputError, match=r"in \[0, 1\]"):
        study_cwsa(ab.Predictions(confidence=[3.0, 0.5], loss=[0.0, 1.0]), repeats=2)
    weighted = ab.Predictions(confidence=[0.3, 0.5], loss=[0.0, 1.0], weight=[1.0, 2.0])
    with pytest.raises(InputError, match="weights"):
        study_cwsa(weighted, repeats=2)
    for thresholds in ([0.5], [0.5, 1.0]):
        with pytest.raises(InputError, match="thresholds"):
            study_cwsa(thresholds=thresholds, repeats=2)
    with pytest.raises(InputError, match="repeats"):
        study_cwsa(repeats=1)
