"""The words of Erlang's switches that a private node takes. RabbitMQ's own choice comes first."""

BUSY_WAITS = ("none", "very_short", "short", "medium", "long", "very_long")
"""How long a scheduler without work spins before it sleeps: `+sbwt` of `erl`."""
ALLOCATORS = ("ageffcbf", "ageffcaoff", "ageffcaobf", "aoff", "aoffcbf", "aoffcaobf", "aobf", "bf", "gf")
"""How Erlang looks for free memory: `+M<S>as` of `erts_alloc`."""
MOST_SCHEDULERS = 1024
