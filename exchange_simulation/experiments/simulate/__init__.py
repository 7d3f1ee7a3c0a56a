"""Many instruments, matched without a broker: here or by Spark, whose executors run the very same function."""
