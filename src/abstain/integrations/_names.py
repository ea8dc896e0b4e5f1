"""Names of metrics as other programs take them."""


def spelled(name: str) -> str:
    """Spell out what MLflow, W&B and Inspect refuse in names or read as something else."""
    return name.replace("@", "_at_").replace(".", "_").replace("-", "_")
