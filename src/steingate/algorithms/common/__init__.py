"""What methods share: networks, advantages, the trust-region step, minibatch updates, critics, statistics."""
