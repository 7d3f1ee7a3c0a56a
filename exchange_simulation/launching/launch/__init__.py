"""A run's processes: places where they meet, launching, watching, ending."""
