"""`exchange results`: a results directory's folders are listed, shown, compared, and run again from their records."""
