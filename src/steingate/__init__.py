"""Reinforcement learning that stays safe in the tail."""

__version__ = "0.1.0"
