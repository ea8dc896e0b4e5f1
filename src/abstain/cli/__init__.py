"""The command line: parse, call, print; one file per command."""

from abstain.cli.main import main as main

__all__ = ["main"]
