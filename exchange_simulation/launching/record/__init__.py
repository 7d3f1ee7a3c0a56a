"""run.json, the record of a run: the results of its components, the machine, the noise, and the run's status."""
