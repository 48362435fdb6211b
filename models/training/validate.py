"""
How the raw network does on a natural voice that training never hears (prepare.VALIDATION): per-channel correlation and, for the thresholds in export.py, closures found at each level of `press`.

usage: validate.py NAME     (makes its own shard, work/valid.npz, with a seed that training never uses)
"""
import os
import sys

import numpy as np
import torch

import prepare
from frontend import WORK
from targets import ARTICULATORS, INDEX
from train import load

SEED = 99991


def runs(mask):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return edges.reshape(-1, 2)


def events(truth, guess):
    """(precision, recall) of runs of frames: a guessed run counts when its middle lies within a frame of a true one, each once."""
    want, got, hits, j = runs(truth), runs(guess), 0, 0
    middles = (got[:, 0] + got[:, 1] - 1) / 2
    for start, end in want:
        while j < len(middles) and middles[j] < start - 1:
            j += 1
        if j < len(middles) and middles[j] <= end:
            hits, j = hits + 1, j + 1
    return hits / max(1, len(got)), hits / max(1, len(want))


def main():
    path = os.path.join(WORK, 'valid.npz')
    if not os.path.exists(path):
        prepare.shard(SEED, prepare.load_groups([prepare.VALIDATION]), path)
    data = np.load(path)
    network, outputs = load(sys.argv[1]), []
    with torch.no_grad():
        for a, b in zip(data['S'][:-1], data['S'][1:]):
            outputs.append(network(torch.from_numpy(data['F'][a:b]).float()[None])[0][0].numpy())
    raw, y = np.concatenate(outputs), data['Y'].astype(np.float32)
    r = [np.corrcoef(raw[:, i], y[:, i])[0, 1] for i in range(len(ARTICULATORS))]
    print('r', ' '.join(f'{n} {v:.2f}' for n, v in zip(ARTICULATORS, r)), f'mouth {np.mean(r[:6]):.3f}')
    for name in ('press', 'tuck'):
        i = INDEX[name]
        for threshold in np.arange(.2, .6, .05):
            p, q = events(y[:, i] > .6, raw[:, i] > threshold)
            print(f'{name} > {threshold:.2f}: precision {p:.2f} recall {q:.2f} F1 {2 * p * q / max(1e-6, p + q):.3f}')


if __name__ == '__main__':
    main()
