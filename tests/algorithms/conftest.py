"""Set up JAX while tests are collected, before any of them uses it."""

from steingate.algorithms.common.jax_setup import configure

configure()
