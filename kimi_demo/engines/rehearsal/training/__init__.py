"""Training the adapter on one GPU, in minutes."""
