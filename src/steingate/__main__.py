"""Lets ``python -m steingate`` do what the ``steingate`` command does."""

from steingate.cli import command

command()
