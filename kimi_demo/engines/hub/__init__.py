"""Model files: from ModelScope or Hugging Face onto the disk, and whether what lies there is whole."""
