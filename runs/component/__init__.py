"""What surrounds a component's loop in its own process: opening, signals, events, recorded streams."""
