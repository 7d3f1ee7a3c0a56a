"""A run's page, `report.html`: one offline file, made from `run.json` and the spool; without Spark."""

from experiments.page.writer import write_page

__all__ = ["write_page"]
