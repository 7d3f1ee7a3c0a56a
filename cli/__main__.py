import gc

gc.set_threshold(100_000)
"""What is imported stays: looking for garbage in it is a tenth of a component's start."""

from cli.main import main  # noqa: E402

main(prog_name="exchange")
