"""Compares the tasks with recordings of Safety-Gymnasium: ``python -m tests.parity FILE.npz...``."""
