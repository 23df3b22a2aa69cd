"""What a run tells the world: its tables and checkpoints, TensorBoard, Weights & Biases, the live display."""
