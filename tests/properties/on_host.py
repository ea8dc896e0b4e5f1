"""What is computed on the host even for arrays of a device, and why (docs/conventions.md)."""

from collections.abc import Mapping
from types import MappingProxyType

_HULL = (
    "the convex hull is found from neighbor to neighbor: the losses and weights of the groups are "
    "copied to the host to choose its vertices, and the area is computed on the device"
)
_STATISTICS = (
    "the quantiles, the resampling and the influence functions are SciPy's and compiled kernels "
    "of the host: the arrays are copied there once"
)

_SPECIAL = "the special functions are SciPy's, of numbers that stand for no samples"
_DRAWN = "the random numbers are NumPy's: the sizes of the tie groups are copied to the host"

_NAMES = "names of classes and groups are objects of the host, where they are counted"

#: Public functions of curves and metrics, and why they copy arrays to the host.
ON_HOST: Mapping[str, str] = MappingProxyType(
    {
        "achievable_curve": _HULL,
        "achievable_aurc": _HULL,
        "published_achievable_aurc": _HULL,
        "risk_coverage_band": _STATISTICS,
        "metric_interval": _STATISTICS,
        "metric_difference": _STATISTICS,
        "metric_bootstrap": _STATISTICS,
        "monte_carlo_aurc": _DRAWN,
        "scod_loss": "it prepares losses for what is computed on a device",
        "smooth_ece": "the cosine transforms are SciPy's: confidences and losses are copied there",
        "weight_bias": _SPECIAL,
        "weight_error_scale": _SPECIAL,
        "mean_weight_error_scale": _SPECIAL,
        "weight_mse": _SPECIAL,
        "weight_mse_given_rank": _SPECIAL,
        "weight_variance": _SPECIAL,
        "group_contributions": _NAMES,
        "selective_confusion_matrix": _NAMES,
        "thin": "it prepares a curve for drawing",
    }
)
