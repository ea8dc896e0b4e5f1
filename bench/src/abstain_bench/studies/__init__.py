"""Studies of the literature.

A study is a function that reproduces a published analysis; it computes tables, figures and
conclusions. The command ``abstain list studies`` lists all studies, and ``abstain study NAME`` runs
one.

Optional packages are imported only when the study is run, after
`abstain_bench.studies._study.require_package`.
"""

from abstain_bench.studies._sources import SoftmaxNorm as SoftmaxNorm
from abstain_bench.studies._study import STUDIES as STUDIES
from abstain_bench.studies._study import StudyEntry as StudyEntry
from abstain_bench.studies._study import StudyOption as StudyOption
from abstain_bench.studies._study import StudyResult as StudyResult
from abstain_bench.studies.backbones import BACKBONES
from abstain_bench.studies.backbones import study_backbones as study_backbones
from abstain_bench.studies.configurations import CONFIGURATIONS
from abstain_bench.studies.configurations import study_configurations as study_configurations
from abstain_bench.studies.convergence import CONVERGENCE
from abstain_bench.studies.convergence import study_convergence as study_convergence
from abstain_bench.studies.cwsa import CWSA
from abstain_bench.studies.cwsa import study_cwsa as study_cwsa
from abstain_bench.studies.estimators import ESTIMATORS
from abstain_bench.studies.estimators import study_estimators as study_estimators
from abstain_bench.studies.finetuning import FINETUNING
from abstain_bench.studies.label_noise import LABEL_NOISE
from abstain_bench.studies.label_noise import study_label_noise as study_label_noise
from abstain_bench.studies.population_forms import FORMS
from abstain_bench.studies.population_forms import study_population_forms as study_population_forms
from abstain_bench.studies.posterior import POSTERIOR
from abstain_bench.studies.posterior import study_posterior as study_posterior
from abstain_bench.studies.precision import PRECISION
from abstain_bench.studies.precision import study_precision as study_precision
from abstain_bench.studies.published import PUBLISHED
from abstain_bench.studies.published import study_published as study_published
from abstain_bench.studies.rankings import RANKINGS
from abstain_bench.studies.rankings import study_rankings as study_rankings
from abstain_bench.studies.requirements import REQUIREMENTS_STUDY
from abstain_bench.studies.requirements import study_requirements as study_requirements
from abstain_bench.studies.weights import WEIGHTS
from abstain_bench.studies.weights import study_weights as study_weights

__all__ = [
    "STUDIES",
    "SoftmaxNorm",
    "StudyEntry",
    "StudyResult",
    "study_backbones",
    "study_configurations",
    "study_convergence",
    "study_cwsa",
    "study_estimators",
    "study_label_noise",
    "study_population_forms",
    "study_posterior",
    "study_precision",
    "study_published",
    "study_rankings",
    "study_requirements",
    "study_weights",
]

for _study in (
    ESTIMATORS,
    WEIGHTS,
    CONVERGENCE,
    FORMS,
    POSTERIOR,
    FINETUNING,
    PRECISION,
    BACKBONES,
    CONFIGURATIONS,
    CWSA,
    PUBLISHED,
    REQUIREMENTS_STUDY,
    RANKINGS,
    LABEL_NOISE,
):
    STUDIES.add(_study)
