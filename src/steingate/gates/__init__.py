"""Gates: episode costs in, decision out. NumPy only."""
