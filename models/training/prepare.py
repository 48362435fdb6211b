"""Makes training shards from the corpus: sessions of one voice through one random channel, with
features of the server's front end and targets per video frame.

usage: prepare.py SHARDS [FIRST] [harsh|mild]
Each shard holds about 45 minutes; its number is its seed. Existing shards are kept. Mild ones are
in a folder of their own.

A shard: F float16 [n, 3, 40], Y float16 [n, 14], C uint8 [n, 3] (class of phone, also a third of a
step before and after), S int64 [sessions + 1] (first step of each session).
"""

import os
import pickle
import sys
import time

import numpy as np

import augment
import targets
from frontend import FPS, RATE, WORK, features, steps_in

# output k describes the time (k + 1) / 30 - LOOKAHEAD_S: the look-ahead is all the audio that the
# model hears after the time that it describes
LOOKAHEAD_S = 0.060
SHARD_MINUTES = int(os.environ.get('SHARD_MINUTES', 45))
# Share of sessions per group. Human recordings (flite, festival) outweigh formant synthesis, which
# adds variety of languages and vocal tracts.
WEIGHTS = {
    'espeak': 0.18,
    'flite_slt': 0.13,
    'flite_rms': 0.15,
    'flite_kal16': 0.07,
    'flite_kal': 0.02,
    'festival_kal_diphone': 0.07,
    'festival_cmu_us_slt_arctic_hts': 0.08,
    'festival_msu_ru_nsh_clunits': 0.04,
    'festival_czech_dita': 0.022,
    'festival_czech_krb': 0.022,
    'festival_czech_machac': 0.022,
    'festival_czech_ph': 0.022,
    'festival_lp_diphone': 0.022,
    'festival_pc_diphone': 0.022,
    'festival_suo_fi_lj_diphone': 0.022,
    'festival_hy_fi_mv_diphone': 0.022,
    'festival_upc_ca_ona_hts': 0.02,
    'festival_telugu_NSK_diphone': 0.022,
    'natural_sky': 0.35,
    'natural_queen-joe': 0.12,
    'natural_queen-others': 0.40,
    'natural_cs-small': 0.06,
    'natural_cs-big': 0.06,
    **{f'natural_stamps-{language}': 0.07 for language in ('be', 'es', 'fr', 'ro', 'ru')},
}
# The validation voices, which choose thresholds and blends (validate.py) and are never in a shard:
# a Greek woman, a Catalan and a Danish man, half a minute of English, many roles in Czech.
VALIDATION = (
    'natural_drascula',
    'natural_stamps-el',
    'natural_stamps-ca',
    'natural_stamps-da',
    'natural_stamps-en',
    'natural_cs-others',
)

# Most recorded voices are men's: augmented copies of them tend to shorter vocal tracts, those of
# women to longer ones.
VOCAL_TRACT = {
    'espeak': 0.0,
    'flite_slt': -0.04,
    'festival_cmu_us_slt_arctic_hts': -0.04,
    'festival_czech_dita': -0.04,
    'festival_lp_diphone': -0.04,
    'festival_suo_fi_lj_diphone': -0.04,
    'festival_upc_ca_ona_hts': -0.04,
    'festival_czech_krb': -0.08,
    'natural_sky': 0.04,
    'natural_queen-joe': 0.05,
    'natural_cs-small': -0.04,
    'natural_stamps-be': -0.06,
    'natural_stamps-es': -0.04,
    'natural_stamps-ro': -0.04,
}


def prosody(wave, count, first):
    """(brow, nod) float32 [count] each at 30 Hz from time `first` s: raised by pitch above the
    talker's median, and by stressed syllables.
    """
    centres = ((first + np.arange(count) / FPS) * RATE).astype(int)
    padded = np.concatenate(
        [np.zeros(512, np.float32), wave.astype(np.float32), np.zeros(1024, np.float32)]
    )
    frames = padded[np.clip(centres, 0, len(wave))[:, None] + np.arange(1024)]
    energy = (frames**2).mean(1)
    spectrum = (
        np.abs(np.fft.rfft((frames - frames.mean(1, keepdims=True)) * np.hanning(1024), 2048)) ** 2
    )
    correlation = np.fft.irfft(spectrum)[:, :400]
    correlation /= correlation[:, :1] + 1e-3
    lags = np.arange(36, 270)  # 59 .. 444 Hz
    score = correlation[:, 36:270] * (
        1 - 0.0008 * (lags - 36)
    )  # the shortest good period, not a multiple of it
    voiced = (score.max(1) > 0.45) & (energy > energy.max() * 1e-3)
    if voiced.sum() < 5:
        return np.zeros(count, np.float32), np.zeros(count, np.float32)
    pitch = 12 * np.log2(RATE / lags[score.argmax(1)])
    middle = np.median(pitch[voiced])
    at = np.arange(count)
    contour = np.interp(at, at[voiced], np.clip(pitch[voiced] - middle, -7, 9))
    smooth = lambda x, width: np.convolve(np.pad(x, 15, mode='edge'), _gauss(width), 'same')[15:-15]
    loud = np.log(energy + energy.max() * 1e-3)
    loud = (loud - loud.min()) / (np.ptp(loud) + 1e-6)
    active = smooth(voiced.astype(float), 2.0)
    brow = np.clip((smooth(contour, 2.5) - 1.0) / 4.5, 0, 1) * np.minimum(1, active * 2)
    stress = smooth(loud * voiced, 1.5) - smooth(loud * voiced, 9.0)
    nod = np.clip(stress * 2.2 + np.maximum(0, smooth(contour, 2.0)) * 0.06 * active, 0, 1)
    return brow.astype(np.float32), smooth(nod, 1.5).astype(np.float32)


def _gauss(width):
    x = np.arange(-15, 16)
    k = np.exp(-0.5 * (x / width) ** 2)
    return k / k.sum()


def speech_mask(segments, count, first):
    """float32 [count]: 1 during speech (pauses under 0.25 s are bridged), with soft edges."""
    spans = []
    for start, end, symbol in segments:
        if symbol == targets.SILENCE:
            continue
        if spans and start - spans[-1][1] < 0.25:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    t = first + np.arange(count) / FPS
    mask = np.zeros(count)
    for start, end in spans:
        mask = np.maximum(
            mask, np.clip(np.minimum((t - start + 0.07) / 0.04, (end + 0.10 - t) / 0.06), 0, 1)
        )
    return mask.astype(np.float32)


def frame_targets(segments, steps):
    """(float32 [steps, 11], class uint8 [steps, 3]) at the time of each video frame; classes also a
    third of a frame before and after. Closures and bites shorter than a frame are kept, not
    averaged away.
    """
    first = 1 / FPS - LOOKAHEAD_S
    fine, classes = targets.curves(segments, 3 * steps, 3 * FPS, first - 1 / (3 * FPS))
    fine = fine.reshape(steps, 3, targets.N)
    out = fine.mean(1)
    press, tuck = targets.INDEX['press'], targets.INDEX['tuck']
    for i in (press, tuck):
        out[:, i] = fine[:, :, i].max(1)
    for name in ('open', 'jaw'):
        i = targets.INDEX[name]
        out[:, i] += (fine[:, :, i].min(1) - out[:, i]) * out[:, press]
    return out, classes.reshape(steps, 3)


def label(segments, clean, steps):
    """All 14 channels [steps, 14] and the phone classes [steps, 3] of a session, given its clean
    wave.
    """
    first = 1 / FPS - LOOKAHEAD_S
    curves, classes = frame_targets(segments, steps)
    mask = speech_mask(segments, steps, first)
    brow, nod = prosody(clean, steps, first)
    y = np.concatenate(
        [curves * mask[:, None], (brow * mask)[:, None], (nod * mask)[:, None], mask[:, None]], 1
    )
    return y.astype(np.float16), classes


def session(utterances, rng, babble, severity, middle=0.0):
    """One session: consecutive utterances of one group, with pauses and other sounds between ->
    (int16 wave, segments, clean float wave).
    `middle`: mean of the log vocal tract length factor of such sessions.
    """
    factor = (
        float(np.clip(np.exp(rng.normal(middle, severity.tract)), 0.70, 1.45))
        if rng.random() < 0.85
        else 1.0
    )
    tempo = rng.uniform(0.8, 1.25) if rng.random() < 0.3 else 1.0
    rough = rng.random() < severity.breathy
    waves, others, segments, at = [], [], [], 0

    def pause(seconds, sound=None):
        nonlocal at
        count = int(seconds * RATE)
        waves.append(np.zeros(count, np.float32))
        others.append(np.zeros(count, np.float32) if sound is None else sound(count))
        at += count

    def interlude(count):
        wave = augment.not_speech(count, rng)
        level = augment.rms(wave)
        fade = np.minimum(1, np.minimum(np.arange(count), np.arange(count)[::-1]) / 400)
        return (
            (wave / level * fade * 10 ** (rng.uniform(-22, 3) / 20)).astype(np.float32)
            if level > 1e-5
            else wave
        )

    if rng.random() < 0.7:
        pause(rng.uniform(0.02, 0.8))
    for wave, spans, _, _ in utterances:
        wave = wave.astype(np.float32)
        scale = 1.0
        if factor != 1:
            wave, scale = augment.resample(wave, factor), scale * factor
        if tempo != 1:
            wave, scale = augment.stretch(wave, tempo), scale * tempo
        if rough:
            wave = augment.breathy(wave, rng)
        wave = wave / augment.rms(wave) * 10 ** (rng.normal(0, 2) / 20)
        segments += [(at / RATE + a / scale, at / RATE + b / scale, s) for a, b, s in spans]
        waves.append(wave)
        others.append(np.zeros(len(wave), np.float32))
        at += len(wave)
        pause(rng.uniform(0.1, 1.3))
        if rng.random() < 0.25:
            pause(rng.uniform(0.8, 3.5), interlude)
            pause(rng.uniform(0.05, 0.6))
    clean = np.concatenate(waves)
    mixed = clean + np.concatenate(others)
    return augment.Channel(rng, babble, severity).apply(mixed, 1.0), segments, clean


def load_groups(names):
    groups = {
        n: pickle.load(open(os.path.join(WORK, 'corpus', n + '.pkl'), 'rb'))
        for n in names
        if os.path.exists(os.path.join(WORK, 'corpus', n + '.pkl'))
    }
    return {
        n: items for n, items in groups.items() if items
    }  # the alignments of a rehearsal's network are not reliable


def shard(number, groups, path, severity):
    rng = np.random.default_rng(number)
    names = list(groups)
    weights = np.array([WEIGHTS.get(n, 1.0) for n in names])
    babble = [u[0] for n in names for u in groups[n][::5]]
    all_f, all_y, all_c, starts = [], [], [], [0]
    while starts[-1] < SHARD_MINUTES * 60 * FPS:
        if rng.random() < 0.15:  # a session without any speech
            count = int(rng.uniform(3, 12) * RATE)
            wave = np.clip(augment.not_speech(count, rng), -8, 8)
            wave = np.clip(
                wave / augment.rms(wave) * 32768 * 10 ** (rng.uniform(-75, -15) / 20), -32768, 32767
            ).astype(np.int16)
            segments, clean = [], np.zeros(count, np.float32)
        else:
            name = rng.choice(names, p=weights / weights.sum())
            pool = groups[name]
            first, count = rng.integers(0, len(pool)), rng.integers(2, 6)
            wave, segments, clean = session(
                pool[first : first + count], rng, babble, severity, VOCAL_TRACT.get(name, 0.06)
            )
        steps = steps_in(len(wave))
        y, c = label(segments, clean, steps)
        all_f.append(features(wave).astype(np.float16))
        all_y.append(y)
        all_c.append(c)
        starts.append(starts[-1] + steps)
    np.savez(
        path + '.part.npz',
        F=np.concatenate(all_f),
        Y=np.concatenate(all_y),
        C=np.concatenate(all_c),
        S=np.array(starts),
    )
    os.replace(path + '.part.npz', path)


def main():
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    kind = sys.argv[3] if len(sys.argv) > 3 else 'harsh'
    severity, folder = {'harsh': (augment.HARSH, 'shards'), 'mild': (augment.MILD, 'shards-mild')}[
        kind
    ]
    os.makedirs(os.path.join(WORK, folder), exist_ok=True)
    groups = load_groups(WEIGHTS)
    for number in range(first, first + int(sys.argv[1])):
        path = os.path.join(WORK, folder, f'train_{number:03d}.npz')
        if os.path.exists(path):
            continue
        started = time.time()
        shard(number, groups, path, severity)
        print(f'shard {number}: {time.time() - started:.0f} s', flush=True)


if __name__ == '__main__':
    main()
