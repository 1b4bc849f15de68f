from cluster_job.ledger import HOUR, LONGEST_PAUSE, STOPPED_ON_PURPOSE, Ledger, Period, Totals


def _train(ledger: Ledger, now: float, steps: range, seconds: float = 10.0) -> float:
    for step in steps:
        now += seconds
        ledger.step_done(now, step, seconds)
    return now


def test_steps_on_end_are_all_training_however_reports_cut_them() -> None:
    ledger, now, lost = Ledger(0.0), 0.0, []
    for step in range(100):
        now += 45.0
        ledger.step_done(now, step, 45.0)
        if step % 2:
            lost.append(ledger.close_period(now + 15.0).lost_seconds)

    assert lost == [0.0] * 50
    assert ledger.totals.goodput_of_run == 1.0


def test_a_step_that_is_done_again_is_lost_and_so_is_the_time_until_it() -> None:
    first = Ledger(0.0)
    first.close_period(_train(first, 0.0, range(30)), usd_per_hour=360.0)

    second = Ledger(500.0, first.totals)
    period = second.close_period(_train(second, 600.0, range(20, 40)), usd_per_hour=360.0)

    # 200 seconds after the death, 100 of setting up, and ten steps that the first process had done.
    assert period.lost_seconds == 300.0 + 100.0
    assert second.totals.kept_seconds == 400.0
    assert second.totals.cost_usd == 80.0
    assert period.goodput == (300.0 + 100.0) / 800.0


def test_a_long_step_counts_with_twice_the_median_and_one_that_hangs_is_lost_while_it_does() -> None:
    ledger = Ledger(0.0)
    ledger.close_period(now := _train(ledger, 0.0, range(20)))

    hanging = ledger.close_period(now + 100.0)
    ledger.step_done(now + 500.0, 20, 500.0)
    after = ledger.close_period(now + 500.0)

    assert (hanging.seconds, hanging.lost_seconds) == (80.0, 80.0)
    assert (after.seconds, after.lost_seconds) == (420.0, 400.0)


def test_a_night_after_a_failure_is_lost_and_not_paid() -> None:
    first = Ledger(0.0)
    first.close_period(_train(first, 0.0, range(360)), usd_per_hour=100.0)

    second = Ledger(13 * HOUR, first.totals)
    period = second.close_period(now := _train(second, 13 * HOUR, range(360, 720)), usd_per_hour=100.0)
    assert (period.lost_seconds, second.totals.cost_usd) == (12 * HOUR, 200.0)
    second.close_period(_train(second, now, range(720, 1080)), usd_per_hour=100.0)
    assert second.totals.cost_usd == 300.0


def test_goodput_is_that_of_the_last_hour() -> None:
    ledger = Ledger(0.0)
    ledger.close_period(now := 2 * HOUR)
    ledger.close_period(now := _train(ledger, now, range(180)))

    period = ledger.close_period(now)
    assert (period.goodput, period.is_whole_hour) == (0.5, True)


def test_what_lies_between_two_runs_on_purpose_is_neither_lost_nor_paid() -> None:
    for before in (
        Totals(at=0.0, cost_usd=1.0, finished=True),
        Totals(at=-LONGEST_PAUSE, cost_usd=1.0, ended=True),
        Totals(at=-STOPPED_ON_PURPOSE, cost_usd=1.0),
    ):
        ledger = Ledger(1.0, before)

        assert ledger.close_period(1.0, usd_per_hour=100.0) == Period(
            seconds=0.0, lost_seconds=0.0, goodput=0.0, is_whole_hour=False, steps=0, step_seconds=None
        )
        assert ledger.totals.cost_usd == 1.0
        assert not ledger.totals.finished


def test_the_last_hour_goes_on_over_processes_that_fail_again_and_again() -> None:
    totals, now, periods = None, 0.0, []
    for start in range(4):  # 20 minutes each, of which ten are training
        ledger = Ledger(now + 300.0, totals)
        now = _train(ledger, now + 600.0, range(60 * start, 60 * (start + 1)))
        periods.append(ledger.close_period(now))
        totals = ledger.totals

    assert [period.is_whole_hour for period in periods] == [False, False, False, True]
    assert periods[-1].goodput == 0.5
