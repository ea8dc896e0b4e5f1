"""`abstain completion`: what makes a shell complete commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from abstain.cli.app import complete_application
from abstain.cli.console import console


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="the shell")], /
) -> None:
    """Print what makes a shell complete commands and options.

    Keep it where the shell looks for such files; it then knows them in every new session:

    bash: abstain completion bash > ~/.local/share/bash-completion/completions/abstain

    zsh: abstain completion zsh > a folder of $fpath, as _abstain

    fish: abstain completion fish > ~/.config/fish/completions/abstain.fish
    """
    # As it is: a tab or a bracket of a script is no layout.
    console().file.write(complete_application().generate_completion(shell=shell))
