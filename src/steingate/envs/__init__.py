"""Any Gymnasium environment as a vector environment with a cost; wrappers of vector environments."""
