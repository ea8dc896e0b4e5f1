"""From the predictions of the finished jobs to tables: values by seed, paired differences."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.files import write_atomically
from abstain._foundation.lazy_imports import special
from abstain.confidence.registry import BASELINE
from abstain.evaluation import compare, evaluate
from abstain.evaluation.comparison import PairedDifference
from abstain.inference.multiplicity import adjust
from abstain.metrics import METRICS
from abstain.metrics.areas.augrc import AUGRC, CLASSIFIER_TERM, RANKING_TERM
from abstain.metrics.areas.aurc import PLUG_IN
from abstain.metrics.classifier import ACCURACY, NLL
from abstain.predictions import Predictions
from abstain.tables import read_predictions
from abstain.typing import Array, Split
from abstain_bench.runs.jobs import Job


@dataclass(frozen=True)
class Measure:
    """What models are compared by: a metric under a loss, and how it is said."""

    loss: str
    metric: str
    words: str
    #: The names of its figure and of its column; without one, it is in files alone.
    figure: str = ""
    column: str = ""


MEASURES = (
    Measure("zero_one", PLUG_IN.name, "AURC", "aurc", "AURC_x1000"),
    Measure("zero_one", AUGRC.name, "AUGRC", "augrc", "AUGRC_x1000"),
    Measure("zero_one", RANKING_TERM.name, "AUGRC, part of the ranking", "augrc-ranking"),
    Measure("zero_one", CLASSIFIER_TERM.name, "AUGRC, part of the classifier", "augrc-classifier"),
    Measure(
        "cross_entropy",
        PLUG_IN.name,
        "AURC of the cross-entropy",
        "aurc-cross-entropy",
        "AURC_of_CE_x1000",
    ),
    Measure("cross_entropy", AUGRC.name, "AUGRC of the cross-entropy"),
)
#: The metrics under each loss.
_METRICS = {
    loss: [m.metric for m in MEASURES if m.loss == loss] for loss in ("zero_one", "cross_entropy")
}
#: Told for each model, not compared.
_TOLD = (ACCURACY.name, NLL.name)

#: The file of all test predictions.
TOGETHER = "predictions.npz"

#: From objective and seed to what the model says of the test data.
Finals = Mapping[tuple[str, int], Predictions]


def predictions_of(jobs: Mapping[tuple[str, int], Job], folder: Path) -> dict[Any, Predictions]:
    """Read the test predictions of finished jobs."""
    return {key: read_predictions(job.place(folder, ".npz")).only() for key, job in jobs.items()}


def archive(parts: Sequence[Predictions], **more: Sequence[Any]) -> bytes:
    """Return predictions as one archive; `more` has a column with one value for each part."""
    columns: dict[str, Any] = {"logits": np.concatenate([p.logits for p in parts])}
    for name in ("labels", "ids", "group"):
        columns[name] = np.concatenate([_plain(getattr(p, name)) for p in parts])
    for name, own in more.items():
        columns[name] = np.concatenate([np.repeat(x, p.n) for x, p in zip(own, parts, strict=True)])
    content = io.BytesIO()
    np.savez_compressed(content, **columns)
    return content.getvalue()


def write_together(finals: Finals, path: Path) -> Path:
    """Write all predictions as one archive that `abstain compare` splits by objective and seed."""
    names, seeds = zip(*finals, strict=True)
    content = archive(list(finals.values()), objective=names, seed=[str(seed) for seed in seeds])
    write_atomically(path, content)
    return path


def _plain(names: Any) -> Array:
    """Return names as an array of numbers or text: one of objects would be written as pickles."""
    out = np.asarray(names)
    return out.astype(str) if out.dtype.kind == "O" else out


def values(finals: Finals) -> list[dict[str, Any]]:
    """Return each metric of each model as a row."""
    rows: list[dict[str, Any]] = []
    for (name, seed), part in finals.items():
        for loss, metrics in _METRICS.items():
            wanted = [*metrics, *(_TOLD if loss == "zero_one" else ())]
            told = evaluate(part, scores=[BASELINE], metrics=wanted, loss=loss, interval="none")
            rows += [
                {
                    "objective": name,
                    "seed": seed,
                    "loss": loss,
                    "metric": result.metric.name,
                    "value": result.value,
                }
                for result in told.results
            ]
    return rows


def by_seed(rows: Sequence[Mapping[str, Any]], loss: str, metric: str) -> dict[str, list[float]]:
    """Return one metric of each objective, seed by seed."""
    out: dict[str, list[float]] = {}
    for row in rows:
        if row["loss"] == loss and row["metric"] == metric:
            out.setdefault(row["objective"], []).append(row["value"])
    return out


@dataclass(frozen=True)
class Against:
    """One objective minus the reference on the same test samples, averaged over the seeds."""

    objective: str
    loss: str
    metric: str
    #: Of both the mean over the seeds.
    value: float
    reference: float
    #: Paired; the interval speaks of these models on new samples.
    difference: float
    difference_low: float
    difference_high: float
    #: The interval that also speaks of new seeds, never the narrower one; NaN with one seed.
    wide_low: float
    wide_high: float
    #: Of the difference on new samples; adjusted by Holm for the objectives compared.
    p_value: float
    adjusted: float
    better_seeds: int
    seeds: int
    lower_is_better: bool

    @property
    def measure(self) -> Measure:
        """What it is compared by."""
        return next(m for m in MEASURES if (m.loss, m.metric) == (self.loss, self.metric))

    @property
    def verdict(self) -> str:
        """Return "better", "worse" or "open": what the interval for new samples says."""
        sign = 1 if self.lower_is_better else -1
        low, high = sorted((sign * self.difference_low, sign * self.difference_high))
        return "better" if high < 0 else "worse" if low > 0 else "open"

    @property
    def wide_open(self) -> bool:
        """Whether the interval that counts seeds reaches zero."""
        return self.wide_low <= 0 <= self.wide_high

    @property
    def relative(self) -> float:
        """The difference as a share of the reference."""
        return self.difference / self.reference if self.reference else math.nan


def differences(
    finals: Finals, rows: Sequence[Mapping[str, Any]], reference: str, *, clustered: bool
) -> list[Against]:
    """Compare every objective with the reference, by every metric under every loss."""
    data: dict[Split, Predictions] = {
        (("objective", name), ("seed", str(seed))): part for (name, seed), part in finals.items()
    }
    several = len({seed for _, seed in finals}) > 1
    if not several:
        data = {(split[0],): part for split, part in data.items()}
    found: list[Against] = []
    for loss, metrics in _METRICS.items():
        told = compare(
            data,
            scores=[BASELINE],
            metrics=metrics,
            loss=loss,
            methods="objective",
            runs="seed" if several else None,
            clustered=clustered,
            adjustment="none",
        )
        for metric in metrics:
            pairs = [
                p
                for p in told.pairs
                if p.metric == metric and p.data is not None and reference in {p.first, p.second}
            ]
            found += _family(
                [_turned(p, reference) for p in pairs], loss, by_seed(rows, loss, metric)
            )
    return found


def _turned(pair: PairedDifference, reference: str) -> dict[str, Any]:
    """Return a pair as another method minus the reference."""
    ahead = pair.second == reference
    return {
        "objective": pair.first if ahead else pair.second,
        "reference": reference,
        "metric": pair.metric,
        "difference": pair.difference if ahead else -pair.difference,
        "low": pair.low if ahead else -pair.high,
        "high": pair.high if ahead else -pair.low,
        "error": pair.standard_error,
        "p_value": pair.p_value,
    }


def _family(
    pairs: Sequence[Mapping[str, Any]], loss: str, own: Mapping[str, Sequence[float]]
) -> list[Against]:
    """Complete the pairs of one metric, whose p-values are adjusted together."""
    adjusted = adjust([pair["p_value"] for pair in pairs])
    return [_against(pair, float(p), loss, own) for pair, p in zip(pairs, adjusted, strict=True)]


def _against(
    pair: Mapping[str, Any], adjusted: float, loss: str, own: Mapping[str, Sequence[float]]
) -> Against:
    theirs, mine = np.array(own[pair["reference"]]), np.array(own[pair["objective"]])
    apart = mine - theirs
    low, high = new_seeds_interval(pair["difference"], pair["error"], apart.tolist())
    lower = METRICS[pair["metric"]].lower_is_better
    return Against(
        objective=pair["objective"],
        loss=loss,
        metric=pair["metric"],
        value=float(mine.mean()),
        reference=float(theirs.mean()),
        difference=pair["difference"],
        difference_low=pair["low"],
        difference_high=pair["high"],
        # The interval for new samples alone allows for few failures and heavy tails, which the
        # sum of variances does not; what speaks of more cannot be narrower.
        wide_low=float(np.minimum(low, pair["low"])),
        wide_high=float(np.maximum(high, pair["high"])),
        p_value=pair["p_value"],
        adjusted=adjusted,
        better_seeds=int(np.sum((apart < 0) if lower else (apart > 0))),
        seeds=apart.size,
        lower_is_better=lower,
    )


def new_seeds_interval(
    difference: float, error: float, apart: Sequence[float], *, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval for the mean difference on new samples *and* new seeds.

    Samples and seeds are crossed, so their variances add up: that of the mean over samples, given
    these seeds, and that of the mean over seeds, given these samples. What both hold of the
    interaction is counted twice, which makes the interval a little too wide. Degrees of freedom
    as Satterthwaite (1946).

    Parameters
    ----------
    difference, error : float
        The mean difference and its standard error on new samples.
    apart : sequence of float
        The difference in each seed.
    level : float, default=0.95
        Of the interval.

    Returns
    -------
    tuple of float
        NaN with one seed.

    Examples
    --------
    >>> low, high = new_seeds_interval(-0.2, 0.1, [-0.1, -0.2, -0.3])
    >>> round(low, 3), round(high, 3)
    (-0.435, 0.035)
    """
    count = len(apart)
    if count < 2:
        return math.nan, math.nan
    of_seeds = float(np.var(apart, ddof=1)) / count
    total = error**2 + of_seeds
    if total == 0:
        return difference, difference
    freedom = total**2 / of_seeds**2 * (count - 1) if of_seeds > 0 else 1e9
    reach = float(special.stdtrit(min(freedom, 1e9), 0.5 + level / 2)) * math.sqrt(total)
    return difference - reach, difference + reach
