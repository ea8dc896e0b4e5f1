"""The formula of the AUGRC that the metric, the kernels and the bootstrap share."""

from typing import Any


def augrc_from_rank_sum(total: Any, loss: Any, doubled_rank_sum: Any) -> Any:
    """Return the area under the generalized risk over coverage.

    `total` is the weight of all samples, `loss` the sum of weight x loss, and `doubled_rank_sum`
    the sum over tie groups of loss x (weight above the group + weight through it): a sample at rank
    k from the most confident has 2 k - 1 there. Counts are exact in integers and in float64.
    """
    return (2 * total * loss - doubled_rank_sum) / (2 * total * total)
