from experiments.cli import main

main(prog_name="exchange")
