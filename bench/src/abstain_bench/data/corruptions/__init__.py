"""The 15 corruptions of Hendrycks & Dietterich (2019), each with five severities.

The implementation does not use the published code and is designed for images of about 32 x 32
pixels.
"""

from abstain_bench.data.corruptions.catalogue import CORRUPTIONS as CORRUPTIONS
from abstain_bench.data.corruptions.catalogue import SEVERITIES as SEVERITIES
from abstain_bench.data.corruptions.catalogue import Corruption as Corruption
from abstain_bench.data.corruptions.catalogue import corrupt as corrupt

__all__ = ["CORRUPTIONS", "corrupt"]
