"""Settings for all tests: examples are never refused for being slow, failures repeat, Ctrl-C works."""

import signal
import threading

from hypothesis import settings

settings.register_profile("steingate", deadline=None, derandomize=True)
settings.load_profile("steingate")

# A background job ignores Ctrl-C and so would every process that tests start and interrupt.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
