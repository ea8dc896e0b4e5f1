"""Create the tables of the study, and find disagreements between AURC and AUGRC.

For accuracy a, AUGRC = (1 - AUROC) a (1 - a) + (1 - a)²/2. Therefore, if a method has both a higher
accuracy and a higher AUROC, its AUGRC is lower. If its AURC is nevertheless higher, the AURC
violates requirement R2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from abstain._foundation.scored import Scored
from abstain.curves import risk_coverage_curve, thin
from abstain.evaluation.comparison import ScoredRun
from abstain.metrics.contributions import compute_contributions
from abstain.metrics.failure_ranking import FAILURE_AUROC
from abstain.typing import FloatArray, IntArray
from abstain_bench.data.images import quoted_class
from abstain_bench.studies.rankings.ranked_studies import (
    FIRST_METRIC,
    SECOND_METRIC,
    RankedStudies,
)

if TYPE_CHECKING:
    from abstain_bench.studies.rankings.folder import RankedFolder


#: Factors of requirement R2.
_ACCURACY = "accuracy"
_AUROC = "AUROC"

#: Relative differences up to this value are rounding errors.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Disagreement:
    """A pair of methods that AURC and AUGRC rank in opposite orders.

    Attributes
    ----------
    study : str
        Name of the study.
    better, worse : str
        Better and worse method by AUGRC.
    runs : sequence of ScoredRun
        Scored samples of each run.
    values : mapping from str to (float, float)
        Accuracy, AUROC and both metrics of the better and of the worse method.
    """

    study: str
    better: str
    worse: str
    runs: Sequence[ScoredRun]
    values: dict[str, tuple[float, float]]

    @property
    def violates_r2(self) -> bool:
        """Whether the better method is better in accuracy or AUROC, and worse in neither."""
        differences = []
        for name in (_ACCURACY, _AUROC):
            better, worse = self.values[name]
            is_equal = np.isclose(better, worse, rtol=_ROUNDING, atol=0)
            differences.append(0.0 if is_equal else better - worse)
        return min(differences) >= 0 and max(differences) > 0

    @property
    def has_same_failures(self) -> bool:
        """Whether both methods fail on the same samples in every run."""
        return all(
            np.array_equal(run.scored[self.better].loss, run.scored[self.worse].loss)
            for run in self.runs
        )

    @property
    def relative_preference(self) -> float:
        """AURC of the better method relative to that of the worse method, minus 1."""
        better, worse = self.values[FIRST_METRIC.name]
        return (better - worse) / worse if worse > 0 else float("inf")

    @cached_property
    def contribution_differences(self) -> tuple[FloatArray, FloatArray]:
        """Contribution of each sample to the difference between the methods, for both metrics.

        The difference is the metric of the better method minus that of the worse method, averaged
        over runs.
        """
        return (
            self._contribution_difference(FIRST_METRIC.name),
            self._contribution_difference(SECOND_METRIC.name),
        )

    def _contribution_difference(self, metric: str) -> FloatArray:
        """Return the contribution of each sample to the difference of one metric."""
        differences = [
            _contributions(run.scored[self.better], metric)
            - _contributions(run.scored[self.worse], metric)
            for run in self.runs
        ]
        return np.asarray(np.mean(differences, axis=0))

    @cached_property
    def adverse_samples(self) -> IntArray:
        """Indices of samples that increase the AURC difference, by decreasing contribution."""
        differences = self.contribution_differences[0]
        order = np.argsort(-differences, kind="stable")
        return np.asarray(order[differences[order] > 0])

    @property
    def n_responsible(self) -> int:
        """Minimum number of samples whose removal makes both metrics agree."""
        differences = self.contribution_differences[0]
        removed = np.cumsum(differences[self.adverse_samples])
        return int(np.searchsorted(removed, differences.sum()) + 1)

    def confidence_quantile(self, method: str, row: int) -> float:
        """Return the fraction of samples with a lower confidence, averaged over runs.

        Samples with equal confidence count as one half.
        """
        quantiles = []
        for run in self.runs:
            confidence = run.scored[method].confidence
            share_lower = np.mean(confidence < confidence[row])
            share_lower_or_equal = np.mean(confidence <= confidence[row])
            quantiles.append((share_lower + share_lower_or_equal) / 2)
        return float(np.mean(quantiles))

    @property
    def n_failures(self) -> int:
        """Smallest number of failures of the better method in any run."""
        return min(run.count_samples_and_failures(self.better)[1] for run in self.runs)

    def violation_row(self) -> dict[str, Any]:
        """Return a row with the differences between the two methods."""
        return {
            "study": self.study,
            "better": self.better,
            "worse": self.worse,
            **{f"{name}_gap": better - worse for name, (better, worse) in self.values.items()},
            "failures": self.n_failures,
            "responsible": self.n_responsible,
        }

    def row(self) -> dict[str, Any]:
        """Return a row with the metrics of both methods."""
        values: dict[str, float] = {}
        for name, (better, worse) in self.values.items():
            values |= {f"{name}_better": better, f"{name}_worse": worse}
        return {
            "study": self.study,
            "better": self.better,
            "worse": self.worse,
            "violates_R2": self.violates_r2,
            "same_failures": self.has_same_failures,
            **values,
            "relative_preference": self.relative_preference,
            "failures": self.n_failures,
            "responsible": self.n_responsible,
        }

    def failure_rows(self, max_failures: int) -> Iterator[dict[str, Any]]:
        """Yield a row for each of the first `max_failures` samples of `adverse_samples`."""
        labels = self.runs[0].labels
        names = self.runs[0].sample_names
        first, second = self.contribution_differences
        for row in self.adverse_samples[:max_failures].tolist():
            yield {
                "study": self.study,
                "better": self.better,
                "worse": self.worse,
                "sample": str(row if names is None else names[row]),
                "label": "" if labels is None else str(labels[row]),
                f"{FIRST_METRIC.name}_gap": float(first[row]),
                f"{SECOND_METRIC.name}_gap": float(second[row]),
                "confidence_quantile_better": self.confidence_quantile(self.better, row),
                "confidence_quantile_worse": self.confidence_quantile(self.worse, row),
            }


def _contributions(samples: Scored, metric: str) -> FloatArray:
    return np.asarray(compute_contributions(samples, metric), dtype=np.float64)


def find_disagreements(ranked: RankedStudies) -> Iterator[Disagreement]:
    """Yield the disagreements in each study that has samples, violations of R2 first."""
    for study, load_runs in ranked.load_runs.items():
        if study not in ranked.data:
            continue
        runs = load_runs()
        pairs = list(_study_disagreements(study, runs)) if runs else []
        yield from sorted(pairs, key=lambda pair: (not pair.violates_r2, -pair.relative_preference))


def _study_disagreements(study: str, runs: Sequence[ScoredRun]) -> Iterator[Disagreement]:
    """Yield the pairs of methods that AURC and AUGRC rank in opposite orders."""
    numbers = {
        method: _mean_numbers([run.scored[method] for run in runs]) for method in runs[0].scored
    }
    for better, worse in permutations(numbers, 2):
        values = {name: (numbers[better][name], numbers[worse][name]) for name in numbers[better]}
        better_first, worse_first = values[FIRST_METRIC.name]
        better_second, worse_second = values[SECOND_METRIC.name]
        is_lower_by_second = better_second < worse_second * (1 - _ROUNDING)
        is_higher_by_first = better_first > worse_first * (1 + _ROUNDING)
        if is_lower_by_second and is_higher_by_first:
            yield Disagreement(study, better, worse, runs, values)


def _mean_numbers(runs: Sequence[Scored]) -> dict[str, float]:
    """Average accuracy, AUROC, AURC and AUGRC of a method over its runs."""
    accuracies = []
    for scored in runs:
        error_rate = np.average(scored.loss.astype(np.float64), weights=scored.weight)
        accuracies.append(float(1 - error_rate))
    numbers = {_ACCURACY: accuracies}
    metrics = {
        _AUROC: FAILURE_AUROC,
        FIRST_METRIC.name: FIRST_METRIC,
        SECOND_METRIC.name: SECOND_METRIC,
    }
    for name, metric in metrics.items():
        numbers[name] = [float(metric.compute(scored).value) for scored in runs]
    return {name: float(np.mean(values)) for name, values in numbers.items()}


#: Maximum number of violations with details.
_MAX_VIOLATIONS: Final = 6
#: Maximum number of failures that are listed for a violation.
_MAX_FAILURES: Final = 6

#: Names of the tables of the result.
TABLES: Final = (
    "results", "changes", "tests", "neighbors", "pairs", "disagreements", "violations", "failures",
)  # fmt: skip
_FIGURE_TABLES: Final = ("curves", "images")

_Row = dict[str, Any]


def make_tables(
    ranked: Sequence[RankedStudies], folder: "RankedFolder | None" = None
) -> dict[str, list[_Row]]:
    """Create the tables of the rankings.

    For tables of pairs and samples, only the last selection of settings is included.
    """
    tables: dict[str, list[_Row]] = {name: [] for name in (*TABLES, *_FIGURE_TABLES)}
    for studies in ranked:
        tables["results"] += studies.rows()
        tables["changes"] += studies.changes()
        tables["tests"] += studies.test_rows()
        tables["neighbors"] += studies.neighbor_rows()
    if not ranked:
        return tables
    tables["pairs"] += ranked[-1].pair_rows()
    pairs = list(find_disagreements(ranked[-1]))
    tables["disagreements"] += [pair.row() for pair in pairs]
    for pair in _strongest_violations(pairs):
        preference = {"relative_preference": pair.relative_preference}
        tables["violations"].append(pair.violation_row() | preference)
        tables["curves"] += _curve_rows(pair)
        failures = pair.failure_rows(_MAX_FAILURES)
        if folder is None:
            tables["failures"] += failures
        else:
            tables["failures"] += [folder.with_sample_name(row) for row in failures]
            tables["images"] += _image_rows(folder, pair)
    return tables


def join_tables(study_tables: Sequence[Mapping[str, Sequence[_Row]]]) -> dict[str, list[_Row]]:
    """Join the tables of all studies, and keep only the strongest violations of R2."""
    names = (*TABLES, *_FIGURE_TABLES)
    tables = {name: [row for tables in study_tables for row in tables[name]] for name in names}
    for name in ("results", "changes", "tests", "neighbors"):
        _sort_by_selection(tables[name])
    violations = sorted(tables["violations"], key=lambda row: -row["relative_preference"])
    strongest = violations[:_MAX_VIOLATIONS]
    studies = [row["study"] for row in strongest]
    for name in ("failures", *_FIGURE_TABLES):
        rows = [row for row in tables[name] if row["study"] in studies]
        tables[name] = sorted(rows, key=lambda row: studies.index(row["study"]))
    tables["violations"] = [
        {column: value for column, value in row.items() if column != "relative_preference"}
        for row in strongest
    ]
    return tables


def _sort_by_selection(rows: list[_Row]) -> None:
    """Sort rows in place by selection; the selection of the last row comes last."""
    if not rows:
        return
    last = rows[-1]["selection"]
    selections = dict.fromkeys(row["selection"] for row in rows)
    order = [*(selection for selection in selections if selection != last), last]
    rows.sort(key=lambda row: order.index(row["selection"]))


def _strongest_violations(pairs: Sequence[Disagreement]) -> list[Disagreement]:
    """Return the strongest violation of R2 in each study."""
    by_study: dict[str, Disagreement] = {}
    for pair in pairs:
        if pair.violates_r2:
            by_study.setdefault(pair.study, pair)
    return list(by_study.values())


def _curve_rows(pair: Disagreement) -> Iterator[_Row]:
    """Yield the risk-coverage curves of both methods in the first run."""
    for method in (pair.better, pair.worse):
        samples = pair.runs[0].scored[method]
        curve = risk_coverage_curve(samples.confidence, samples.loss, weight=samples.weight)
        thinned = thin(curve)
        yield {
            "study": pair.study,
            "method": method,
            "coverage": np.asarray(thinned.coverage).tolist(),
            "risk": np.asarray(thinned.risk).tolist(),
        }


def _image_rows(folder: "RankedFolder", pair: Disagreement) -> Iterator[_Row]:
    """Yield location, label and panel of the image for each of the first adverse samples."""
    panel = f"{pair.study}: {pair.better} is better, {FIRST_METRIC.title} prefers {pair.worse}"
    labels = pair.runs[0].labels
    for row in pair.adverse_samples[:_MAX_FAILURES].tolist():
        exposure, index = folder.locate(pair.study, row)
        label = f"{100 * pair.confidence_quantile(pair.better, row):.1f}%"
        if labels is not None:
            label = f"{quoted_class(int(labels[row]), folder.store.classes)}: {label}"
        yield {
            "study": pair.study,
            "exposure": exposure,
            "index": index,
            "label": label,
            "panel": panel,
        }
