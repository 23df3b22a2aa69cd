"""Figures, tables and pages made from results and run folders; needs no learner."""
