"""`abstain study NAME`: the studies of the literature, one command each.

A study that needs an optional package has its command here too: its file imports nothing of that
package, and the study itself asks for it when it is run (see `abstain.studies._study.later`).
"""

from cyclopts import App

from abstain.cli.study.estimation import (
    convergence,
    estimators,
    population_forms,
    posterior,
    weights,
)
from abstain.cli.study.finetuning import finetune

study = App(name="study", help="Run a study of the literature: tables, figures and a verdict.")
study.command(estimators, name="estimators")
study.command(weights, name="weights")
study.command(convergence, name="convergence")
study.command(population_forms, name="population-forms")
study.command(posterior, name="posterior")
study.command(finetune, name="finetune")
