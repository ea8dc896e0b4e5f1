"""Inspect itself, where it is installed: it finds scorer and metrics by name, here and in a new process.

Run for real with inspect_ai 0.3.285.
"""

import subprocess
import sys

import numpy as np
import pytest
from tests.peers import import_peer

import abstain as ab

inspect_ai = import_peer("inspect_ai")
pytestmark = pytest.mark.peers

LOGPROBS = -np.random.default_rng(0).random(20)
RIGHT = np.random.default_rng(1).random(20) < 0.6


def said(count):
    """Answers of a model that is not asked, with log-probabilities of two tokens each."""
    from inspect_ai.model import Logprob, Logprobs, ModelOutput, ModelUsage

    for i in range(count):
        answer = ModelOutput.from_content("mockllm", str(i + 1 if RIGHT[i] else 99))
        tokens = [Logprob(token="x", logprob=float(x)) for x in (LOGPROBS[i], 0.0)]
        answer.choices[0].logprobs = Logprobs(content=tokens)
        # Else it asks a server for the tokenizer that counts them.
        answer.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        yield answer


@pytest.fixture
def log(tmp_path):
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.util import registry_create

    task = Task(
        dataset=[Sample(input=f"{i} + 1", target=str(i + 1)) for i in range(20)],
        scorer=registry_create("scorer", "abstain/confident", confidence="least_logprob"),
        metrics=[
            registry_create("metric", f"abstain/{name}")
            for name in ("augrc", "selective_risk_at_80cov")
        ],
        name="sums",
    )
    model = get_model("mockllm/model", custom_outputs=list(said(20)))
    [done] = inspect_ai.eval(
        task, model=model, log_dir=str(tmp_path), display="none", max_connections=1, max_samples=1
    )
    assert done.status == "success", done.error
    return done


@pytest.mark.filterwarnings("ignore")
def test_a_task_names_the_scorer_and_metrics(log):
    [score] = log.results.scores
    assert {name: m.value for name, m in score.metrics.items()} == pytest.approx(
        {
            "augrc": ab.augrc(LOGPROBS, ~RIGHT),
            "selective_risk_at_80cov": ab.selective_risk(LOGPROBS, ~RIGHT, coverage=0.8),
        }
    )
    assert [m.name for m in log.eval.metrics] == [
        "abstain/augrc",
        "abstain/selective_risk_at_80cov",
    ]
    read = ab.read_predictions(log.location, correct="confident")[()]
    assert read.confidence["confident.confidence"] == pytest.approx(LOGPROBS)


@pytest.mark.filterwarnings("ignore")
def test_a_new_process_scores_a_log_again_by_name(log, tmp_path):
    done = subprocess.run(
        [
            sys.executable, "-m", "inspect_ai", "score", log.location, "--display", "none",
            "--scorer", "abstain/confident", "-S", "inner=includes",
            "--action", "append", "--output-file", str(tmp_path / "again.eval"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    from inspect_ai.log import read_eval_log

    first, again = read_eval_log(str(tmp_path / "again.eval")).results.scores
    assert again.name == "confident1"
    assert {"accuracy", "coverage_at_5risk"} <= again.metrics.keys()
    # The mean over two tokens, of which one is certain, has the order of the least.
    assert again.metrics["augrc"].value == pytest.approx(first.metrics["augrc"].value)
