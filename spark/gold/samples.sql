-- The estimates from sampled orders beside the figures of all orders. Spark and DuckDB take this statement.
-- The 95 % interval of the median is that of spark/samples.py. It runs between the samples of two ranks, each
-- 0.98 sqrt(n) from the middle rank: 1.96 standard deviations of sqrt(n) / 2. For fewer than six samples, low_rank is
-- below 1: no sample has it, so the interval is null.
-- Samples include the warm-up, and the summary leaves it out. So a run with a warm-up has no errors: they would compare
-- the figures of different orders.
with sampled as (
  select experiment, run, if(due_ns is null, 'handed_over', 'due') as clock,
    (answered_ns - coalesce(due_ns, handed_over_ns)) / 1e3 as us
  from sample
), ranked as (
  select *, row_number() over (partition by experiment, run, clock order by us) as rank,
    count(*) over (partition by experiment, run, clock) as samples
  from sampled
), bounded as (
  select *, floor((samples + 1) / 2 - 0.98 * sqrt(samples)) as low_rank from ranked
), estimated as (
  select experiment, run, clock, count(*) as samples, median(us) as p50_us, avg(us) as mean_us,
    max(case when rank = low_rank then us end) as p50_low_us,
    max(case when rank = samples + 1 - low_rank then us end) as p50_high_us
  from bounded group by 1, 2, 3
), exact as (
  select experiment, run, coalesce(due_count, handed_over_count) as orders,
    coalesce(due_p50_us, handed_over_p50_us) as p50_us, coalesce(due_mean_us, handed_over_mean_us) as mean_us
  from summary
), with_warm_up as (
  select experiment, run, warm_up_s > 0 as has_warm_up from runs
)
select experiment, run, clock, samples, orders,
  estimated.p50_us as sampled_p50_us, p50_low_us as sampled_p50_low_us, p50_high_us as sampled_p50_high_us,
  exact.p50_us, case when not has_warm_up then 100 * (estimated.p50_us / exact.p50_us - 1) end as p50_error_percent,
  estimated.mean_us as sampled_mean_us, exact.mean_us,
  case when not has_warm_up then 100 * (estimated.mean_us / exact.mean_us - 1) end as mean_error_percent
from estimated join exact using (experiment, run) join with_warm_up using (experiment, run)
order by experiment, run, clock
