"""Evaluates a network on natural voices that training never uses (prepare.VALIDATION), clean and in
noise: correlation of the mouth's curves, and closures found (counted as in
bench/speech-metrics.ts) by constant thresholds of their probability and by the served rule
(export.Shape). Thresholds and blends are chosen here.

usage: validate.py NAME...
"""

import sys

import numpy as np
import torch

import evalset
import export
import prepare
from frontend import FPS, RATE, features
from network import CLOSURE, SPEECH
from train import load

CONDITIONS = ('clean', 'snr25', 'snr15', 'snr5')
MINUTES, UTTERANCES, PAUSE_S = (
    4,
    3,
    0.2,
)  # minutes per group, utterances per session, pause between them
TOLERANCE_S = 0.04
MOUTH = 6  # the first articulators are the most visible ones


def sessions(group, rng):
    """{condition: [(features, reference curves, closures)]} of some minutes of a group's
    utterances, three per session.
    """
    items, out, seconds = prepare.load_groups([group])[group], {c: [] for c in CONDITIONS}, 0.0
    order = rng.permutation(len(items))
    for first in range(0, len(order) - UTTERANCES + 1, UTTERANCES):
        waves, segments, at = [], [], 0
        for i in order[first : first + UTTERANCES]:
            wave = np.concatenate(
                [evalset.level(items[i][0]), np.zeros(int(PAUSE_S * RATE), np.int16)]
            )
            segments += [(at / RATE + a, at / RATE + b, s) for a, b, s in items[i][1]]
            waves.append(wave)
            at += len(wave)
        wave = np.concatenate(waves)
        shown, closures = evalset.reference(wave, segments)
        for condition in CONDITIONS:
            out[condition].append(
                (features(evalset.degrade(wave, condition, rng)), shown, closures)
            )
        seconds += len(wave) / RATE
        if seconds > 60 * MINUTES:
            break
    return out


def closure_counts(press, closures):
    """(hits, found, true) of one recording. A hit: the middle of a run of `press` at .5 or more
    lies within TOLERANCE_S of a true interval; each counts once.
    """
    closed = np.concatenate([[0], (press >= 0.5).astype(np.int8), [0]])
    starts, ends = np.flatnonzero(np.diff(closed) == 1), np.flatnonzero(np.diff(closed) == -1)
    middles = [
        float(np.average(np.arange(a, b), weights=press[a:b]) + 1) / FPS - prepare.LOOKAHEAD_S
        for a, b in zip(starts, ends)
    ]
    free, hits = list(middles), 0
    for start, end in closures:
        match = next((m for m in free if start - TOLERANCE_S <= m <= end + TOLERANCE_S), None)
        if match is not None:
            free.remove(match)
            hits += 1
    return hits, len(middles), len(closures)


def scores(presses, closures):
    """(precision, recall, F1) over recordings."""
    hits, found, true = np.sum([closure_counts(p, c) for p, c in zip(presses, closures)], 0)
    return hits / max(1, found), hits / max(1, true), 2 * hits / max(1, found + true)


def served(raws, mels, shape):
    """`press` after post-processing, step by step, for all recordings at once."""
    pad = lambda parts: torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(p).float() for p in parts]
    )
    memory, out = torch.zeros(len(raws), shape.MEMORY), []
    for raw, mel in zip(pad(raws), pad(mels)):
        shown, memory = shape(raw, mel, memory)
        out.append(shown[:, 2])
    out = torch.stack(out, 1).numpy()
    return [out[i, : len(raw)] for i, raw in enumerate(raws)]


def at_threshold(raw, threshold):
    sigmoid = 1 / (1 + np.exp(-raw))
    return np.clip(sigmoid[:, CLOSURE] / (2 * threshold), 0, 1) * (sigmoid[:, SPEECH] > 0.5)


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    heard = {group: sessions(group, np.random.default_rng(5)) for group in prepare.VALIDATION}
    for name in sys.argv[1:]:
        network, shape = load(name), export.Shape()
        for condition in CONDITIONS:
            raws, mels, closures, r = [], [], [], []
            for group in prepare.VALIDATION:
                mine = [
                    network(torch.from_numpy(f)[None])[0][0].numpy()
                    for f, _, _ in heard[group][condition]
                ]
                x, y = (
                    np.concatenate(mine),
                    np.concatenate([shown for _, shown, _ in heard[group][condition]]),
                )
                r.append(np.mean([np.corrcoef(x[:, i], y[:, i])[0, 1] for i in range(MOUTH)]))
                raws += mine
                mels += [f for f, _, _ in heard[group][condition]]
                closures += [c for _, _, c in heard[group][condition]]
            print(
                name,
                condition,
                'r',
                ' '.join(f'{v:.3f}' for v in r),
                '| served P %.2f R %.2f F1 %.3f' % scores(served(raws, mels, shape), closures),
                '|',
                ' '.join(
                    '%.2f: %.2f/%.2f/%.3f'
                    % (t, *scores([at_threshold(raw, t) for raw in raws], closures))
                    for t in (0.2, 0.3, 0.4, 0.5)
                ),
                flush=True,
            )


if __name__ == '__main__':
    main()
