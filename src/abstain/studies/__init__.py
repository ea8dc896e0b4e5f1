"""The literature's studies: each one function from parameters to tables, figures and a verdict.

``abstain list studies`` prints the catalogue `STUDIES`, ``abstain study NAME`` runs one of them.

A study is a file with a function and its entry; one that outgrows a file is a folder whose
``__init__`` is that file. What needs an optional package is imported inside of the function, after
`abstain.studies._study.need`, so every study can be listed without the package.
"""

from abstain.studies._sources import SoftmaxNorm as SoftmaxNorm
from abstain.studies._study import STUDIES as STUDIES
from abstain.studies._study import StudyEntry as StudyEntry
from abstain.studies._study import StudyOption as StudyOption
from abstain.studies._study import StudyResult as StudyResult
from abstain.studies.backbones import BACKBONES
from abstain.studies.backbones import study_backbones as study_backbones
from abstain.studies.configurations import CONFIGURATIONS
from abstain.studies.configurations import study_configurations as study_configurations
from abstain.studies.convergence import CONVERGENCE
from abstain.studies.convergence import study_convergence as study_convergence
from abstain.studies.cwsa import CWSA
from abstain.studies.cwsa import study_cwsa as study_cwsa
from abstain.studies.estimators import ESTIMATORS
from abstain.studies.estimators import study_estimators as study_estimators
from abstain.studies.finetuning import FINETUNING
from abstain.studies.label_noise import LABEL_NOISE
from abstain.studies.label_noise import study_label_noise as study_label_noise
from abstain.studies.population_forms import FORMS
from abstain.studies.population_forms import study_population_forms as study_population_forms
from abstain.studies.posterior import POSTERIOR
from abstain.studies.posterior import study_posterior as study_posterior
from abstain.studies.precision import PRECISION
from abstain.studies.precision import study_precision as study_precision
from abstain.studies.published import PUBLISHED
from abstain.studies.published import study_published as study_published
from abstain.studies.rankings import RANKINGS
from abstain.studies.rankings import study_rankings as study_rankings
from abstain.studies.requirements import REQUIREMENTS_STUDY
from abstain.studies.requirements import study_requirements as study_requirements
from abstain.studies.weights import WEIGHTS
from abstain.studies.weights import study_weights as study_weights

__all__ = [
    "STUDIES",
    "SoftmaxNorm",
    "StudyEntry",
    "StudyOption",
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
