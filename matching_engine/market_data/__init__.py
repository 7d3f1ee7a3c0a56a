"""An engine that publishes market data: the feed that its kernels fill, and the link that carries the feed away."""
