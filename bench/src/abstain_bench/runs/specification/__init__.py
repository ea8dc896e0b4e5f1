"""Define the configuration of a benchmark and derive its jobs.

Reading the specification of an existing benchmark does not require torch. The functions
`default_config`, `read_config` and `update_config` validate a new configuration, for which they use
torch if it is installed.
"""

from abstain_bench.runs.recipe import Recipe as Recipe
from abstain_bench.runs.specification.arms import Arm as Arm
from abstain_bench.runs.specification.arms import Setting as Setting
from abstain_bench.runs.specification.config import Config as Config
from abstain_bench.runs.specification.jobs import PlannedRun as PlannedRun
from abstain_bench.runs.specification.jobs import Specification as Specification
from abstain_bench.runs.specification.plain_values import from_plain as from_plain
from abstain_bench.runs.specification.plain_values import from_run as from_run
from abstain_bench.runs.specification.plain_values import to_plain as to_plain
from abstain_bench.runs.specification.plain_values import to_toml_tables as to_toml_tables
from abstain_bench.runs.specification.protocols import PROTOCOLS as PROTOCOLS
from abstain_bench.runs.specification.sources import default_config as default_config
from abstain_bench.runs.specification.sources import read_config as read_config
from abstain_bench.runs.specification.sources import update_config as update_config
