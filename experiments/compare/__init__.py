"""`exchange compare`: transports against each other at the same offered rates; a table, a record and a page."""
