"""`exchange simulate`: matches many instruments without messaging, in this process or in executors of Spark."""
