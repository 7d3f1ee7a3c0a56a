-- A row for every :every_ns from an instrument's first trade to its last, also where nothing was traded: the price then
-- is that of the last trade before, and the volume 0.
with traded as (
  select experiment, run, instrument, time_ns div :every_ns as number, max_by(price, sequence) as close,
    sum(volume) as volume, count(*) as trades
  from trades where time_ns is not null group by experiment, run, instrument, time_ns div :every_ns
), every_interval as (
  select experiment, run, instrument, explode(sequence(min(number), max(number))) as number
  from traded group by experiment, run, instrument
)
select experiment, run, instrument, number * :every_ns as start_ns,
  last(close, true) over (
    partition by experiment, run, instrument order by number rows between unbounded preceding and current row
  ) as price,
  coalesce(volume, 0) as volume, coalesce(trades, 0) as trades
from every_interval left join traded using (experiment, run, instrument, number)
order by experiment, run, instrument, start_ns
