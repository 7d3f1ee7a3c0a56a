"""run.json: what is known of a run, judged and written down."""
