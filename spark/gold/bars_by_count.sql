-- A row for each :trades trades of an instrument. The last bar has fewer.
with numbered as (
  select *, (row_number() over (partition by experiment, run, instrument order by sequence) - 1) div :trades as bar
  from trades
)
select experiment, run, instrument, bar, min(time_ns) as first_ns, max(time_ns) as last_ns,
  min_by(price, sequence) as open, max(price) as high, min(price) as low, max_by(price, sequence) as close,
  sum(volume) as volume, count(*) as trades,
  sum(1e0 * price * volume) / sum(volume) as vwap,
  sqrt(greatest(sum(1e0 * price * price * volume) / sum(volume)
    - power(sum(1e0 * price * volume) / sum(volume), 2), 0)) as volatility
from numbered group by experiment, run, instrument, bar
order by experiment, run, instrument, bar
