"""The `exchange` command: one file per subcommand. Each file imports little, so that help appears at once."""
