"""Batches: rows out of files, a journal of what became of each, and results in the formats that people take them out in."""
