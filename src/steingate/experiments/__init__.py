"""Grids of runs on local processes or a Ray cluster. Read ``grid`` first."""
