-- A row for each :every_ns of an instrument in which anything happened: prices, volume, spread and depth.
-- vwap is the mean price of a lot; volatility the standard deviation of the lots' prices around it, in ticks.
-- Depth is the lots that rest at the bar's end: a trade takes its volume from both sides. `orders` counts every message.
with traded as (
  select experiment, run, instrument, time_ns - time_ns % :every_ns as bar,
    min_by(price, sequence) as open, max(price) as high, min(price) as low, max_by(price, sequence) as close,
    sum(volume) as volume, count(*) as trades,
    sum(1e0 * price * volume) / sum(volume) as vwap,
    sqrt(greatest(sum(1e0 * price * price * volume) / sum(volume)
      - power(sum(1e0 * price * volume) / sum(volume), 2), 0)) as volatility
  from trades where time_ns is not null group by experiment, run, instrument, bar
), quoted as (
  select experiment, run, instrument, time_ns - time_ns % :every_ns as bar,
    avg(ask - bid) as spread, max_by(bid, sequence) as bid, max_by(ask, sequence) as ask
  from quotes where time_ns is not null group by experiment, run, instrument, bar
), ordered as (
  select experiment, run, instrument, time_ns - time_ns % :every_ns as bar, count(*) as orders,
    sum(case when side = 'bid' and reject_reason is null
      then coalesce(volume, 0) - coalesce(cancelled_volume, 0) else 0 end) as bids,
    sum(case when side = 'ask' and reject_reason is null
      then coalesce(volume, 0) - coalesce(cancelled_volume, 0) else 0 end) as asks
  from orders where time_ns is not null group by experiment, run, instrument, bar
)
select /*+ repartition(1) */ experiment, run, instrument, bar / 1e9 as start_s, open, high, low, close,
  coalesce(volume, 0) as volume, coalesce(trades, 0) as trades,
  vwap, volatility, spread, bid, ask, orders, orders / nullif(trades, 0) as order_to_trade,
  sum(bids - coalesce(volume, 0)) over so_far as bid_depth, sum(asks - coalesce(volume, 0)) over so_far as ask_depth
from traded
full join quoted using (experiment, run, instrument, bar)
full join ordered using (experiment, run, instrument, bar)
window so_far as (partition by experiment, run, instrument order by bar)
order by experiment, run, instrument, start_s
