from exchange_simulation.launching.network.wire import departure_ns

GIGABIT_PS = 1000
"""A bit's time at 1 Gbit/s."""


def test_a_frame_leaves_after_the_time_of_its_bits_and_the_delay():
    assert departure_ns(1_000, 0, 1514, GIGABIT_PS, 50_000) == (1_000 + 12_304 + 50_000, 1_000 + 12_304)


def test_a_short_frame_is_padded_as_on_a_cable():
    assert departure_ns(0, 0, 42, GIGABIT_PS, 0) == departure_ns(0, 0, 60, GIGABIT_PS, 0) == (672, 672)


def test_frames_that_arrive_together_pass_the_link_in_turn():
    first, free_ns = departure_ns(0, 0, 1514, GIGABIT_PS, 10_000_000)
    second, _ = departure_ns(0, free_ns, 1514, GIGABIT_PS, 10_000_000)
    assert second - first == 12_304


def test_a_frame_on_an_idle_link_leaves_without_waiting():
    assert departure_ns(1_000_000, 500, 60, GIGABIT_PS, 0) == (1_000_672, 1_000_672)
