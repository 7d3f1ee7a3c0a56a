"""A capacity as people read it: its sentence, its table, its page."""
