"""JAX must be set up before the first computation of this process."""

from steingate.algorithms.common.jax_setup import configure

configure()
