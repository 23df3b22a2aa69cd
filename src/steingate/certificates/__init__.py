"""The certificate: NumPy and SciPy only, usable without any reinforcement learning."""
