"""Settings for all tests: examples are never refused for being slow, and failures repeat."""

from hypothesis import settings

settings.register_profile("steingate", deadline=None, derandomize=True)
settings.load_profile("steingate")
