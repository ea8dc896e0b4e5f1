"""A folder of results in the layout that FD-Shifts writes, made without training anything."""

import numpy as np

CLASSES, SAMPLES, WIDTH = 3, 4, 5
#: Validation, i.i.d., noise (15 x 5 x 2), new classes.
COUNTS = (40, 30, 150, 25)
EXPOSURES = ("validation", "iid", "corruption", "new-class:svhn")
#: Without the 75 corruptions, which take their time.
SHORT = ("validation", "iid", "-", "new-class:svhn")


def make_folder(
    path, seed, *, train=True, sampled=True, abstains=False, held_out=(), counts=COUNTS
):
    """Write a folder; the labels are the same for all seeds, what the network says is not.

    With `abstains` the last layer has a row more, as that of DeepGamblers; classes of `held_out`
    are in no training image.
    """
    path.mkdir(parents=True)
    fixed, rng = np.random.default_rng(1), np.random.default_rng([7, seed])
    one = fixed.integers(0, CLASSES, counts[2] // 75)
    labels = np.concatenate(
        [
            fixed.integers(0, CLASSES, counts[0]),
            fixed.integers(0, CLASSES, counts[1]),
            np.tile(one, 75),
            fixed.integers(0, 9, counts[3]),
        ]
    )
    dataset = np.repeat(np.arange(4), counts)
    weight, bias = rng.normal(size=(CLASSES, WIDTH)), rng.normal(size=CLASSES)
    learned = np.setdiff1d(np.arange(CLASSES), held_out)
    features = rng.normal(size=(len(labels), WIDTH)) + 0.7 * weight[labels % CLASSES]
    logits = features @ weight.T + bias

    def save(name, *arrays):
        np.savez_compressed(path / name, *(x.astype(np.float16) for x in arrays))

    save("raw_logits.npz", np.column_stack([logits, labels, dataset]))
    save("encoded_output.npz", np.column_stack([features, dataset]))
    save("external_confids.npz", rng.random(len(labels)))
    if sampled:
        noise = rng.normal(size=(len(labels), CLASSES, SAMPLES))
        save("raw_logits_dist.npz", logits[:, :, None] + noise)
        save("external_confids_dist.npz", rng.random((len(labels), SAMPLES)))
    if train:
        known = learned[rng.integers(0, len(learned), 60)]
        seen = rng.normal(size=(60, WIDTH)) + 0.7 * weight[known]
        save("train_features.npz", np.column_stack([seen, known]))
        if abstains:
            weight, bias = np.vstack([weight, rng.normal(size=WIDTH)]), np.append(bias, 9.0)
        np.savez_compressed(path / "last_layer.npz", w=weight, b=bias)
    return path


def raw(folder, name="raw_logits"):
    """Read a table of such a folder."""
    return np.load(folder / f"{name}.npz")["arr_0"].astype(np.float64)
