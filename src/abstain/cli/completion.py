"""`abstain completion`: print a script with which a shell completes commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from abstain.cli.app import complete_application
from abstain.cli.console import console


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Shell")], /
) -> None:
    """Print the completion script of a shell.

    Write the script to the folder in which the shell looks for it; new sessions then complete
    commands and options:

    bash: abstain completion bash > ~/.local/share/bash-completion/completions/abstain

    zsh: abstain completion zsh > a folder of $fpath, as _abstain

    fish: abstain completion fish > ~/.config/fish/completions/abstain.fish
    """
    # The script is written without rich, which would interpret brackets and tabs.
    console().file.write(complete_application().generate_completion(shell=shell))
