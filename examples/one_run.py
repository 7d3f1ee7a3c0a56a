"""One run of the exchange: how long did an order wait for its answer, and where did the time go?"""

from exchange_simulation import run

found = run(transport="zeromq", rate="8k", orders="16k", results="results", on_progress=print)

print(found)
for clock, times in (("from due time", found.from_due), ("from handing over", found.from_handing_over)):
    if times:
        print(f"{clock:<18} p50 {times.p50_us:,.0f} us, p99 {times.p99_us:,.0f} us, most {times.max_us:,.0f} us")
print("CPU seconds:", {name: round(seconds, 2) for name, seconds in found.cpu_s.items()})
print(found.to_pandas()[["second", "orders_per_s", "due_p50_us", "due_p99_us"]].to_string(index=False))
print("page:", found.page)
