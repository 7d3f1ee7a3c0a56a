"""What a results directory keeps: found, listed, shown, held against each other, and run again from its own record."""
