"""Lets ``python -m steingate`` do what the ``steingate`` command does."""

import sys

from steingate.cli import main

sys.exit(main())
