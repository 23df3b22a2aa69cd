"""Watching a policy: guarantees on its episode costs that hold however often one looks. Needs NumPy alone."""
