"""``python -m abstain``."""

from abstain.cli import main

main()
