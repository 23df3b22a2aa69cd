"""Training: rollouts, policy updates, critics, certification, evaluation, run folders. Read ``epoch`` first."""
