"""The command: ``python -m tests.parity``."""

import sys

from tests.parity import main

sys.exit(main())
