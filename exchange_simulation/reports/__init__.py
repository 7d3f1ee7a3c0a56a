"""Pages, terminal tables, figures, exports and the live view. Reads records, measures nothing."""
