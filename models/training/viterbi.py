"""Forced alignment with a trained network: the most likely times of known phones, from its phone
classes at 90 Hz (three runs of the network, a third of a frame apart).
"""

import numpy as np

from frontend import FPS, RATE, features
from prepare import LOOKAHEAD_S
from targets import CLASSES, SILENCE, TABLE

FINE = 3 * FPS
BEFORE_S, AFTER_S = 0.3, 0.3  # silence added round a recording, in which the network settles
DELAY = 2  # steps by which the aligning network answers late (train.py --delay)
PRIOR = 0.7  # share of the prior of the classes that is divided out of the posteriors
VOWELS = set('iɪᵻɨeɛæaɑʌɐɒɔoɤʊuʉɯyʏøœɵəɘɜɚɝɞ')


def posteriors(wave, network):
    """(log posteriors [n, classes] at FINE Hz, time of the first in s) of an int16 wave at 16 kHz."""
    import torch  # not needed by the search below

    x = np.concatenate(
        [np.zeros(int(BEFORE_S * RATE), np.int16), wave, np.zeros(int(AFTER_S * RATE), np.int16)]
    )
    with torch.no_grad():
        parts = [
            torch.log_softmax(
                network(torch.from_numpy(features(x[round(j * RATE / FINE) :]))[None])[1][0], 1
            ).numpy()
            for j in range(3)
        ]
    count = min(len(p) for p in parts)
    return np.stack([p[:count] for p in parts], 1).reshape(3 * count, -1), (
        1 - DELAY
    ) / FPS - LOOKAHEAD_S - BEFORE_S


def _units(words):
    """[(symbol, least frames, optional)]: pauses between words, and aspiration after voiceless
    stops, are optional.
    """
    units = [(SILENCE, 3, False)]
    for k, word in enumerate(words):
        units += [(SILENCE, 4, True)] if k else []
        for symbol in word:
            units.append((symbol, 3 if symbol in VOWELS or symbol in 'pbm' else 2, False))
            units += [('h', 1, True)] if symbol in 'ptkc' else []
    return units + [(SILENCE, 3, False)]


def best_path(score, units) -> np.ndarray:
    """The unit of each row of `score` [n, classes] on the most likely path through `units`, int
    [n]; None when there are too few rows.
    """
    owner, before, ends = [], [], []
    for u, (_, least, _) in enumerate(units):
        for k in range(least):
            state = len(owner)
            from_ = [state - 1] if k else []
            if k == 0:  # from the previous unit, or over optional ones
                for v in range(u - 1, -1, -1):
                    from_.append(ends[v])
                    if not units[v][2]:
                        break
            if k == least - 1:
                from_.append(state)
            owner.append(u)
            before.append(from_)
        ends.append(len(owner) - 1)
    count, states = len(score), len(owner)
    before = np.array(
        [f + [states] * (4 - len(f)) for f in before]
    )  # state number `states` is unreachable
    classes = np.array([CLASSES.get(units[u][0], CLASSES['ə']) for u in owner])
    best = np.full(states + 1, -np.inf)
    best[0] = score[0, classes[0]]
    back, rows = np.zeros((count, states), np.int32), np.arange(states)
    for t in range(1, count):
        options = best[before]
        pick = options.argmax(1)
        back[t] = before[rows, pick]
        best[:states] = options[rows, pick] + score[t, classes]
    if not np.isfinite(best[states - 1]):
        return None
    path, state = np.zeros(count, int), states - 1
    for t in range(count - 1, -1, -1):
        path[t] = owner[state]
        state = back[t, state]
    return path


def align(wave, words, network, prior):
    """Expanded segments of words of IPA symbols, or None when the recording is too short for them.
    `prior`: log frequencies of the classes.
    """
    logp, first = posteriors(wave, network)
    units = _units([[s for s in word if s in TABLE] for word in words])
    path = best_path(logp - PRIOR * prior, units)
    if path is None:
        return None
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(path)) + 1, [len(path)]])
    time = lambda i: min(max(first + (i - 0.5) / FINE, 0.0), len(wave) / RATE)
    out = [(time(a), time(b), units[path[a]][0]) for a, b in zip(bounds[:-1], bounds[1:])]
    return [s for s in out if s[1] > s[0]]
