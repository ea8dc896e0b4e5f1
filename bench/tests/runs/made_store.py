"""A folder of runs that nobody trained: simulated scores, written as the runner writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain_bench.runs.selection import select_best_settings, validation_values
from abstain_bench.runs.store import (
    JOBS,
    VALIDATION,
    ExposureFacts,
    Run,
    RunScores,
    Store,
    StoredRun,
    pack_scores,
    write_manifest,
)
from abstain_bench.runs.studies import Study

METRICS: Final = ("augrc", "aurc", "failure_auroc", "accuracy", "ece")
CLASSES: Final = ("a", "b", "c", "d", "e")

#: How far each method tells failures from successes, and whether it averages over passes.
METHODS: Final[Mapping[str, Mapping[str, tuple[float, bool]]]] = {
    "cross-entropy": {
        "msr": (1.6, False),
        "mls": (1.2, False),
        "pe": (1.5, False),
        "mcd_msr": (1.8, True),
        "knn": (0.9, False),
    },
    "confidnet": {"confidnet": (2.2, False)},
    "devries": {"devries": (0.5, False)},
}
ENSEMBLE: Final[Mapping[str, tuple[float, bool]]] = {"ens_msr": (2.0, True)}
SETTINGS: Final = ("dropout0", "dropout0.3")

#: The share of wrong answers, and what accepting seems worth where no class is known.
_WRONG: Final = {VALIDATION: 0.2, "iid": 0.2, "unseen": 0.4}


def exposures_of(severities: Sequence[int] = (1, 2, 3, 4, 5)) -> tuple[ExposureFacts, ...]:
    """Return the exposures of the made store."""
    return (
        ExposureFacts("iid", "iid", "iid", "iid"),
        *(
            ExposureFacts(
                f"corruption-{name}-{severity}",
                f"corruption-{name}",
                f"corruption-{name} {severity}",
                "corruption",
                name,
                severity,
            )
            for name in ("fog", "blur")
            for severity in severities
        ),
        ExposureFacts("unseen", "unseen", "unseen", "sub-class"),
        ExposureFacts("digits", "digits", "digits", "new-class"),
        ExposureFacts("textures", "textures", "textures", "far-new-class"),
    )


def made_store(
    folder: Path,
    *,
    seeds: int = 2,
    n: int = 100,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    methods: Mapping[str, Mapping[str, tuple[float, bool]]] = METHODS,
    metrics: Sequence[str] = METRICS,
    settings: Sequence[str] = SETTINGS,
    ties: bool = False,
    missing: Sequence[tuple[str, int]] = (),
    rng: int = 0,
) -> Store:
    """Write a folder of runs and read it.

    Parameters
    ----------
    folder : Path
        Where; it is made.
    seeds : int
        Networks of each setting.
    n : int
        Images of each exposure but those of corruptions, which have half as many.
    severities : sequence of int
        Of the two corruptions.
    methods : mapping
        By arm and method: how far it tells failures from successes, and whether it averages.
    metrics : sequence of str
        What settings are chosen by.
    settings : sequence of str
        Of every arm; passes over dropout are in all but the first.
    ties : bool
        Whether confidences are rounded to few values.
    missing : sequence of (arm, seed)
        Runs that failed.
    rng : int
        Of everything drawn.
    """
    (folder / JOBS).mkdir(parents=True, exist_ok=True)
    facts = exposures_of(severities)
    kept = []
    for arm, own in methods.items():
        for number, setting in enumerate(settings):
            for seed in range(1, seeds + 1):
                if (arm, seed) not in missing:
                    run = Run(f"{arm}-{setting}-seed{seed}", arm, setting, seed, "small-conv")
                    made = _Maker((rng, len(kept)), own, ties, passes=number > 0, n=n)
                    kept.append(made.written(folder, run, facts, metrics))
    ensemble = _Maker((rng, 999), ENSEMBLE, ties, passes=True, n=n)
    for setting in settings:
        run = Run(f"ensemble-{setting}", "ensemble", setting, 1, "small-conv")
        first = ensemble.written(folder, run, facts, metrics)
        for seed in range(1, seeds + 1):
            own = Run(f"{run.name}-seed{seed}", run.arm, run.setting, seed, run.model)
            kept.append(
                StoredRun(own, first.validation_file, first.test_file, first.validation_values)
            )
    write_manifest(
        folder,
        config={
            "task": "made",
            "model": "small-conv",
            "metrics": list(metrics),
            "seeds": list(range(1, seeds + 1)),
        },
        facts={"versions": {"abstain": "0"}, "device": "cpu", "dtype": "float32 logits"},
        classes=CLASSES,
        exposures=facts,
        stored_runs=_tested_where_chosen(kept, metrics),
    )
    return Store.read(folder)


def _tested_where_chosen(kept: Sequence[StoredRun], metrics: Sequence[str]) -> list[StoredRun]:
    """Return the runs; those of settings that nobody chose were not tested."""
    wanted = {(one.arm, one.setting) for one in select_best_settings(kept, metrics)}
    return [
        one
        if (one.run.arm, one.run.setting) in wanted
        else StoredRun(one.run, one.validation_file, "", one.validation_values)
        for one in kept
    ]


class _Maker:
    """Makes up what one network says."""

    def __init__(
        self,
        rng: tuple[int, int],
        methods: Mapping[str, tuple[float, bool]],
        ties: bool,
        *,
        passes: bool,
        n: int,
    ) -> None:
        self.rng = np.random.default_rng(rng)
        self.quality = float(self.rng.uniform(0.8, 1.2))
        self.methods = {
            name: method for name, method in methods.items() if passes or not name.startswith("mcd")
        }
        self.ties, self.passes, self.n = ties, passes, n

    def written(
        self, folder: Path, run: Run, exposures: Sequence[ExposureFacts], metrics: Sequence[str]
    ) -> StoredRun:
        """Write its scores; return what is told of them in the manifest."""
        known = self.scores(VALIDATION, "iid", 0)
        values = validation_values(
            known, {name: own for name, (_, own) in self.methods.items()}, metrics
        )
        parts = [self.scores(e.key, e.kind, e.severity) for e in exposures]
        names = [f"{JOBS}/{run.name}-{part}.npz" for part in ("validation", "test")]
        for name, content in zip(names, ([known], parts), strict=True):
            (folder / name).write_bytes(pack_scores(content))
        return StoredRun(run, *names, validation_values=values)

    def scores(self, key: str, kind: str, severity: int) -> RunScores:
        """Make up the scores of one exposure."""
        # The images of an exposure are the same for every network.
        same = np.random.default_rng(sum(map(ord, "iid" if severity else key)))
        n = self.n // 2 if severity else self.n
        labels = same.integers(0, len(CLASSES), n)
        places = np.sort(same.integers(0, max(2, n * 3 // 4), n))
        hard = same.random(n) + self.rng.normal(scale=0.15, size=n)
        wrong = hard < _WRONG.get(key, 0.2) + 0.1 * severity
        if kind in {"new-class", "far-new-class"}:
            labels, wrong = np.full(n, -1), np.ones(n, bool)
        prediction = self._answers(labels, wrong)
        other = wrong ^ (self.rng.random(n) < 0.03)
        averaged = self._answers(labels, other) if self.passes else None
        confidence = {
            name: self._confidence((other if own and self.passes else wrong), apart, hard)
            for name, (apart, own) in self.methods.items()
        }
        reasons = {} if self.passes else {"mcd_msr": "needs passes with dropout on (`samples`)"}
        logits = self.rng.normal(size=(n, len(CLASSES))).astype(np.float32)
        return RunScores(key, labels, places, prediction, averaged, confidence, logits, reasons)

    def _answers(self, labels: Any, wrong: Any) -> Any:
        by = self.rng.integers(1, len(CLASSES), labels.size)
        first = np.where(labels < 0, 0, labels)
        return np.where(wrong, (first + by) % len(CLASSES), first)

    def _confidence(self, wrong: Any, apart: float, hard: Any) -> Any:
        noise = self.rng.normal(size=wrong.size)
        own = 2.0 + noise + hard - apart * self.quality * wrong
        return np.round(own * 2) / 2 if self.ties else own


def brute(store: Store, run: Run, study: Study) -> Any:
    """Return labels, both predictions and confidences of a study, by hand."""
    parts = [store.scores(run, key) for key in study.exposures]
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("labels", "prediction")
    }
    averaged = [part.prediction_for(uses_mean_prediction=True) for part in parts]
    confidence = {
        name: np.concatenate([part.confidence[name] for part in parts])
        for name in parts[0].confidence
    }
    return joined["labels"], joined["prediction"], np.concatenate(averaged), confidence
