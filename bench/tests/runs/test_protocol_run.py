"""FD-Shifts as it is run, on a small folder in the official format: every stage of the protocol."""

import json
from dataclasses import replace

import numpy as np
import pytest
from bench.tests.data.published_files import write_svhn, write_tiny_imagenet

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

from abstain.errors import FileFormatError, InputError  # noqa: E402
from abstain_bench.data.published import CORRUPTIONS  # noqa: E402
from abstain_bench.results import results_of  # noqa: E402
from abstain_bench.runs import tasks  # noqa: E402  after the skip
from abstain_bench.runs.loaded_task import load_task  # noqa: E402
from abstain_bench.runs.progress import read_progress  # noqa: E402
from abstain_bench.runs.run import run_benchmark  # noqa: E402
from abstain_bench.runs.specification import default_config, to_plain  # noqa: E402
from abstain_bench.runs.store import JOBS, MANIFEST, Store  # noqa: E402
from abstain_bench.runs.tasks import TASKS, Sizes  # noqa: E402
from abstain_bench.runs.work import Worker  # noqa: E402

#: Of each file of CIFAR-10, and of its test images; 10 of them to choose on.
RECORDS = 20
CHOSEN = 10


def pictures(labels, seed):
    """Blocks of a color and a place for each class, in noise: learned in a few epochs."""
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 90, (len(labels), 3, 32, 32))
    for row, label in zip(out, labels, strict=True):
        row[label % 3, 3 * label : 3 * label + 6] += 150
    return out.astype(np.uint8)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The folder of CIFAR-10, its corruptions, and two data sets of new classes."""
    folder = tmp_path_factory.mktemp("data")
    place = folder / "cifar-10-batches-bin"
    place.mkdir()
    labels = np.arange(RECORDS) % 10
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    for seed, name in enumerate(names):
        result = pictures(labels, seed)
        rows = np.concatenate([labels[:, None].astype(np.uint8), result.reshape(RECORDS, -1)], 1)
        (place / name).write_bytes(rows.tobytes())
    (place / "batches.meta.txt").write_text("\n".join([*map(str, range(10)), "", ""]))
    spoiled = folder / "CIFAR-10-C"
    spoiled.mkdir()
    # Each severity is a noisier copy of the test images.
    rng = np.random.default_rng(0)
    blocks = [
        np.clip(result + rng.normal(0, 15 * (1 + s), result.shape), 0, 255).transpose(0, 2, 3, 1)
        for s in range(5)
    ]
    for name in CORRUPTIONS:
        np.save(spoiled / f"{name}.npy", np.concatenate(blocks).astype(np.uint8))
    np.save(spoiled / "labels.npy", np.tile(labels, 5))
    write_svhn(folder, records=20, labels=np.arange(20) % 10 + 1)
    write_tiny_imagenet(folder, records=3)
    return folder


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Let the readers take files that are small, as they do where the caller says so."""
    records = {"cifar10": RECORDS, "svhn": 20, "tiny-imagenet": 3}
    whole = TASKS["cifar10"].load

    def load(folder, sizes=None):
        own = Sizes() if sizes is None else sizes
        return whole(folder, replace(own, records=records, validation=CHOSEN))

    entry = replace(TASKS["cifar10"], load=load)
    monkeypatch.setitem(tasks.TASKS._entries, "cifar10", entry)
    load_task.__globals__["_load_task"].cache_clear()
    yield
    load_task.__globals__["_load_task"].cache_clear()


def short(home, **changes):
    """The protocol with every stage, and a hundredth of its epochs."""
    config = default_config(
        "cifar10",
        protocol="fd-shifts",
        folder=home,
        seeds=1,
        epochs=3,
        samples=2,
        corruptions=["fog", "jpeg"],
        severities=[1, 5],
        **changes,
    )
    gamblers = next((arm for arm in config.arms if arm.objective == "deep-gamblers"), None)
    if gamblers is None:
        return config
    shorter = replace(
        gamblers, option_grid={"reward": (2.2, 6.0)}, recipe=replace(gamblers.recipe, epochs=2)
    )
    return replace(config, arms=tuple(shorter if arm is gamblers else arm for arm in config.arms))


@pytest.mark.slow
def test_every_stage_of_the_protocol_is_run_and_reported(home, tmp_path):
    # The network for house numbers: that for CIFAR takes minutes on two cores.
    config = short(home, model="street-conv")
    assert {arm.objective: dict(arm.stage_lengths) for arm in config.arms} == {
        "cross-entropy": {},
        "confidnet": {"confidence": 2, "fine-tune": 1},
        "devries": {},
        "deep-gamblers": {"warm-up": 2},
    }
    store, outcomes = run_benchmark(config, tmp_path)
    assert {outcome.status for outcome in outcomes} == {"done"}
    specs = {one.job.name: one.job.spec for one in outcomes}
    trained = {name: spec for name, spec in specs.items() if name.startswith("train")}
    # Two of the classifier, its branches, DeVries and Taylor's; of DeepGamblers two rewards each.
    assert len(trained) == 2 + 2 + 2 + 4
    assert {spec["variation"]["cutout"] for spec in trained.values()} == {16}
    assert {spec["data"]["corrupted"] for spec in trained.values()} == {"all"}
    facts = {one.job.name: one.facts for one in outcomes}
    assert len(facts["train-confidnet-dropout0-seed0"]["losses"]) == 3
    assert len(facts["train-deep-gamblers-dropout0-reward2.2-seed0"]["losses"]) == 4
    # It learns: blocks of color are no hard task.
    losses = facts["train-cross-entropy-dropout0-seed0"]["losses"]
    assert losses[-1] < losses[0]
    # Corruptions of all test images, and the others without those that were chosen on.
    run = next(one for one in store.tested_runs if one.arm == "cross-entropy")
    sizes = {key: store.scores(run, key).n for key in ("iid", "corruption-fog-5-official", "svhn")}
    assert sizes == {"iid": RECORDS - CHOSEN, "corruption-fog-5-official": RECORDS, "svhn": 20}
    results = results_of(store, metrics=["augrc"])
    assert {"iid", "corruption", "svhn", "tiny-imagenet"} <= {s.name for s in results.studies}
    again, kept = run_benchmark(config, tmp_path)
    assert {outcome.status for outcome in kept} == {"kept"}
    assert read_progress(tmp_path).is_finished
    assert json.loads((tmp_path / MANIFEST).read_text())["config"] == to_plain(config)
    assert Store.read(again.folder).config["data"]["corrupted"] == "all"


def test_networks_begin_with_the_weights_of_a_file_and_see_pictures_at_another_side(
    home, tmp_path, monkeypatch
):
    from abstain_bench.networks import MODELS

    own = MODELS["small-conv"].make((3, 32, 32), seed=5)
    torch.save(own.state_dict(), tmp_path / "own.pt")
    config = short(
        home,
        model="small-conv",
        side=40,
        weights=tmp_path / "own.pt",
        arms=["cross-entropy"],
        methods=["msr"],
    )
    begun = []
    plainly = Worker.train

    def train(self, job, place, network, objective, **more):
        begun.append({k: x.clone() for k, x in network.backbone.state_dict().items()})
        return plainly(self, job, place, network, objective, **more)

    monkeypatch.setattr(Worker, "train", train)
    config = replace(config, arms=(replace(config.arms[0], dropout=(0.0,)),))
    store, outcomes = run_benchmark(config, tmp_path / "runs")
    assert {outcome.status for outcome in outcomes} == {"done"}
    (state,) = begun
    assert torch.equal(state["inner.stages.0.0.weight"], own.stages[0][0].weight)
    (job,) = (one.job for one in outcomes if one.job.name.startswith("train"))
    assert (job.spec["side"], len(job.spec["weights"])) == (40, 64)
    assert store.config["weights"] == str(tmp_path / "own.pt")
    # Known by what is in the file: elsewhere it is the same, and changed it is another.
    (tmp_path / "own.pt").rename(tmp_path / "there.pt")
    moved = replace(config, weights=str(tmp_path / "there.pt"))
    _, kept = run_benchmark(moved, tmp_path / "runs")
    assert {outcome.status for outcome in kept} == {"kept"}
    assert read_progress(tmp_path / "runs").is_finished
    torch.save(MODELS["small-conv"].make((3, 32, 32), seed=6).state_dict(), tmp_path / "own.pt")
    _, anew = run_benchmark(config, tmp_path / "runs")
    assert {outcome.status for outcome in anew} == {"done"}
    with pytest.raises(InputError, match="no file of weights"):
        run_benchmark(replace(config, weights=str(tmp_path / "no.pt")), tmp_path / "other")
    (tmp_path / "no.pt").write_bytes(b"no weights")
    with pytest.raises(FileFormatError, match="cannot be read as tensors"):
        run_benchmark(replace(config, weights=str(tmp_path / "no.pt")), tmp_path / "other")
    assert not list((tmp_path / "other" / JOBS).iterdir())
