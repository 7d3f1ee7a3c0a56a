"""A fault matrix: its answer in sentences, its table in the terminal, its page."""
