"""The examples of CONTRIBUTING.md run: each entry is registered, used once and removed."""

import doctest
import re
from contextlib import contextmanager
from itertools import chain

import numpy as np
import pytest
from tests.docs.blocks import ROOT, blocks, run_python

import abstain as ab
from abstain.confidence import SCORES, score
from abstain.metrics import METRICS
from abstain.report import html_report
from abstain.report.subjects.evaluation import document
from abstain.simulate import POPULATIONS
from abstain.thresholds import RULES

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FINDER = doctest.DocTestFinder()
CONFIDENCE, LOSS = [0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1]


def run_recipe(title, index=0, **names):
    """Run a Python block of a section and return its names."""
    section = re.split(r"^##", PAGE.partition(f"\n### {title}\n")[2], flags=re.MULTILINE)[0]
    code = [block.code for block in blocks(section) if block.language == "python"][index]
    names |= {"__name__": "recipe"}
    run_python(code, names)
    return names


@contextmanager
def registered(catalogue, entry, names):
    """Register an entry, run the docstring examples of its recipe, and remove it."""
    catalogue.add(entry)
    try:
        for name, item in names.items():
            if getattr(item, "__module__", "") == "recipe":
                for example in FINDER.find(item, name, module=False, globs=names):
                    assert doctest.DocTestRunner().run(example).failed == 0
        yield entry.name
    finally:
        del catalogue._entries[entry.name]


def test_metric():
    names = run_recipe("A metric")
    with registered(METRICS, *names["ENTRIES"], names) as name:
        samples = ab.Predictions(confidence=CONFIDENCE, loss=LOSS)
        value = ab.evaluate(samples, metrics=[name]).value(name)
    assert value == names["relative_augrc"](CONFIDENCE, LOSS)


def test_score():
    names, logits = run_recipe("A score"), [[2.0, 5.0], [1.0, 0.0]]
    with registered(SCORES, names["MEAN_GAP"], names) as name:
        values = score(name, ab.Predictions(logits=logits, labels=[0, 0])).values
    np.testing.assert_array_equal(values, names["mean_gap"](logits))


def test_rule():
    names = run_recipe("A rule")
    with registered(RULES, *names["ENTRIES"], names) as name:
        rule = ab.thresholds.fit(name, CONFIDENCE, LOSS, max_risk=0.8)
        assert rule == names["half_risk"](CONFIDENCE, LOSS, max_risk=0.8)


def test_section(monkeypatch):
    section, sections = run_recipe("A section of a report")["ties_section"], document._sections
    monkeypatch.setattr(
        document, "_sections", lambda lookup, _: chain([section(lookup)], sections(lookup, _))
    )
    page = html_report(ab.evaluate(ab.Predictions(confidence=CONFIDENCE, loss=LOSS)))
    assert '<section id="ties"' in page


def test_study():
    studies = pytest.importorskip("abstain_bench.studies")
    names = run_recipe("A study")
    with registered(studies.STUDIES, names["AUGRC_TERMS"], names) as name:
        (conclusion,) = studies.STUDIES[name].run().verdict
    assert "3 of 3 error rates" in conclusion


def test_population():
    names = run_recipe("A population")
    with registered(POPULATIONS, names["WAVE"], names) as name:
        population = ab.simulate.make(name, risk=0.2)
    assert population.risk == pytest.approx(0.2)
    assert population.sample(1000, rng=0).loss.mean() == pytest.approx(0.2, abs=0.05)


def test_objective():
    torch = pytest.importorskip("torch")
    from abstain import training

    names = run_recipe("A training objective")
    with registered(training.OBJECTIVES, names["LABEL_SMOOTHING"], names) as name:
        objective = training.make(name, smoothing=0.0)
    output = training.Output(logits=torch.zeros(1, 2), features=torch.zeros(1, 4))
    assert objective(output, torch.tensor([0])).item() == pytest.approx(np.log(2))


def test_task():
    pytest.importorskip("sklearn")
    embedded = pytest.importorskip("abstain_bench.runs.tasks.embedded")
    names = run_recipe("A task of the benchmark", **vars(embedded))
    assert names["FEW_DIGITS"].load_images(None).train.n == 300


def test_data_set(tmp_path):
    mnist = pytest.importorskip("abstain_bench.data.published.mnist")
    tasks = pytest.importorskip("abstain_bench.runs.tasks.published")
    entry = run_recipe("A data set", **vars(mnist))["KUZUSHIJI"]
    # The reader looks up the download of its data set.
    with pytest.raises(ab.errors.UnknownNameError, match="named 'kuzushiji-mnist'"):
        entry.load(tmp_path, None)
    run_recipe("A data set", index=1, **vars(tasks))


def test_named_tests_exist():
    paths = re.findall(r"`((?:bench/)?tests/[\w/.]+)`", PAGE)
    assert [path for path in paths if not (ROOT / path).exists()] == []
