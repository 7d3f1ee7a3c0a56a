"""Compare transports: is one faster, by how much, and with which confidence? Add "amqp" if RabbitMQ is installed."""

from exchange_simulation import compare

comparison = compare(["zeromq", "tcp"], rates=["4k"], repeats=6, seconds=1.0, results="results", on_progress=print)

print(comparison)
for arm in comparison.arms:
    print(f"{arm.label:<28} p50 {arm.due_p50_us} us, p99 {arm.due_p99_us} us")
for verdict in comparison.verdicts:
    print(f"{verdict.metric}: {verdict.sentence}")
print("page:", comparison.page)
