"""The learner: networks, advantages, the trust-region step, critics, and the recipes made of them."""
