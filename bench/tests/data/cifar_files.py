"""Tiny data sets in the binary format of CIFAR."""

import numpy as np


def write_cifar10(folder, *, records=20, seed=0):
    """Write five training files and a test file; return the folder."""
    place = folder / "cifar-10-batches-bin"
    place.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        result = rng.integers(0, 256, (records, 1 + 3072), dtype=np.uint8)
        result[:, 0] = np.arange(records) % 10
        (place / name).write_bytes(result.tobytes())
    names = ["airplane", *(f"class {i}" for i in range(1, 10))]
    (place / "batches.meta.txt").write_text("\n".join([*names, "", ""]))
    return place


def write_cifar100(folder, *, records=200, seed=0):
    """Write a training and a test file; return the folder."""
    place = folder / "cifar-100-binary"
    place.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for name in ("train.bin", "test.bin"):
        result = rng.integers(0, 256, (records, 2 + 3072), dtype=np.uint8)
        result[:, 0] = np.arange(records) % 20
        result[:, 1] = np.arange(records) % 100
        (place / name).write_bytes(result.tobytes())
    return place
