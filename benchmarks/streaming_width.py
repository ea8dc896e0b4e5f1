"""Measure the limits of states of bounded size: `python benchmarks/streaming_width.py`.

Two-class networks are simulated. The absolute log-odds are |N(mean, sd)|. A calibrated network is
wrong with a probability of one minus its confidence. An overconfident network is wrong with a
higher probability.
"""

import sys
from pathlib import Path

import numpy as np
from table import markdown

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))

N = 10**6
NAMES = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@1risk", "cwsa@0.9")
#: Mean and standard deviation of the log-odds, and divisor that makes them calibrated, by name.
NETWORKS = {
    "confident": (4, 3, 1),
    "very confident": (8, 4, 1),
    "overconfident": (12, 6, 2),
    "uncertain": (1.5, 1.5, 1),
}


def simulate_network(name, n=N, seed=0):
    """Return the log-odds, the probabilities of the predicted classes, and a mask of failures."""
    mean, sd, divisor = NETWORKS[name]
    rng = np.random.default_rng(seed)
    z = np.abs(rng.normal(mean, sd, n))
    return z, 1 / (1 + np.exp(-z)), rng.random(n) > 1 / (1 + np.exp(-z / divisor))


def limits_table():
    """Return a table with the width of the limits and the error of each metric, by scale."""
    from abstain import streaming
    from abstain._foundation.scored import validate_samples
    from abstain.metrics import metric_named

    z, p, wrong = simulate_network("confident")
    cases = {
        "probability, float64": (p, "probability", 65536),
        "probability, float32": (p.astype(np.float32), "probability", 65536),
        "probability, float16": (p.astype(np.float16), "probability", 65536),
        "probability, 4096 bins": (p, "probability", 4096),
        "log-odds": (z, "log-odds", 65536),
        "real (of p)": (p, "real", 65536),
    }
    rows = []
    for name, (c, scale, bins) in cases.items():
        state = streaming.update(streaming.init(bins=bins, scale=scale), c, wrong)
        row = [name]
        for metric in NAMES:
            if metric.startswith("cwsa") and scale == "log-odds":
                row.append("-")
                continue
            estimate = streaming.compute(state, metric)
            exact = metric_named(metric).compute(validate_samples(c, wrong)).value
            assert estimate.low <= exact <= estimate.high
            width, error = estimate.high - estimate.low, abs(estimate.value - exact)
            row.append(f"{width:.1e} ({error:.0e})")
        rows.append(row)
    return markdown(["scale", *NAMES], rows)


def bins_table():
    """Return a table with the width of the limits of AUGRC for several ways to bin confidences."""
    from abstain.streaming.scales import bin_index

    rows = []
    for name in NETWORKS:
        _, p, wrong = simulate_network(name)
        bins = {
            "leading 16 bits of float32": p.astype(np.float32).view(np.uint32) >> 16,
            "equal width": (p * 65535).astype(np.int64),
            "probability": bin_index(np, p, scale="probability", bins=65536),
        }
        widths = [f"{_augrc_width(index, wrong):.1e}" for index in bins.values()]
        rows.append([name, f"{wrong.mean():.3f}", *widths])
    return markdown(["network", "error", *bins], rows)


def _augrc_width(bin_index, wrong):
    """Return the number of pairs of a failure and a success in the same bin, divided by n^2."""
    _, index = np.unique(bin_index, return_inverse=True)
    n_samples, n_failures = np.bincount(index), np.bincount(index, weights=wrong)
    return float(np.sum(n_failures * (n_samples - n_failures))) / wrong.size**2


if __name__ == "__main__":
    print("Width of the limits (and error of the value), n = 10^6\n")
    print(limits_table())
    print("\nWidth of the limits of AUGRC by the function to 2^16 bins\n")
    print(bins_table())
