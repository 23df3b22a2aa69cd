"""Compares the tasks with recordings of Safety-Gymnasium."""
