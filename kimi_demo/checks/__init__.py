"""The self-test of a server: whether it does everything that this demo needs of it, and which flag it lacks where it does not."""
