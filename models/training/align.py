"""Forced alignment of real speech with pocketsphinx: the phones of the known words are the words of
a grammar, so that each is recognised with its times.
"""

import os
import subprocess
import tempfile

import numpy as np

from engines import ARPABET, split_stops
from targets import SILENCE, expand

MODEL = '/usr/share/pocketsphinx/model/en-us'


def available() -> bool:
    return os.path.exists(MODEL + '/cmudict-en-us.dict') and os.path.exists(
        '/usr/bin/pocketsphinx_batch'
    )


def _dictionary(words):
    found = {}
    for line in open(MODEL + '/cmudict-en-us.dict'):
        name, *sounds = line.split()
        base = name.split('(')[0]
        if base in words:
            found.setdefault(base, []).append(sounds)
    missing = words - found.keys()
    if missing:
        raise SystemExit(f'not in the pronouncing dictionary: {sorted(missing)}')
    return found


def _grammar(words, dictionary):
    """A finite-state grammar: for each word one path of phones per pronunciation."""
    arcs, state, count = [], 0, 1
    for word in words:
        sounds_of = dictionary[word]
        end = count
        count += 1
        for sounds in sounds_of:
            at = state
            for k, sound in enumerate(sounds):
                to = end if k == len(sounds) - 1 else count
                count += to == count
                arcs.append(f'TRANSITION {at} {to} {1 / len(sounds_of):.4f} P_{sound}')
                at = to
        state = end
    return '\n'.join(
        [
            'FSG_BEGIN <align>',
            f'NUM_STATES {count}',
            'START_STATE 0',
            f'FINAL_STATE {state}',
            *arcs,
            'FSG_END',
            '',
        ]
    )


def align(recordings):
    """[(int16 wave at 16 kHz, text)] -> [expanded segments, or None where the alignment failed]."""
    dictionary = _dictionary({w for _, text in recordings for w in text.split()})
    sounds = {s for options in dictionary.values() for option in options for s in option}
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        open(path('phones.dict'), 'w').write(''.join(f'P_{s} {s}\n' for s in sorted(sounds)))
        for i, (wave, text) in enumerate(recordings):
            np.pad(wave, 1600).tofile(
                path(f'u{i}.raw')
            )  # 0.1 s of silence, which the acoustic model expects
            open(path(f'u{i}.fsg'), 'w').write(_grammar(text.split(), dictionary))
        ids = ''.join(f'u{i}\n' for i in range(len(recordings)))
        open(path('ids'), 'w').write(ids)
        subprocess.run(
            [
                'pocketsphinx_batch',
                '-hmm',
                MODEL + '/en-us',
                '-dict',
                path('phones.dict'),
                '-ctl',
                path('ids'),
                '-cepdir',
                folder,
                '-cepext',
                '.raw',
                '-adcin',
                'yes',
                '-fsgctl',
                path('ids'),
                '-fsgdir',
                folder,
                '-fsgext',
                '.fsg',
                '-ctm',
                path('ctm'),
                '-hyp',
                path('hyp'),
                '-beam',
                '1e-120',
                '-pbeam',
                '1e-120',
                '-wbeam',
                '1e-100',
                '-dither',
                'yes',
                '-seed',
                '1',
                '-bestpath',
                'no',
                '-cmn',
                'batch',
            ],
            stdout=subprocess.DEVNULL,
            stderr=open(path('log'), 'w'),
            check=True,
        )
        rows = {}
        for line in open(path('ctm')):
            name, _, start, duration, word = line.split()[:5]
            rows.setdefault(name, []).append((float(start) - 0.1, float(duration), word))
    out = []
    for i, (wave, text) in enumerate(recordings):
        got = rows.get(f'u{i}', [])
        spoken = [r for r in got if r[2].startswith('P_')]
        if len(spoken) < sum(min(len(o) for o in dictionary[w]) for w in text.split()):
            out.append(None)
            continue
        segments, at = [], 0.0
        for start, duration, word in spoken:
            if (
                segments and start - at < 0.03
            ):  # the aligner counts whole 10 ms frames and leaves one between phones
                segments[-1] = (segments[-1][0], start, segments[-1][2])
            elif start > at:
                segments.append((at, start, SILENCE))
            segments.append((start, start + duration, ARPABET[word[2:].split('(')[0].lower()]))
            at = start + duration
        segments.append((at, max(at, len(wave) / 16000), SILENCE))
        out.append(
            split_stops(
                wave, expand([(max(0.0, a), max(0.0, b), s) for a, b, s in segments if b > 0])
            )
        )
    return out
