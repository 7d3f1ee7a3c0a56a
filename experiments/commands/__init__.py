"""One file per subcommand of `exchange`. They import lightly, so that help is there at once."""
