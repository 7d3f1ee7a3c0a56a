-- A row for each instrument of a run: orders a trade, the mean spread by quote and by time, and the depth at the end.
with spans as (
  select experiment, run, instrument, ask - bid as spread,
    lead(time_ns) over (partition by experiment, run, instrument order by sequence) - time_ns as span_ns
  from {quotes}
), parts as (
  select experiment, run, instrument, count(*) as orders,
    sum(case when side = 'bid' then volume else 0 end) as bids, sum(case when side = 'ask' then volume else 0 end) as asks,
    cast(null as bigint) as trades, cast(null as bigint) as volume, cast(null as bigint) as quotes,
    cast(null as double) as spread, cast(null as double) as spread_by_time
  from {orders} group by experiment, run, instrument
  union all
  select experiment, run, instrument, null, null, null, count(*), sum(volume), null, null, null
  from {trades} group by experiment, run, instrument
  union all
  select experiment, run, instrument, null, null, null, null, null, count(*), avg(spread),
    sum(1e0 * spread * span_ns) / nullif(sum(case when spread is not null then span_ns end), 0)
  from spans group by experiment, run, instrument
), together as (
  select experiment, run, instrument, max(orders) as orders, max(trades) as trades, max(quotes) as quotes,
    max(volume) as volume, max(spread) as spread, max(spread_by_time) as spread_by_time,
    max(bids) as bids, max(asks) as asks
  from parts group by experiment, run, instrument
)
select experiment, run, instrument, orders, trades, quotes, orders / nullif(trades, 0) as order_to_trade, volume,
  spread, spread_by_time, bids - coalesce(volume, 0) as bid_depth, asks - coalesce(volume, 0) as ask_depth
from together order by experiment, run, instrument
