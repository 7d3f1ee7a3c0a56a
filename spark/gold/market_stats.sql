-- A row for each instrument of a run: its messages by kind, orders a trade, the mean spread by quote and by time, and the
-- depth at the end. `orders` counts every message, also cancels and replaces; cancelled_volume is what these took out.
with spans as (
  select experiment, run, instrument, ask - bid as spread,
    lead(time_ns) over (partition by experiment, run, instrument order by sequence) - time_ns as span_ns
  from quotes
), ordered as (
  select experiment, run, instrument, count(*) as orders, count_if(kind = 'cancel') as cancels,
    count_if(kind = 'replace') as replaces, count(reject_reason) as rejections,
    coalesce(sum(cancelled_volume), 0) as cancelled_volume,
    sum(case when side = 'bid' and reject_reason is null
      then coalesce(volume, 0) - coalesce(cancelled_volume, 0) else 0 end) as bids,
    sum(case when side = 'ask' and reject_reason is null
      then coalesce(volume, 0) - coalesce(cancelled_volume, 0) else 0 end) as asks
  from orders group by experiment, run, instrument
), traded as (
  select experiment, run, instrument, count(*) as trades, sum(volume) as volume
  from trades group by experiment, run, instrument
), quoted as (
  select experiment, run, instrument, count(*) as quotes, avg(spread) as spread,
    sum(1e0 * spread * span_ns) / nullif(sum(case when spread is not null then span_ns end), 0) as spread_by_time
  from spans group by experiment, run, instrument
)
select experiment, run, instrument, orders, cancels, replaces, rejections, cancelled_volume,
  trades, quotes, orders / nullif(trades, 0) as order_to_trade, volume,
  spread, spread_by_time, bids - coalesce(volume, 0) as bid_depth, asks - coalesce(volume, 0) as ask_depth
from ordered
full join traded using (experiment, run, instrument)
full join quoted using (experiment, run, instrument)
order by experiment, run, instrument
