"""The formula of the AUGRC, shared by the metric, the kernels and the bootstrap."""

from typing import Any


def augrc_from_rank_sum(total: Any, loss: Any, doubled_rank_sum: Any) -> Any:
    """Compute the area under the generalized risk-coverage curve.

    `total` is the weight of all samples, and `loss` the sum of weight x loss. `doubled_rank_sum` is
    the sum of loss x (weight above the group + cumulative weight of the group) over the tie groups;
    the factor in parentheses is 2 k - 1 for an untied sample at rank k from the most confident.
    Counts are exact in integers and in float64.
    """
    return (2 * total * loss - doubled_rank_sum) / (2 * total * total)
