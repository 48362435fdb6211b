"""Trains the network on the shards. Resumable: a checkpoint every 500 steps holds weights, averaged
weights, optimiser and step.

usage: train.py NAME STEPS [--width 224] [--minutes M] [--threads 1] [--teacher NAME]
                [--start NAME | --from-onnx FILE] [--mild] [--seed N] [--bf16]
"""

import argparse
import glob
import json
import os
import time
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

import talkers
from frontend import WORK
from targets import CLASS_COUNT, INDEX
from network import CLOSURE, CURVES, RAW, SPEECH, Network

BATCH, LENGTH = 10, 256
# Weight of each channel in the loss: jaw open press round wide tuck upraise ttip tout tback teeth
# brow nod. The most visible channels have the largest weights.
WEIGHT = torch.tensor([1.3, 1.5, 2.6, 1.4, 1.1, 1.5, 0.4, 0.6, 0.4, 0.5, 0.9, 0.4, 0.4])
# Variances of the targets. Errors are divided by them, so that rare events have as much weight as
# constant movement.
VARIANCE = torch.tensor(
    [0.023, 0.032, 0.062, 0.038, 0.031, 0.038, 0.0033, 0.104, 0.014, 0.040, 0.075, 0.048, 0.041]
)
SHARDS_AT_ONCE = 12
CLOSED = 0.6  # lips are closed where the target of `press` exceeds this


class Voices(NamedTuple):
    """Augmentation of the features of a crop: how often it is lent to another talker, warped,
    coloured and loses a band; and the standard deviation of the warp in mel bands.
    """

    lent: float
    warped: float
    warp: float
    coloured: float
    gapped: float


VOICES, MILD_VOICES = Voices(0.8, 0.9, 0.045, 0.7, 0.15), Voices(0.8, 0.6, 0.035, 0.45, 0.08)
LENT = 0.2, 1.2  # range of the share of the difference between two talkers


class Data:
    """Random crops from a changing set of shards. A crop that starts within a session has no past:
    its first steps do not count.
    """

    def __init__(self, folder, rng, delay, voices):
        self.folder, self.rng, self.delay, self.voices, self.shards, self.at = (
            folder,
            rng,
            delay,
            voices,
            [],
            0,
        )
        self.kinds = list(np.load(talkers.PATH).values())
        self.shares = np.array([len(kind) for kind in self.kinds]) / sum(
            len(kind) for kind in self.kinds
        )
        self.refresh()

    def refresh(self):
        paths = sorted(glob.glob(os.path.join(self.folder, 'train_*.npz')))
        if not paths:
            raise SystemExit('no shards: run prepare.py first')
        while len(self.shards) < min(SHARDS_AT_ONCE, len(paths)):
            self._load(paths)
        if len(paths) > len(self.shards):
            self.shards.pop(0)
            self._load(paths)

    def _load(self, paths):
        z = np.load(paths[self.at % len(paths)])
        self.at += 1
        self.shards.append((z['F'], np.roll(z['Y'], self.delay, 0), z['C'], z['S']))

    def batch(self, memory):
        xs, ys, cs, scored = [], [], [], np.zeros((BATCH, LENGTH), np.float32)
        for b in range(BATCH):
            f, y, c, starts = self.shards[self.rng.integers(len(self.shards))]
            if self.rng.random() < 0.2:  # from the start of a session, as in the server
                i = int(starts[self.rng.integers(len(starts) - 1)])
                i = min(i, len(f) - LENGTH)
                scored[b, 0 if i in starts else memory :] = 1
            else:
                i = int(self.rng.integers(0, len(f) - LENGTH))
                scored[b, memory:] = 1
            xs.append(self.mask(self.lent(f[i : i + LENGTH].astype(np.float32), c[i : i + LENGTH])))
            ys.append(y[i : i + LENGTH])
            cs.append(c[np.arange(i, i + LENGTH) - self.delay, 1])
        return (
            torch.from_numpy(np.stack(xs)).float(),
            torch.from_numpy(np.stack(ys)).float(),
            torch.from_numpy(np.stack(cs)).long(),
            torch.from_numpy(scored),
        )

    def lent(self, f, c):
        """The speech as another talker might say it: each class of phones is shifted by the
        difference between two talkers of one kind of recording, some classes by that between two
        others.
        """
        r = self.rng
        if r.random() > self.voices.lent:
            return f
        pairs = []
        for _ in range(2):
            kind = self.kinds[r.choice(len(self.kinds), p=self.shares)]
            one, other = r.choice(len(kind), 2, replace=False)
            pairs.append((kind[one] - kind[other]) * r.uniform(*LENT))
        shift = np.where(r.random((CLASS_COUNT, 1)) < r.random(), *pairs)
        said = np.pad(
            np.eye(CLASS_COUNT, dtype=np.float32)[talkers.heard_classes(c)],
            ((1, 1), (0, 0)),
            'edge',
        )
        said = (said[:-2] + said[1:-1] + said[2:]) / 3
        return np.maximum(0, f + np.minimum(1, f * 4) * (said @ shift).reshape(f.shape))

    def mask(self, f):
        """Cheap voice variation on the features: a warped mel axis (two anchors move independently,
        like the formants of different heads), another long-term spectrum, a missing band.
        """
        r, bands, voices = self.rng, f.shape[2], self.voices
        if r.random() < voices.warped:
            x = np.linspace(0, 1, bands)
            src = np.clip(
                x + np.interp(x, [0, 0.33, 0.66, 1], [0, *r.normal(0, voices.warp, 2), 0]), 0, 1
            ) * (bands - 1)
            i = np.minimum(src.astype(int), bands - 2)
            w = (src - i).astype(np.float32)
            f = f[:, :, i] * (1 - w) + f[:, :, i + 1] * w
        if r.random() < voices.coloured:
            f = np.maximum(
                0,
                f
                + np.minimum(1, f * 4)
                * np.interp(
                    np.arange(bands), np.linspace(0, bands - 1, 6), r.normal(0, 0.15, 6)
                ).astype(np.float32),
            )
        if r.random() < voices.gapped:
            k = r.integers(0, 36)
            f[:, :, k : k + r.integers(2, 6)] *= 0.5 if r.random() < 0.5 else 0.0
        return f


def losses(raw, classes, y, c, scored, teacher=None):
    weight = scored[..., None]
    total = weight.sum()
    scale = WEIGHT / VARIANCE / WEIGHT.sum()
    # Squared errors: their minimum is the conditional mean. The minimum of absolute errors is the
    # median, which for a rare event such as a closure is "none".
    error = raw[..., :CURVES] - y[..., :CURVES]
    fit = (error.square() * scale * weight).sum() / total
    velocity = ((error[:, 1:] - error[:, :-1]).square() * scale * weight[:, 1:]).sum() / total
    gate = (
        F.binary_cross_entropy_with_logits(raw[..., SPEECH], y[..., SPEECH], reduction='none')
        * scored
    ).sum() / total
    closed = (y[..., INDEX['press']] > CLOSED).float()
    closure = (
        F.binary_cross_entropy_with_logits(raw[..., CLOSURE], closed, reduction='none') * scored
    ).sum() / total
    phone = (
        F.cross_entropy(classes.flatten(0, 1), c.flatten(), reduction='none') * scored.flatten()
    ).sum() / total
    loss = fit + 0.15 * velocity + 0.25 * gate + 0.2 * phone + 1.5 * closure
    if teacher is not None:
        raw_t, classes_t = teacher
        loss = (
            loss
            + ((raw[..., :CURVES] - raw_t[..., :CURVES]).square() * scale * weight).sum() / total
        )
        loss = (
            loss
            + 0.10
            * (
                F.kl_div(F.log_softmax(classes, 2), F.softmax(classes_t, 2), reduction='none').sum(
                    2
                )
                * scored
            ).sum()
            / total
        )
    return loss, dict(fit=float(fit), gate=float(gate), phone=float(phone), closure=float(closure))


def load(name):
    """The averaged weights of a trained network, in evaluation mode."""
    saved = torch.load(os.path.join(WORK, name + '.pt'), map_location='cpu')
    network = Network(**saved['config'])
    network.load_state_dict(saved['average'])
    return network.eval()


def from_onnx(path):
    """The network of a served model, read from its file (half precision, without the auxiliary
    output).
    """
    import onnx  # needed only here
    from onnx import numpy_helper

    weights = {
        t.name.removesuffix('_half').removeprefix('network.'): torch.from_numpy(
            numpy_helper.to_array(t).astype(np.float32)
        )
        for t in onnx.load(path).graph.initializer
        if t.name.startswith('network.')
    }
    if (
        len(weights['out.weight']) < RAW
    ):  # a model without an output for closures: begin with its `press`
        press = INDEX['press']
        weights['out.weight'] = torch.cat(
            [weights['out.weight'], 8 * weights['out.weight'][press : press + 1]]
        )
        weights['out.bias'] = torch.cat(
            [weights['out.bias'], 8 * (weights['out.bias'][press : press + 1] - 0.5)]
        )
    stem = weights['stem.weight'].shape[0]
    network = Network(weights['merge.weight'].shape[0], stem)
    network.load_state_dict(weights, strict=False)
    return network


def save(path, network, average, optimiser, step):
    torch.save(
        dict(
            config=network.config,
            weights=network.state_dict(),
            average=average,
            optimiser=optimiser.state_dict(),
            step=step,
        ),
        path + '.part',
    )
    os.replace(path + '.part', path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('name')
    parser.add_argument('steps', type=int)
    parser.add_argument('--width', type=int, default=224)
    parser.add_argument('--stem', type=int, default=64)
    parser.add_argument('--rate', type=float, default=1.5e-3)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument(
        '--minutes',
        type=float,
        default=1e9,
        help='wall-clock limit of this run: '
        'the learning rate then falls with the clock if that is ahead of the steps',
    )
    parser.add_argument('--teacher')
    parser.add_argument(
        '--delay',
        type=int,
        default=0,
        help='answers so many steps later: hears more of what follows, '
        'which serves alignment (viterbi.DELAY) and nothing else',
    )
    parser.add_argument(
        '--mild',
        action='store_true',
        help='on the milder shards, with milder voices and half the dropout: the last thing a network learns',
    )
    parser.add_argument(
        '--seed',
        type=int,
        default=0,
        help='other crops in another order, for runs whose weights are averaged',
    )
    parser.add_argument('--start', help='start from the averaged weights of a trained network')
    parser.add_argument(
        '--from-onnx', help='start from the weights of a served model instead of random ones'
    )
    parser.add_argument(
        '--bf16',
        action='store_true',
        help='products in bfloat16: twice as fast where the processor has avx512_bf16',
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    path = os.path.join(WORK, args.name + '.pt')
    network = (
        from_onnx(args.from_onnx)
        if args.from_onnx
        else load(args.start).train()
        if args.start
        else Network(args.width, args.stem)
    )
    for block in network.blocks:
        block.dropout *= 0.5 if args.mild else 1
    average = {k: v.clone() for k, v in network.state_dict().items()}
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=args.rate, weight_decay=2e-2, betas=(0.9, 0.98)
    )
    step = 0
    if os.path.exists(path):
        saved = torch.load(path)
        network.load_state_dict(saved['weights'])
        average, step = saved['average'], saved['step']
        optimiser.load_state_dict(saved['optimiser'])
    teacher = load(args.teacher) if args.teacher else None
    data = Data(
        os.path.join(WORK, 'shards-mild' if args.mild else 'shards'),
        np.random.default_rng(args.seed + step + 1),
        args.delay,
        MILD_VOICES if args.mild else VOICES,
    )
    print(
        args.name,
        sum(p.numel() for p in network.parameters()),
        'parameters, from step',
        step,
        flush=True,
    )
    started, mean, first = time.time(), {}, step / args.steps
    while True:
        progress = max(
            step / args.steps, first + (1 - first) * (time.time() - started) / (60 * args.minutes)
        )
        if progress >= 1:
            break
        for group in optimiser.param_groups:
            group['lr'] = (
                args.rate * min(1, step / 200) * (0.5 + 0.5 * np.cos(np.pi * progress)) + 1e-5
            )
        mel, y, c, scored = data.batch(network.memory)
        taught = None
        if teacher is not None:
            with torch.no_grad():
                taught = teacher(mel)
        with torch.autocast('cpu', torch.bfloat16, enabled=args.bf16):
            raw, classes = network(mel)
        loss, parts = losses(raw.float(), classes.float(), y, c, scored, taught)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        step += 1
        decay = min(0.998, step / (step + 50))
        for key, value in network.state_dict().items():
            average[key].lerp_(value, 1 - decay)
        for key, value in parts.items():
            mean[key] = mean.get(key, 0) + value / 100
        if step % 100 == 0:
            print(
                f'{args.name} {step} {time.time() - started:.0f} s',
                json.dumps({k: round(v, 4) for k, v in mean.items()}),
                flush=True,
            )
            mean = {}
        if step % 150 == 0:
            data.refresh()
        if step % 500 == 0:
            save(path, network, average, optimiser, step)
    save(path, network, average, optimiser, step)


assert CURVES == len(WEIGHT)

if __name__ == '__main__':
    main()
