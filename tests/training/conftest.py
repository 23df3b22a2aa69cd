"""JAX must be set up before the first computation of this process."""

from steingate.algos.backend import configure

configure()
