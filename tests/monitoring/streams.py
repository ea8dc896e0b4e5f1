"""A rule, its calibration data, and streams with known truth."""

import numpy as np

import abstain as ab


def drawn(rng, n, *, slope=1.0, worse=1.0):
    """Confidences and losses: the risk at a confidence c is worse * (1 - c)."""
    confidence = rng.beta(4 * slope, 1, n)
    return confidence, rng.random(n) < np.minimum(worse * (1 - confidence), 1)


def calibrated(seed=0, n=2000, max_risk=0.1):
    """A rule and the predictions that it was chosen on."""
    confidence, loss = drawn(np.random.default_rng(seed), n)
    data = ab.Predictions(confidence={"own": confidence}, loss=loss)
    return ab.set_threshold(data, max_risk=max_risk, delta=0.05), data


def names(prefix, n):
    return [f"{prefix}{i}" for i in range(n)]


def same(one, other):
    """Whether two monitors are the same to the last bit."""
    (plain, arrays), (also, beside) = one.to_arrays(), other.to_arrays()
    return plain == also and all(
        np.array_equal(arrays[k], beside[k], equal_nan=arrays[k].dtype.kind == "f") for k in arrays
    )
