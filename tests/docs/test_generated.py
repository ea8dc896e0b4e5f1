"""The generated parts of the pages are current, and the functions they name give the numbers."""

import importlib.util
import math

import numpy as np
import pytest
from tests.docs.blocks import ROOT

import abstain as ab
from abstain.confidence import SCORES, score
from abstain.metrics import METRICS, Need


def _load():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _load()


@pytest.mark.parametrize("page", sorted({page for page, _, _ in generate.BLOCKS}))
def test_the_committed_page_is_current(page):
    pages = generate.read_pages()
    assert generate.current(pages)[page] == pages[page], "run `python docs/generate.py`"


def test_the_committed_pages_of_commands_are_current():
    pages = {name: text for name, text in generate.read_pages().items() if name.startswith("cli/")}
    assert generate.command_pages() == pages, "run `python docs/generate.py`"


def test_a_page_without_its_block_raises_an_error():
    with pytest.raises(ValueError, match="must have one block"):
        generate.current(dict.fromkeys(generate.read_pages(), ""))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    labels = rng.integers(2, size=60)
    samples = rng.normal(size=(60, 5, 2)) + np.eye(2)[labels][:, None]
    return {"labels": labels, "logits": samples.mean(axis=1), "logit_samples": samples}


@pytest.mark.parametrize("name", METRICS)
def test_the_function_of_a_metric_gives_its_number(name, data):
    labels, own = data["labels"], {}
    if Need.UNKNOWN_CLASSES in METRICS[name].measurement.needs:
        labels, own = np.where(np.arange(60) % 4 == 0, -1, labels), {"unknown_label": -1}
    p = ab.Predictions(logits=data["logits"], labels=labels, **own)
    own = score("msr", p)
    names = {
        **{n: getattr(ab.metrics, n) for n in ab.metrics.__all__},
        "confidence": own.probability,
        "loss": ab.per_sample_loss(p),
        "labels": labels,
        "unknown": labels < 0,
        "prediction": p.prediction_codes,
        "probabilities": np.exp(p.class_scores.log_probabilities()),
    }
    value = eval(METRICS[name].identity.function, names)
    expected = ab.evaluate(p, scores=["msr"], metrics=[name]).value(name)
    assert not math.isnan(expected)
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_the_function_of_a_score_gives_its_numbers(name, data):
    p = ab.Predictions(**data)
    names = {n: getattr(ab.confidence, n) for n in ab.confidence.__all__}
    values = eval(SCORES[name].function, names, data)
    np.testing.assert_array_equal(values, score(name, p).values)


def test_the_conversions_are_exact():
    rows = [line.split("|") for line in generate.conversions_table().splitlines()[2:]]
    assert len(rows) == 8
    assert all(row[2].strip() == row[4].strip() for row in rows)
