"""The `exchange` command: one file per subcommand. Each file imports little, so that help appears at once."""

import sys

_started = sys.orig_argv[1:3]
"""`python -m exchange_simulation.cli.run` would define the command, do nothing and exit 0."""
if (
    _started[:1] == ["-m"]
    and _started[-1].startswith("exchange_simulation.cli.")
    and _started[-1] != "exchange_simulation.cli.main"
):
    sys.stderr.write(f"{_started[-1]} is no command; type: exchange {_started[-1].rpartition('.')[2]}\n")
    sys.exit(2)
