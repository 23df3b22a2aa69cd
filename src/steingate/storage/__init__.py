"""How a run folder's files are written and read back: atomically, append-only, checksummed. Needs no JAX."""
