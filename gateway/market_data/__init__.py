"""A subscriber to an engine's market data. Like a gateway it stands where a participant of the market does."""
