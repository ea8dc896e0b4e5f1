"""The page and the terminal text of a decision rule: complete, safe, made of its numbers."""

import csv
import re

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from tests.report import page_rules as rules
from tests.report.pages import HOSTILE, Page, steering

import abstain as ab
from abstain.errors import InputError
from abstain.evaluation import check_rule, set_threshold
from abstain.plots import RiskExcessDisplay
from abstain.report import (
    threshold_html,
    threshold_terminal,
    write_rule_figures,
    write_threshold,
)
from abstain.report.subjects.rule.sentences import format_verdict
from abstain.thresholds import RULES, DecisionRule, check, sgr


def made(seed: int, n: int = 800, *, hard: float = 0.0, name: str = "own") -> ab.Predictions:
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1, n)
    wrong = rng.random(n) < np.clip((1 - confidence) ** 1.3 + hard, 0, 1)
    return ab.Predictions(confidence={name: confidence}, loss=wrong)


CALIBRATION = made(0, 1500)
PARTS = {"iid": made(9), "noise_1": made(1, hard=0.02), "noise_2": made(2, hard=0.2)}


def plain():
    return check_rule(
        set_threshold(CALIBRATION, max_risk=0.1, delta=0.05), PARTS, calibration=CALIBRATION
    )


def hostile():
    calibration = made(0, 1500, name=HOSTILE[0])
    rule = set_threshold(calibration, max_risk=0.1, delta=0.05)
    parts = {name: made(i, name=HOSTILE[0]) for i, name in enumerate(HOSTILE)}
    return check_rule(rule, parts, calibration=calibration, notes=HOSTILE)


def unattainable():
    rule = set_threshold(CALIBRATION, max_risk=0.0005, delta=0.05)
    return check_rule(rule, PARTS, calibration=CALIBRATION)


def unlabeled():
    rule = set_threshold(CALIBRATION, method="coverage_guarantee", coverage=0.5, delta=0.05)
    return check_rule(rule, {"new": PARTS["iid"].confidence["own"]})


def grouped():
    rng = np.random.default_rng(5)
    n = 6000
    group = np.where(rng.random(n) < 0.1, HOSTILE[0], "common")
    wrong = rng.random(n) < np.where(group == "common", 0.01, 0.3)
    confidence = rng.beta(3, 1, n)
    p = ab.Predictions(confidence={"own": confidence}, loss=wrong, group=group)
    rule = set_threshold(CALIBRATION, max_risk=0.1, delta=0.05)
    return check_rule(rule, {"later": p, "plain": PARTS["iid"]}, calibration=CALIBRATION)


def crowded():
    rng = np.random.default_rng(6)
    p = ab.Predictions(
        confidence={"own": rng.beta(3, 1, 4000)},
        loss=rng.random(4000) < 0.05,
        group=[f"ward {i}" for i in rng.integers(0, 70, 4000)],
    )
    return check_rule(set_threshold(CALIBRATION, max_risk=0.1, delta=0.05), {"later": p})


def in_groups(seed):
    rng = np.random.default_rng(seed)
    n = 3000
    group = rng.choice([*HOSTILE[:2], "few"], n, p=[0.6, 0.39, 0.01])
    confidence = rng.beta(3, 1, n)
    wrong = rng.random(n) < np.where(group == HOSTILE[0], 0.5, 0.3) * (1 - confidence)
    return ab.Predictions(confidence={"own": confidence}, loss=wrong, group=group)


def by_group():
    calibration = in_groups(1)
    rule = set_threshold(calibration, per="group", joint=True, max_risk=0.1, delta=0.05)
    return check_rule(rule, {"later": in_groups(2)}, calibration=calibration)


def limited():
    calibration = in_groups(1)
    limits = {"overall": 0.1, f"group:{HOSTILE[0]}": 0.15, "group:few": 0.9}
    rule = set_threshold(calibration, limits=limits, delta=0.05)
    return check_rule(rule, {"later": in_groups(2)}, calibration=calibration)


def in_groups_with_labels(seed):
    p = in_groups(seed)
    labels = np.random.default_rng(seed).choice(HOSTILE[:2], p.n)
    other = {HOSTILE[0]: HOSTILE[1], HOSTILE[1]: HOSTILE[0]}
    prediction = np.where(p.loss == 1, [other[name] for name in labels], labels)
    data = {"labels": labels, "prediction": prediction, "confidence": p.confidence}
    return ab.Predictions(**data, group=p.group)


def limited_by_group():
    calibration = in_groups_with_labels(1)
    limits = {f"label:{HOSTILE[0]}": 0.2}
    rule = set_threshold(calibration, per="group", max_risk=0.1, limits=limits, delta=0.05)
    return check_rule(rule, {"later": in_groups_with_labels(2)}, calibration=calibration)


CASES = {
    "by group": by_group,
    "limited by group": limited_by_group,
    "limited": limited,
    "plain": plain,
    "grouped": grouped,
    "crowded": crowded,
    "hostile": hostile,
    "unattainable": unattainable,
    "unlabeled": unlabeled,
    "given": lambda: check_rule(DecisionRule("given", 0.5), {}),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request):
    checks = CASES[request.param]()
    text = threshold_html(
        checks, title=HOSTILE[0], source=HOSTILE[2], notes=HOSTILE, command=HOSTILE[1]
    )
    return checks, Page(text)


@pytest.fixture(scope="module")
def page(pair):
    return pair[1]


def test_ids_are_unique_and_references_have_targets(page):
    rules.references_have_targets(page)


def test_nothing_is_loaded_or_run(page):
    rules.nothing_is_loaded(page)


def test_no_attack_is_evaluated_or_steers(page):
    rules.no_attack_is_evaluated_or_steers(page)


def test_tables_are_captioned_and_headings_in_order(page):
    rules.headings_are_in_order(page)


_NUMBERS = ("n", "accepted", "coverage", "selective_risk", "generalized_risk", "excess")


def test_every_number_is_there(pair):
    checks, page = pair
    exact = {a["value"] for a in page.of("data")}
    parts = [part.rule for part in getattr(checks.rule, "parts", ())]
    of_parts = [x for r in parts for x in (r.n, r.coverage, r.risk) if x is not None]
    shares = [
        x.value
        for outcome in checks.all_outcomes()
        for x in (outcome.answered, outcome.wrong, outcome.wrong_of_all)
        if x.total
    ]
    apart = [x for most in checks.disparities() for x in (most.difference, most.ratio)]
    wanted = [
        repr(row[name] if name in _NUMBERS[:2] else float(row[name]))
        for row in checks.rows()
        for name in _NUMBERS
        if not np.isnan(row[name])
    ]
    assert {*map(repr, of_parts), *wanted, *map(repr, apart), *map(repr, shares)} <= exact


def test_figures_follow_the_colors_of_the_page():
    page = Page(threshold_html(plain()))
    inside = [a.get("style", "") for tag, a in page.elements if tag in {"path", "text", "use"}]
    assert any("var(--ink)" in style for style in inside)
    assert not [style for style in inside if re.search(r"#[0-9a-f]{6}", style)]


def terminal(checks, width: int = 100) -> str:
    console = Console(width=width)
    with console.capture() as printed:
        console.print(threshold_terminal(checks))
    return printed.get()


def test_groups_without_a_threshold_are_named():
    checks = by_group()
    text = terminal(checks)
    assert "2 of 3 groups have a threshold; the rule abstains on all samples of few." in text
    assert "for all groups jointly" in " ".join(text.split())
    assert re.search(r"few +no threshold +0 of \d+", text)
    promised = terminal(limited())
    assert "at most 10% of the answers are wrong; for group" in promised.replace("\n", "")


def test_page_and_terminal_agree_with_the_library():
    confidence, wrong = CALIBRATION.confidence["own"], CALIBRATION.loss
    rule = sgr(confidence, wrong, max_risk=0.1, delta=0.05)
    page = threshold_html(plain())
    text, printed = " ".join("".join(Page(page).text).split()), terminal(plain())
    for said in (text, " ".join(printed.split())):
        condition = plain().condition_of("")
        assert f"Answer if \u201cown\u201d \u2265 {condition.threshold}" in said
        assert "Guarantee: at most 10% of the answers are wrong" in said
        assert "with a probability of at least 95% over calibration sets" in said
        assert f"Expected coverage on such data: about {100 * rule.coverage:.3g}%" in said
        assert f"{rule.failures} of them wrong" in said
        for name, part in PARTS.items():
            found = check(rule, part.confidence["own"], part.loss, name=name)
            assert f"{found.accepted} of {found.n}" in said
            assert f"({100 * found.selective_risk:.1f}%)" in said
            assert format_verdict(found.verdict) in said
    assert rule.for_score("own", scale="probability").to_json() in "".join(Page(page).text)


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_terminal_keeps_its_width(width):
    cases = (plain, hostile, unattainable, unlabeled, grouped, crowded, limited, limited_by_group)
    for case in cases:
        printed = terminal(case(), width)
        assert max(map(len, printed.splitlines())) <= width
        assert not steering(printed)


def test_each_method_says_what_it_promises():
    options = {"max_risk": 0.1, "delta": 0.05, "coverage": 0.5, "abstention_cost": 0.2}
    promised = {}
    for name, method in RULES.items():
        given = {option: options[option] for option in method.required}
        checks = check_rule(set_threshold(CALIBRATION, method=name, **given), {})
        promised[name] = " ".join(terminal(checks).split())
        assert method.title in promised[name]
    for name in ("coverage", "risk", "cost"):
        assert "no guarantee" in promised[name] or "Nothing is guaranteed" in promised[name]
    assert "probability of an error is at most 0.2" in promised["chow"]
    assert "on average over calibration sets" in promised["conformal_risk_control"]
    assert "at most 10% of all samples are answered wrongly" in promised["conformal_risk_control"]
    assert "at least 50% of the samples are answered" in promised["coverage_guarantee"]
    assert "at least 95% over calibration sets" in promised["learn_then_test"]


def test_graded_losses_are_no_shares_of_wrong_answers():
    graded = (1 - CALIBRATION.confidence["own"]) / 2
    rule = set_threshold(
        CALIBRATION, loss=graded, method="learn_then_test", max_risk=0.1, delta=0.05
    )
    said = terminal(check_rule(rule, CALIBRATION, loss=graded, calibration=CALIBRATION))
    assert "wrong" not in said
    assert "the mean loss of the answers is at most 0.1000" in " ".join(said.split())


def test_unattainable_says_why_and_what_would_help():
    said = " ".join(terminal(unattainable()).split())
    assert said.startswith(
        "Unattainable: no threshold could be certified to guarantee that at most 0.05%"
    )
    # Some of the samples are wrong, so further samples cannot make the smallest test pass.
    assert "more" not in said.split("Options for a threshold")[1].split("Note:")[0]
    assert "no option found" in said
    assert "Possible remedies: more calibration data" in said
    page = threshold_html(unattainable())
    assert "it rejects all samples" in page
    assert "tables.load" not in page


def test_figures_as_files_with_their_tables(tmp_path):
    left = write_rule_figures(hostile(), tmp_path / "figures", formats=["svg", "png"])
    assert [path.name for path in left] == [
        f"{name}.{kind}"
        for name in ("decision-rule", "risk-excess")
        for kind in ("svg", "png", "csv")
    ]
    with (tmp_path / "figures" / "risk-excess.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["excess"]) for row in rows] == [c.excess for c in hostile().checks]
    assert not [row for row in rows if row["name"].startswith(("=", "+", "-", "@"))]
    with pytest.raises(InputError, match="`formats`"):
        write_rule_figures(plain(), tmp_path, formats=["gif"])


def test_the_page_as_a_file(tmp_path):
    path = write_threshold(plain(), tmp_path / "report.html", command="abstain threshold")
    assert path.read_text(encoding="utf-8") == threshold_html(plain(), command="abstain threshold")
    for function in (threshold_html, threshold_terminal):
        with pytest.raises(InputError, match="`checks`"):
            function(CALIBRATION)


def test_limits_are_rows_below_their_group():
    checks = limited_by_group()
    printed = terminal(checks, 80)
    results, errors = printed.split("Errors among the answers; positive class")
    assert "Sensitivity" not in results
    assert "Sensitivity" in errors
    # A group without a threshold has no row for its limit.
    (row,) = [line for line in results.splitlines() if line.startswith("few")]
    assert " 0 of 30 " in row
    page = threshold_html(checks)
    assert "All limits hold jointly in each group with a probability of at least 95%" in page
    n_limits = sum(bool(check.limit) and check.rule.attainable for check in checks.groups[0])
    first_table = page[page.index("<table") : page.index("</table>")]
    assert first_table.count('<tr class="group">') == n_limits == 2


def test_groups_are_rows_and_the_whole_says_what_it_owes_them():
    printed = terminal(grouped())
    text = " ".join("".join(Page(threshold_html(grouped())).text).split())
    for said in (" ".join(printed.split()), text):
        assert "The guarantee holds overall but is violated in a group" in said
        assert "The target is broken in 1 of 2 groups" in said
        assert "The target of the rule holds only if it also holds in each group" in said
    lines = [line.split()[0] for line in printed.splitlines() if "violated" in line and "[" in line]
    assert lines[0] == HOSTILE[0].split()[0]
    assert len([line for line in printed.splitlines() if line.startswith("  common")]) == 1
    # Very many: the worst are printed, all are on the page.
    printed = terminal(crowded())
    assert sum(line.startswith("ward") for line in printed.splitlines()) == 20
    assert "50 groups with a lower excess are omitted" in printed
    page = threshold_html(crowded())
    assert page.count('<tr class="group">') == 70
    assert all(f">ward {i}</th>" in page for i in range(70))


def test_a_number_has_one_verdict_on_the_page():
    checks = grouped()
    check = next(c for c in checks.checks if c.excess_verdict != c.verdict)
    assert (check.excess_verdict, check.verdict) == ("holds", "broken")
    rows = RiskExcessDisplay.from_checks(checks).frame().filter(pl.col("name") == check.name)
    assert rows["verdict"].to_list() == ["holds"]
    text = " ".join("".join(Page(threshold_html(checks)).text).split())
    assert "total: \u25cf holds; all groups: \u2716 violated because of" in text
    for line in terminal(checks).splitlines():
        if line.startswith(f"{check.name} "):
            assert "violated" not in line


def test_the_review_record_names_the_positive_class_and_the_software():
    page = Page(threshold_html(limited_by_group(), command="abstain threshold calibration.csv"))
    text = " ".join("".join(page.text).split())
    record = text[text.index("To be completed by the reviewer") :]
    assert "answered samples of class" in record
    assert "are false negatives" in record
    assert f"Softwareabstain {ab.__version__}" in record
    assert "Commandabstain threshold calibration.csv" in record


def test_both_scales_are_on_the_page_and_in_the_terminal():
    rule = DecisionRule("given", 2.0, score="msr", scale="log-odds")
    checks = check_rule(rule, {})
    text = " ".join("".join(Page(threshold_html(checks)).text).split())
    for said in (" ".join(terminal(checks).split()), text):
        assert "Answer if p \u2265 0.8808;" in said
    assert "Threshold as probability" in text
    assert "0.880797078" in text
    old = check_rule(DecisionRule("given", 2.0, score="msr"), {})
    assert "on a scale that is not recorded" in " ".join(terminal(old).split())
