"""Training: collect, decide, move the policy, fit the critics, write the run folder. Read ``epoch`` first."""
