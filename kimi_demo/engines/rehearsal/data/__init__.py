"""The training data: pure, seeded generators. The same seed and sizes give the same conversations, byte for byte."""
