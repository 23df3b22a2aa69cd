"""Run folder tables and checkpoints, TensorBoard, Weights & Biases, and the terminal display."""
