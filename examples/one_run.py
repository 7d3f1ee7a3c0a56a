"""Make one run of the exchange: print the completion times of orders, and the CPU time of each component."""

from exchange_simulation import run

measured = run(transport="zeromq", rate="8k", orders="16k", results="results", on_progress=print)

print(measured)
for clock, times in (("from due time", measured.from_due), ("from handing over", measured.from_handing_over)):
    if times:
        print(f"{clock:<18} p50 {times.p50_us:,.0f} us, p99 {times.p99_us:,.0f} us, maximum {times.max_us:,.0f} us")
print("CPU seconds:", {name: round(seconds, 2) for name, seconds in measured.cpu_s.items()})
print(measured.to_pandas()[["second", "orders_per_s", "due_p50_us", "due_p99_us"]].to_string(index=False))
print("page:", measured.page)
