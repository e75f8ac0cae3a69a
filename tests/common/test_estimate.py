from quit.common.estimate import Estimate


def test_the_rest_at_the_pace_so_far() -> None:
    now = [100.0]
    estimate = Estimate(1200, clock=lambda: now[0])
    assert estimate.at(0) == "0 of 1,200"
    now[0] = 110.0
    assert estimate.at(200) == "200 of 1,200, 0:50 left"
    assert estimate.at(100) == "100 of 1,200, 1:50 left"
    assert estimate.at(1200) == "1,200 of 1,200"


def test_what_was_done_before_is_not_todays_pace() -> None:
    now = [0.0]
    estimate = Estimate(100, done=90, clock=lambda: now[0])
    now[0] = 10.0
    assert estimate.at(90) == "90 of 100"
    assert estimate.at(95) == "95 of 100, 0:10 left"
