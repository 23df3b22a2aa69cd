"""The command: ``python -m steingate.envs.parity``."""

import sys

from steingate.envs.parity import main

sys.exit(main())
