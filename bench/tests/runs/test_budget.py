"""What a benchmark would take: counted products, published numbers of images, and sums."""

import pytest

from abstain_bench.published import table
from abstain_bench.runs.specification import Specification, default_config
from abstain_bench.runs.specification.budget import NETWORK_SIZES, budget_of
from abstain_bench.runs.tasks import TASKS, Sizes
from abstain_bench.runs.tasks.counts import ImageCounts, count_images, published_counts


def budget(task="cifar10", protocol="fd-shifts", **changes):
    config = default_config(task, protocol=protocol, **changes)
    counts = published_counts(task, config.data, config.corruptions, config.severities)
    return config, budget_of(config, counts)


def row(found, stage, arm):
    return next(one for one in found.rows if (one.stage, one.arm) == (stage, arm))


@pytest.mark.parametrize("name", [name for name in NETWORK_SIZES if name != "vit-b16"])
def test_products_and_parameters_equal_those_of_the_layers(name):
    torch = pytest.importorskip("torch")
    from abstain_bench.networks import MODELS, n_parameters

    own = NETWORK_SIZES[name]
    channels = 1 if name.endswith("-conv") and name != "street-conv" else 3
    backbone = MODELS[name].make((channels, own.side, own.side), seed=0).eval()
    counted = []

    def count(layer, _, out):
        if isinstance(layer, torch.nn.Conv2d):
            height, width = layer.kernel_size
            counted.append(out.numel() * layer.in_channels * height * width)
        else:
            counted.append(out.numel() * layer.in_features)

    for layer in backbone.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(count)
    if name == "wrn-28-10":
        # Five billion products: that of a smaller image goes with the area.
        own = own.products_at(8)
        side = 8
    else:
        own, side = own.products, own.side
    with torch.inference_mode():
        backbone(torch.zeros(1, channels, side, side))
    assert sum(counted) == own
    assert n_parameters(backbone) == NETWORK_SIZES[name].parameters


def test_the_transformer_is_counted_by_hand():
    """12 blocks: 12 d^2 products a token, and 2 d of each pair of tokens; and the patches."""
    side, width = 384, 768
    patches = (side // 16) ** 2
    tokens = patches + 1
    block = 12 * width**2 * tokens + 2 * tokens**2 * width
    assert NETWORK_SIZES["vit-b16"].products == 12 * block + patches * 3 * 16**2 * width


def test_pictures_are_as_many_as_the_paper_prints():
    names = {
        "n_train": lambda c: c.train,
        "n_validation": lambda c: c.validation,
        "n_iid_test": lambda c: c.exposures["iid"],
        "n_corruption": lambda c: sum(
            n for name, n in c.exposures.items() if name.startswith("corruption")
        ),
        "n_sub_class": lambda c: next(
            n for name, n in c.exposures.items() if name.startswith(("unseen", "other"))
        ),
        "n_new_class": lambda c: sum(
            n
            for name, n in c.exposures.items()
            if name in {"cifar10", "cifar100", "svhn", "tiny-imagenet"}
        ),
    }
    seen = 0
    for cell in table("fd_shifts_table_3"):
        _, found = budget(cell["task"])
        assert names[cell["setting"]](found.counts) == int(cell["value"]), cell
        seen += 1
    assert seen == 28
    assert sum(published_counts("cifar100", Sizes(corrupted="tenth"), ["fog"], [1, 2]).exposures[
        f"corruption-fog-{s}"
    ] for s in (1, 2)) == 2000  # fmt: skip


def test_jobs_equal_those_of_the_specification_each_once():
    config, found = budget(seeds=2)
    spec = Specification(config, tuple(found.counts.exposures))
    every = {(one.run.arm, one.run.setting) for one in (*spec.networks, *spec.ensembles)}
    both = (*spec.jobs_before_selection(), *spec.test_jobs(every))
    assert found.jobs == len({job.stem for job in both})


def test_passes_are_three_for_a_step_and_a_shared_warm_up_counts_once():
    n, epochs = 50_000, 250
    _, found = budget(seeds=1)
    # Two settings of the classifier.
    assert row(found, "train", "cross-entropy").passes == 2 * 3 * n * epochs
    # The branch sees a frozen network; then it and its twin go on.
    assert row(found, "train", "confidnet").passes == 2 * n * (200 + 20 * 4)
    # Eight settings, of which four begin alike.
    gambled = row(found, "train", "deep-gamblers").passes
    assert gambled == 8 * 3 * n * 200 + 2 * 3 * n * 100
    tested = sum(found.counts.exposures.values())
    assert row(found, "test", "devries").passes == 2 * tested
    _, steps = budget("cifar100", model="vit-b16", seeds=1, methods=["msr"])
    assert row(steps, "train", "cross-entropy").passes == 2 * 3 * 512 * 10_000


def test_hours_are_products_over_the_rate_and_go_with_the_area():
    config, found = budget(seeds=1, arms=["cross-entropy"], methods=["msr"])
    passes = sum(row.passes for row in found.rows)
    products = NETWORK_SIZES["vgg13-fd-shifts"].products
    assert found.hours == pytest.approx(passes * 2 * products / 1e13 / 3600)
    assert budget_of(config, found.counts, teraflops=20.0).hours == pytest.approx(found.hours / 2)
    small, large = (
        budget_of(default_config("entity13", protocol="fd-shifts", side=side), found.counts).hours
        for side in (112, 224)
    )
    assert large == pytest.approx(4 * small)
    unknown = default_config("cifar10", seeds=1)
    rows = budget_of(unknown, found.counts)
    assert rows.hours is not None


def test_pictures_that_nobody_published_are_counted_as_they_are_read():
    result = count_images("digits8", None, None, ["fog"], [1, 4])
    assert isinstance(result, ImageCounts)
    assert (result.train, result.validation, result.side, result.classes) == (900, 300, 8, 10)
    parts = TASKS["digits8"].load_images(None)
    assert result.exposures["letters"] == parts.exposures[-2].load().n
    assert sum("corruption" in name for name in result.exposures) == 2
    assert published_counts("digits8", None, [], []) is None
