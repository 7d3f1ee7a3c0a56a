-- Are bursts slow? The sampled completion times of a run by quarter of the market's activity: a sample is in the first
-- quarter if few orders traded in the :every_ns in which it was due, and in the fourth if many did. The pair of an
-- order is that of its market, whose trades are counted; the pair of a sample is the number of its gateway.
with activity as (
  select experiment, run, pair, time_ns div :every_ns as number, count(*) as trades
  from trades where time_ns is not null group by experiment, run, pair, time_ns div :every_ns
), sampled as (
  select experiment, run, orders.pair, id, orders.time_ns div :every_ns as number,
    (answered_ns - coalesce(due_ns, handed_over_ns)) / 1e3 as us
  from sample join orders using (experiment, run, id)
  where orders.time_ns is not null and orders.gateway = sample.pair
), ranked as (
  select experiment, run, us, coalesce(trades, 0) as trades,
    ntile(4) over (partition by experiment, run order by coalesce(trades, 0), id) as quarter
  from sampled left join activity using (experiment, run, pair, number)
)
select experiment, run, quarter, min(trades) as trades_from, max(trades) as trades_to, count(*) as samples,
  avg(us) as mean_us, median(us) as p50_us, percentile(us, 0.99) as p99_us, max(us) as max_us
from ranked group by experiment, run, quarter
order by experiment, run, quarter
