"""Will a model fit: from its config.json and a machine to memory per GPU, room for the KV cache, and a plain yes or no. Pure."""
