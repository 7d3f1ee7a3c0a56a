"""The `exchange` command: one file per subcommand. They import lightly, so that help appears at once."""
