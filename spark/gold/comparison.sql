-- A row for each two arms of an experiment that are offered the same, and have either two transports and equal settings,
-- or one transport and other settings: figures of the second over those of the first.
with named as (
  select *, concat_ws(' ', transport, nullif(arm, '')) as name from arms
)
select experiment, first.offered_orders_per_s, first.name as first, second.name as second,
  second.due_p50_us / first.due_p50_us as due_p50_us_ratio,
  second.due_p99_us / first.due_p99_us as due_p99_us_ratio,
  second.handed_over_mean_us / first.handed_over_mean_us as handed_over_mean_us_ratio,
  second.orders_per_s / first.orders_per_s as orders_per_s_ratio,
  second.cpu_s_per_million / first.cpu_s_per_million as cpu_s_per_million_ratio
from named as first join named as second using (experiment)
where first.offered_orders_per_s <=> second.offered_orders_per_s and first.name < second.name
  and (first.transport = second.transport or first.arm = second.arm)
order by experiment, offered_orders_per_s, first, second
