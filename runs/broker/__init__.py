"""The broker of a run: found or started, shared by several runs, watched."""
