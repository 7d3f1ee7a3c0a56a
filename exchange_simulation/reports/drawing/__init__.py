"""How figures look, and how they become SVG, PNG and CSV. Knows no run."""
