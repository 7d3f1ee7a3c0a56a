"""The processes of a run: the addresses of their links, their launch, and the watch over them until their end."""
