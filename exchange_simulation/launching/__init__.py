"""One run: launching and watching its components, the broker, the network, packet counts, and its record."""
