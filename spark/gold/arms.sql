-- A row for each arm: the repeats that are offered the same, over one transport, with the same other settings.
-- Medians are over the runs that are complete or saturated; the others are counted in left_out. packing, policy and
-- settings are those of the arm's first run, without what differs between repeats.
with measured as (
  select *, status in ('complete', 'saturated') as counts
  from runs
  join (select * except (status, transport, offered_orders_per_s, orders_per_s) from summary) using (experiment, run)
)
select experiment, arm, transport, offered_orders_per_s,
  min_by(packing, run) as packing, min_by(policy, run) as policy,
  map_filter(min_by(settings, run), (name, value) -> name not in ('seed', 'url')) as settings,
  count_if(counts) as repeats, count_if(not counts) as left_out,
  median(orders_per_s) filter (where counts) as orders_per_s,
  median(answers_per_s) filter (where counts) as answers_per_s,
  median(broker_cpu_percent) filter (where counts) as broker_cpu_percent,
  median(gateway_cpu_percent) filter (where counts) as gateway_cpu_percent,
  median(engine_cpu_percent) filter (where counts) as engine_cpu_percent,
  median(cpu_s_per_million) filter (where counts) as cpu_s_per_million,
  median(packets) filter (where counts) as packets,
  median(packet_bytes) filter (where counts) as packet_bytes,
  median(packet_gap_us) filter (where counts) as packet_gap_us,
  median(handed_over_count) filter (where counts) as handed_over_count,
  median(handed_over_mean_us) filter (where counts) as handed_over_mean_us,
  median(handed_over_min_us) filter (where counts) as handed_over_min_us,
  median(handed_over_p50_us) filter (where counts) as handed_over_p50_us,
  median(handed_over_p90_us) filter (where counts) as handed_over_p90_us,
  median(handed_over_p99_us) filter (where counts) as handed_over_p99_us,
  median(handed_over_p999_us) filter (where counts) as handed_over_p999_us,
  median(handed_over_max_us) filter (where counts) as handed_over_max_us,
  median(due_count) filter (where counts) as due_count,
  median(due_mean_us) filter (where counts) as due_mean_us,
  median(due_min_us) filter (where counts) as due_min_us,
  median(due_p50_us) filter (where counts) as due_p50_us,
  median(due_p90_us) filter (where counts) as due_p90_us,
  median(due_p99_us) filter (where counts) as due_p99_us,
  median(due_p999_us) filter (where counts) as due_p999_us,
  median(due_max_us) filter (where counts) as due_max_us,
  median(lag_count) filter (where counts) as lag_count,
  median(lag_mean_us) filter (where counts) as lag_mean_us,
  median(lag_min_us) filter (where counts) as lag_min_us,
  median(lag_p50_us) filter (where counts) as lag_p50_us,
  median(lag_p90_us) filter (where counts) as lag_p90_us,
  median(lag_p99_us) filter (where counts) as lag_p99_us,
  median(lag_p999_us) filter (where counts) as lag_p999_us,
  median(lag_max_us) filter (where counts) as lag_max_us
from measured group by experiment, arm, transport, offered_orders_per_s
order by experiment, arm, transport, offered_orders_per_s
