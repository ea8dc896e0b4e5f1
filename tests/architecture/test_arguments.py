"""An option of `compare` is checked at the edge and read where it is needed, not handed around."""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
from tests.architecture.source import ROOT

import abstain as ab

# More than this and nobody can follow it by hand.
MOST_FILES = 15

# Values that nothing else in a comparison has, by option.
OPTIONS = {
    "level": 0.9371,
    "rng": 918273,
    "bootstrap": 211,
    "margin": 0.01234,
    "adjustment": "bonferroni",
    "runs": "seed",
    "test": "influence",
}


def files_by_option(call: Callable[[], object], options: Mapping[str, object]) -> dict[str, set]:
    """The files with a function in which the value of an option is a variable by itself.

    A record that holds it is no such variable: who reads one field of it is not bothered by the
    others.
    """
    inside, result = f"{ROOT / 'src' / 'abstain'}/", defaultdict(set)

    def look(frame, event, _):
        file = frame.f_code.co_filename
        if event not in {"call", "return"} or not file.startswith(inside):
            return
        plain = [x for x in frame.f_locals.values() if isinstance(x, (str, float, int))]
        for name, value in options.items():
            if any(type(x) is type(value) and x == value for x in plain):
                result[name].add(file.removeprefix(inside))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return result


def made_up(seed: int) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=120)
    logits = rng.normal(size=(120, 3)) + 1.5 * np.eye(3)[labels]
    return ab.Predictions(logits=logits, labels=labels, group=np.arange(120) // 2)


def test_an_option_of_compare_passes_through_few_files():
    data = {
        (("study", study), ("seed", seed)): made_up(ord(study) + int(seed))
        for study in "ab"
        for seed in "12"
    }
    metrics = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov")
    result = files_by_option(
        lambda: ab.compare(
            data,
            scores=["msr", "mls", "pe"],
            metrics=metrics,
            clustered=True,
            reference="msr",
            **OPTIONS,
        ),
        OPTIONS,
    )
    assert result.keys() == OPTIONS.keys()
    assert {name: files for name, files in result.items() if len(files) > MOST_FILES} == {}
