"""Set JAX up before any test computes: this runs while tests are collected."""

from steingate.algos.backend import configure

configure(cache=False)
