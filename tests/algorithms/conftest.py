"""Set JAX up before any test computes: this runs while tests are collected."""

from steingate.algorithms.common.backend import configure

configure(cache=False)
