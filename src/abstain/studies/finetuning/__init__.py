"""The fine-tuning experiment, as the catalogue lists it.

Listed without torch; the experiment itself is in `abstain.studies.finetuning.run`.
"""

from abstain.studies._study import StudyEntry, later

FINETUNING = StudyEntry(
    "finetune",
    "Fine-tuning for the area under the risk-coverage curve",
    "Does fine-tuning a trained classifier with rank-weighted losses lower its AURC and AUGRC on "
    "held-out data, compared with more cross-entropy?",
    "Zhou et al. (2025), table 1, https://arxiv.org/abs/2410.15361",
    later("abstain.studies.finetuning.run", "finetune", package="torch", extra="benchmark"),
)
