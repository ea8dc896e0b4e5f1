"""Metrics inside of scripted modules and of wrappers of torchmetrics."""

import numpy as np
import pytest

import abstain as ab

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from torchmetrics.wrappers import Running  # noqa: E402

from abstain.integrations import torchmetrics as tm  # noqa: E402


class Model(torch.nn.Module):
    """A module that holds metrics, as in a training loop."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)
        self.metric = tm.AUGRC()
        self.bounded = tm.SelectiveMetric("augrc", bins=256)
        self.of_logits = tm.SelectiveMetric("augrc", inputs="logits", score="msr")

    def forward(self, x):
        return self.linear(x)


# torch looks at every property of a module, deprecated ones and the value of no samples too.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::abstain.errors.UndefinedMetricWarning")
def test_a_module_that_holds_metrics_is_scripted():
    model = Model()
    scripted = torch.jit.script(model)
    x = torch.ones(4, 2)
    torch.testing.assert_close(scripted(x), model(x))


@pytest.mark.parametrize("options", [{}, {"bins": 4096}])
@pytest.mark.parametrize("method", ["update", "forward"])
def test_a_running_metric_covers_the_last_batches(options, method):
    rng = np.random.default_rng(0)
    batches = [(rng.random(20), rng.integers(0, 2, 20)) for _ in range(5)]
    running = Running(tm.SelectiveMetric("augrc", **options), 3)
    for i, (confidence, loss) in enumerate(batches):
        getattr(running, method)(torch.tensor(confidence), torch.tensor(loss))
        window = batches[max(0, i - 2) : i + 1]
        expected = ab.augrc(*map(np.concatenate, zip(*window, strict=True)))
        assert running.compute().item() == pytest.approx(expected, abs=1e-3 if options else 1e-12)
