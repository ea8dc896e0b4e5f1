"""How wide the limits of bounded memory are: `python benchmarks/streaming_width.py`.

Simulated two-class networks: the absolute log-odds are |N(mean, sd)|, and a sample is wrong with
the chance that its probability says, or more where the network is overconfident.
"""

import sys
from pathlib import Path

import numpy as np
from table import markdown

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))

N = 10**6
NAMES = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@1risk", "cwsa@0.9")
#: mean and standard deviation of the log-odds, and what they are divided by to be calibrated.
NETWORKS = {
    "sure": (4, 3, 1),
    "surer": (8, 4, 1),
    "overconfident": (12, 6, 2),
    "unsure": (1.5, 1.5, 1),
}


def network(kind, n=N, seed=0):
    mean, sd, divisor = NETWORKS[kind]
    rng = np.random.default_rng(seed)
    z = np.abs(rng.normal(mean, sd, n))
    return z, 1 / (1 + np.exp(-z)), rng.random(n) > 1 / (1 + np.exp(-z / divisor))


def limits():
    """Width of the limits, and what the value is really off by, for each metric and scale."""
    from abstain import streaming
    from abstain._foundation.scored import validate_samples
    from abstain.metrics import metric_named

    z, p, wrong = network("sure")
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
            found = streaming.compute(state, metric)
            exact = metric_named(metric).compute(validate_samples(c, wrong)).value
            assert found.low <= exact <= found.high
            row.append(f"{found.high - found.low:.1e} ({abs(found.value - exact):.0e})")
        rows.append(row)
    return markdown(["scale", *NAMES], rows)


def mappings():
    """Width for AUGRC of several maps to 2^16 bins: failures x successes in each, over n^2."""
    from abstain.streaming.scales import bin_index

    rows = []
    for kind in NETWORKS:
        _, p, wrong = network(kind)
        maps = {
            "leading 16 bits of float32": p.astype(np.float32).view(np.uint32) >> 16,
            "even": (p * 65535).astype(np.int64),
            "probability": bin_index(np, p, scale="probability", bins=65536),
        }
        widths = {name: _width(index, wrong) for name, index in maps.items()}
        rows.append([kind, f"{wrong.mean():.3f}", *(f"{width:.1e}" for width in widths.values())])
    return markdown(["network", "error", *maps], rows)


def _width(index, wrong):
    _, bins = np.unique(index, return_inverse=True)
    count, failures = np.bincount(bins), np.bincount(bins, weights=wrong)
    return float(np.sum(failures * (count - failures))) / wrong.size**2


if __name__ == "__main__":
    print("Width of the limits (and what the value is off by), n = 10^6\n")
    print(limits())
    print("\nWidth of the limits of AUGRC by the map to 2^16 bins\n")
    print(mappings())
