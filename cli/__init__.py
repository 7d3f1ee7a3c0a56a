"""The `exchange` command: one file per subcommand. Each file imports little, so that help appears at once."""

import sys

_started = sys.orig_argv[1:3]
"""`python -m cli.run` would define the command, do nothing and exit 0."""
if _started[:1] == ["-m"] and _started[-1].startswith("cli.") and _started[-1] != "cli.main":
    sys.stderr.write(f"{_started[-1]} is no command; type: exchange {_started[-1].split('.')[1]}\n")
    sys.exit(2)
