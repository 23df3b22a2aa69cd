"""Settings for all tests: no deadlines, failures repeat, Ctrl-C works, a configuration folder of their own."""

import os
import signal
import tempfile
import threading

from hypothesis import settings

settings.register_profile("steingate", deadline=None, derandomize=True)
settings.load_profile("steingate")

# A background job ignores Ctrl-C and so would every process that tests start and interrupt.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Keys that seal run folders are not mixed with those of the user; processes that tests start inherit this folder.
_configuration = tempfile.TemporaryDirectory(prefix="steingate-tests-")
os.environ["XDG_CONFIG_HOME"] = _configuration.name
