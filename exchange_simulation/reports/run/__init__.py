"""One run's report: page, terminal table, figures, exports; made from run.json and the spool."""
