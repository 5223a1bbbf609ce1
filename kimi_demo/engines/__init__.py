"""Where tokens come from: a server, an in-process engine, the stand-in model."""
