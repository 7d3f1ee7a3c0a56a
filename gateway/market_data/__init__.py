"""Subscribers to market data. They are in the gateway package, since they are programs of a market participant, too."""
