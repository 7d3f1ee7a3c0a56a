"""Is one transport faster than another, by how much, and how sure is that? Add "amqp" where RabbitMQ is installed."""

from exchange_simulation import compare

found = compare(["zeromq", "tcp"], rates=["4k"], repeats=6, seconds=1.0, results="results", on_progress=print)

print(found)
for arm in found.arms:
    print(f"{arm.label:<28} p50 {arm.due_p50_us} us, p99 {arm.due_p99_us} us")
for verdict in found.verdicts:
    print(f"{verdict.metric}: {verdict.sentence}")
print("page:", found.page)
