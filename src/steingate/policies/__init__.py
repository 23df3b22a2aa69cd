"""Trained policies with NumPy alone: loading, exporting, running."""
