"""What a benchmark has to do, as plain records: a configuration, and the jobs that it makes.

Nothing here needs torch to be read, so that what is done of a run can be told anywhere. Only a
configuration that is new is looked up, which does: `default_config`, `read_config`, `changed`.
"""

from abstain_bench.runs.recipe import Recipe as Recipe
from abstain_bench.runs.specification.arms import Arm as Arm
from abstain_bench.runs.specification.arms import Setting as Setting
from abstain_bench.runs.specification.changes import changed as changed
from abstain_bench.runs.specification.config import Config as Config
from abstain_bench.runs.specification.jobs import Planned as Planned
from abstain_bench.runs.specification.jobs import Specification as Specification
from abstain_bench.runs.specification.plain_values import from_plain as from_plain
from abstain_bench.runs.specification.plain_values import from_run as from_run
from abstain_bench.runs.specification.plain_values import plain as plain
from abstain_bench.runs.specification.plain_values import tables_of as tables_of
from abstain_bench.runs.specification.protocols import PROTOCOLS as PROTOCOLS
from abstain_bench.runs.specification.sources import default_config as default_config
from abstain_bench.runs.specification.sources import read_config as read_config

__all__ = [
    "PROTOCOLS",
    "Arm",
    "Config",
    "Planned",
    "Recipe",
    "Setting",
    "Specification",
    "changed",
    "default_config",
    "from_plain",
    "from_run",
    "plain",
    "read_config",
    "tables_of",
]
