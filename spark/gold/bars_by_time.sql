-- A row for each :every_ns of an instrument in which anything happened: prices, volume, spread and depth.
-- vwap is the mean price of a lot; volatility the standard deviation of the lots' prices around it, in ticks.
-- Depth is the lots that rest at the bar's end: a trade takes its volume from both sides. `orders` counts every message.
with events as (
  select experiment, run, instrument, time_ns - time_ns % :every_ns as bar,
    sequence as traded, price, volume, cast(null as bigint) as quoted, cast(null as int) as bid,
    cast(null as int) as ask, cast(null as bigint) as ordered, cast(null as string) as side, cast(null as int) as lots
  from trades where time_ns is not null
  union all
  select experiment, run, instrument, time_ns - time_ns % :every_ns as bar,
    null, null, null, sequence, bid, ask, null, null, null
  from quotes where time_ns is not null
  union all
  select experiment, run, instrument, time_ns - time_ns % :every_ns as bar,
    null, null, null, null, null, null, sequence, side,
    case when reject_reason is null then coalesce(volume, 0) - coalesce(cancelled_volume, 0) else 0 end
  from orders where time_ns is not null
), bars as (
  select experiment, run, instrument, bar,
    min_by(price, traded) as open, max(price) as high, min(price) as low, max_by(price, traded) as close,
    coalesce(sum(volume), 0) as volume, count(traded) as trades,
    sum(1e0 * price * volume) / sum(volume) as vwap,
    sqrt(greatest(sum(1e0 * price * price * volume) / sum(volume)
      - power(sum(1e0 * price * volume) / sum(volume), 2), 0)) as volatility,
    avg(ask - bid) as spread, max_by(bid, quoted) as bid, max_by(ask, quoted) as ask,
    nullif(count(ordered), 0) as orders,
    sum(case when side = 'bid' then lots when ordered is not null then 0 end) as bids,
    sum(case when side = 'ask' then lots when ordered is not null then 0 end) as asks
  from events group by experiment, run, instrument, bar
)
select /*+ repartition(1) */ experiment, run, instrument, bar / 1e9 as start_s, open, high, low, close, volume, trades,
  vwap, volatility, spread, bid, ask, orders, orders / nullif(trades, 0) as order_to_trade,
  sum(bids - volume) over so_far as bid_depth, sum(asks - volume) over so_far as ask_depth
from bars
window so_far as (partition by experiment, run, instrument order by bar)
order by experiment, run, instrument, start_s
