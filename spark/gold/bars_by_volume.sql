-- A row for each :lots lots that an instrument traded. A trade belongs to the bar in which its first lot falls.
with numbered as (
  select *, ((sum(volume) over so_far) - volume) div :lots as bar
  from trades
  window so_far as (
    partition by experiment, run, instrument order by sequence rows between unbounded preceding and current row
  )
)
select experiment, run, instrument, bar, min(time_ns) as first_ns, max(time_ns) as last_ns,
  min_by(price, sequence) as open, max(price) as high, min(price) as low, max_by(price, sequence) as close,
  sum(volume) as volume, count(*) as trades,
  sum(1e0 * price * volume) / sum(volume) as vwap,
  sqrt(greatest(sum(1e0 * price * price * volume) / sum(volume)
    - power(sum(1e0 * price * volume) / sum(volume), 2), 0)) as volatility
from numbered group by experiment, run, instrument, bar
order by experiment, run, instrument, bar
