"""`exchange report`: what is derived from a run's or a trial's folder, made again, and exports of it."""
