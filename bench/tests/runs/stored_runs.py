"""A small folder of runs as `abstain benchmark run` leaves it, made without training anything."""

import numpy as np

from abstain_bench.runs.methods import METHODS, FitData, fit_all
from abstain_bench.runs.outputs import network_outputs
from abstain_bench.runs.selection import validation_values
from abstain_bench.runs.store import (
    JOBS,
    ExposureFacts,
    Run,
    RunScores,
    Store,
    StoredRun,
    pack_scores,
    write_manifest,
)

CLASSES = ("a", "b", "c")
METRICS = ("augrc", "failure_auroc", "accuracy", "ece")
FACTS = (
    ExposureFacts("iid", "iid", "iid", "iid"),
    *(
        ExposureFacts(f"corruption-fog-{k}", "corruption-fog", f"fog {k}", "corruption", "fog", k)
        for k in (1, 3)
    ),
    ExposureFacts("unseen", "unseen", "unseen", "sub-class"),
    ExposureFacts("digits", "digits", "digits", "new-class"),
)
KEYS = ("validation", *(one.key for one in FACTS))
SIZES = {"validation": 90, "iid": 80, "corruption-fog-1": 80, "corruption-fog-3": 80}
OTHERS = 60
#: How clear the answers are.
CLEAR = {"validation": 2.0, "iid": 2.0, "corruption-fog-1": 1.4, "corruption-fog-3": 0.9}


def said(key, seed, tilt=0.0):
    """What a network says of one exposure; labels are the same for all networks."""
    n = SIZES.get(key, OTHERS)
    labels = np.random.default_rng(KEYS.index(key) % 2).integers(0, 3, n)
    if key == "digits":
        labels = np.full(n, -1)
    rng = np.random.default_rng([KEYS.index(key), seed, int(10 * tilt)])
    logits = rng.normal(0.0, 1.0 + tilt, (n, 3))
    is_known = labels >= 0
    logits[np.flatnonzero(is_known), labels[is_known]] += CLEAR.get(key, 1.2)
    return network_outputs(logits.astype(np.float32), labels, np.arange(n))


def scored(key, outputs, fitted):
    score = fitted.score(outputs)
    return RunScores(
        exposure=key,
        labels=outputs.labels,
        source_indices=outputs.ids,
        prediction=np.argmax(outputs.logits, axis=1),
        mean_prediction=None,
        confidence=dict(score),
        logits=outputs.logits,
    )


def make_runs(
    folder, *, settings=("",), tested=None, seeds=(0, 1, 2), methods=("msr", "mls", "pe"), **config
):
    """Write the folder and read it back; `config` is more of the configuration."""
    (folder / JOBS).mkdir(parents=True)
    kept = []
    for tilt, setting in enumerate(settings):
        for seed in seeds:
            name = "-".join(filter(None, ("plain", setting, f"seed{seed}")))
            outputs = {key: said(key, seed, 0.3 * tilt) for key in KEYS}
            valid = outputs["validation"]
            fitted = fit_all(methods, FitData(valid, valid))
            parts = [scored(key, outputs[key], fitted) for key in KEYS]
            files = [f"{JOBS}/validate-{name}.npz", f"{JOBS}/test-{name}.npz"]
            (folder / files[0]).write_bytes(pack_scores(parts[:1]))
            if tested is not None and setting not in tested:
                files[1] = ""
            else:
                (folder / files[1]).write_bytes(pack_scores(parts[1:]))
            own = validation_values(
                parts[0], {m: METHODS[m].uses_mean_prediction for m in methods}, METRICS
            )
            kept.append(StoredRun(Run(name, "plain", setting, seed, "small"), *files, own))
    write_manifest(
        folder,
        config={"metrics": list(METRICS), "methods": list(methods), **config},
        facts={},
        classes=CLASSES,
        exposures=FACTS,
        stored_runs=kept,
    )
    return Store.read(folder)
