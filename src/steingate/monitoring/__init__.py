"""Anytime-valid monitoring of episode costs: bounds, drift detection, certification of a policy."""
