"""The season of a series: its period, and members of the combined forecast that use it."""

import numpy as np

from .smoothing import Floats, Steps

_PROMINENCE = 0.3
"""How far the autocorrelation has to rise again after its lowest value, to be a season."""

_STANDARD_ERRORS = 4.0
"""How many standard errors of white noise its autocorrelation has to exceed."""

_SHORTEST = 4
"""Steps: a shorter season is noise at the steps of a scorer."""

_DISTANCE_GAIN = 0.2
"""Smoothing factor of the distance of a series from its last season."""


def periods(values: Floats, longest: int) -> Steps:
    """Return the period of each series in steps, at most `longest`; 0 without a season.

    `values` are [step, series]. The period is the highest peak of the autocorrelation, after the
    line through the series is removed.
    """
    steps = len(values)
    if longest <= _SHORTEST:
        return np.zeros(values.shape[1], np.intp)
    correlation = _autocorrelation(_without_line(values), longest + 2)
    lowest = np.minimum.accumulate(correlation, axis=0)[1:-1]
    before, inner, after = correlation[:-2], correlation[1:-1], correlation[2:]
    peaks = (inner >= before) & (inner >= after) & (inner - lowest >= _PROMINENCE)
    peaks &= inner > _noise(steps, len(inner))
    peaks[: _SHORTEST - 1] = False
    heights = np.where(peaks, inner, 0.0)
    return np.where(peaks.any(axis=0), heights.argmax(axis=0) + 1, 0)


def seasonal_weights(steps: int, ahead: int, period: int) -> Floats:
    """Return the weights of the values in forecasts of the mean of the `ahead` steps after each.

    The axes are [step, member, value]. Members: the last season and the mean of all seasons, each
    as it was and shifted by the recent distance from it. They are defined from the step `period`.
    """
    values = np.eye(steps)
    members = list[Floats]()
    for base in (values, _profile(values, period)):
        last = _last_season(base, ahead, period)
        members += [last, last + _distance(values, base, period)]
    return np.stack(members, axis=1)


def _profile(values: Floats, period: int) -> Floats:
    """Return the mean of each value and those at the same place of the seasons before."""
    profile = values.copy()
    for step in range(period, len(values)):
        before = profile[step - period]
        profile[step] = before + (values[step] - before) / (step // period + 1)
    return profile


def _last_season(base: Floats, ahead: int, period: int) -> Floats:
    """Return the mean of the next `ahead` steps, if they repeat the last season of `base`."""
    steps, total = np.arange(len(base)), np.zeros_like(base)
    for step in range(1, ahead + 1):
        seasons = -(-step // period)
        total += base[np.maximum(steps + step - period * seasons, 0)]
    return total / ahead


def _distance(values: Floats, base: Floats, period: int) -> Floats:
    """Return the smoothed distance of each value from its place in the season before."""
    distance = np.zeros_like(values)
    for step in range(period, len(values)):
        now = values[step] - base[step - period]
        distance[step] = distance[step - 1] + _DISTANCE_GAIN * (now - distance[step - 1])
    return distance


def _without_line(values: Floats) -> Floats:
    time = np.arange(len(values)) - (len(values) - 1) / 2
    centred = values - values.mean(axis=0)
    remaining: Floats = centred - time[:, None] * (time @ centred / (time @ time))
    return remaining


def _autocorrelation(values: Floats, lags: int) -> Floats:
    """Return the autocorrelation at the lags 0 to `lags` - 1, each divided by its own overlap."""
    steps = len(values)
    size = 2 * steps
    spectrum = np.fft.rfft(values.T, size, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    found = np.fft.irfft(power, size, axis=1)[:, :lags].T
    found *= (steps / (steps - np.arange(lags)))[:, None]
    scaled: Floats = np.divide(found, found[0], out=np.zeros_like(found), where=found[0] > 0)
    return scaled


def _noise(steps: int, lags: int) -> Floats:
    """Return, for the lags from 1, an autocorrelation that noise rarely has at any of them."""
    errors = _STANDARD_ERRORS / np.sqrt(steps - np.arange(1, lags + 1))
    return errors[:, None]
