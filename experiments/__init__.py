"""The `exchange` command: launches components, keeps their records, draws their reports."""
