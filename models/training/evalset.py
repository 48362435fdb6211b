"""Writes the evaluation audio and its reference for `npm run eval:speech`: voices never trained on,
real people, degraded copies, and sounds that are not speech.

usage: evalset.py FOLDER
Writes FOLDER/<set>/<n>.s16 (16 kHz mono) and FOLDER/index.json with curves and closures. Reports
what it had to skip.
"""

import glob
import json
import os
import subprocess
import sys

import numpy as np
import scipy.io.wavfile
import scipy.signal

import align
import augment
import corpus
import engines
from frontend import FPS, RATE, steps_in
from prepare import LOOKAHEAD_S, prosody, speech_mask
from targets import BILABIAL, curves
from texts import Texts

SPHINX = '/usr/share/pocketsphinx/test/data/'
ALSA = '/usr/share/sounds/alsa/'
ASTERISK = '/usr/share/asterisk/sounds/en_US_f_Allison/'
KTUBERLING = '/usr/share/ktuberling/sounds/en/'
# KTuberling: words for file names that are not the spoken words, in the spelling of the pronouncing
# dictionary.
KTUBERLING_TEXT = {
    'broccolli': 'broccoli',
    'fallingstar': 'falling star',
    'moonwalker': 'moon walker',
    'palmtree': 'palm tree',
    'sphynx': 'sphinx',
}
# The words that Allison Smith speaks in Asterisk's core sounds (Debian's
# asterisk-core-sounds-en-g722), as far as they are certain.
ASTERISK_TEXT = {
    'all-circuits-busy-now': 'all circuits are busy now',
    'at-tone-time-exactly': 'at the sound of the tone the time will be exactly',
    'cannot-complete-as-dialed': 'your call cannot be completed as dialed',
    'conf-noempty': 'no empty conferences currently exist',
    'conf-onlyperson': 'you are currently the only person in this conference',
    'demo-echodone': 'the echo test has been completed',
    'dir-multi1': None,
    'feature-not-avail-line': 'that feature is not available on this line',
    'goodbye': 'goodbye',
    'hello-world': 'hello world',
    'invalid': "i'm sorry that is not a valid extension please try again",
    'one-moment-please': 'one moment please',
    'pbx-invalid': "i am sorry that's not a valid extension please try again",
    'please-try-again': 'please try again',
    'pm-invalid-option': 'that option is invalid please try again',
    'priv-introsaved': 'thank you please hold while i attempt to connect you with your party',
    'privacy-incorrect': "i'm sorry that number is not valid",
    'privacy-prompt': 'please enter your phone number starting with the area code',
    'queue-holdtime': 'the estimated hold time is currently',
    'queue-periodic-announce': 'all of our representatives are currently busy please stay on the line '
    'and your call will be answered by the next available representative',
    'queue-youarenext': 'your call is now first in line '
    'and will be answered by the next available representative',
    'something-terribly-wrong': 'something is terribly wrong',
    'ss-noservice': 'the number you have dialed is not in service please check the number and try again',
    'tt-monkeysintro': 'they have been carried away by monkeys',
    'tt-weasels': 'weasels have eaten our phone system',
    'vm-forward': 'press one to enter an extension press two to use the directory',
    'vm-goodbye': 'goodbye',
    'vm-instructions': 'to look up your messages press one now '
    'you may quit voicemail at any time by pressing the pound key',
    'vm-intro': 'please leave your message after the tone when done hang up or press the pound key',
    'vm-invalidpassword': 'that is not a valid password please try again',
    'vm-msgforwarded': 'your message has been successfully forwarded',
    'vm-newpassword': 'please enter your new password followed by the pound key',
    'vm-next': 'press six to play the next message',
    'vm-nobodyavail': 'nobody is available to take your call at the moment',
    'vm-prev': 'press four for the previous message',
    'vm-rec-busy': 'after the tone say your busy message and then press the pound key',
    'vm-rec-name': 'after the tone say your name and then press the pound key',
    'vm-rec-temp': 'after the tone say your temporary message and then press the pound key',
    'vm-rec-unv': 'after the tone say your unavailable message and then press the pound key',
    'vm-reenterpassword': 'please re enter your password followed by the pound key',
    'vm-repeat': 'press five to repeat the current message',
    'vm-review-urgent': 'press four to mark this message as urgent',
    'vm-savemessage': 'or nine to save this message',
    'vm-saveoper': 'press one to accept this recording otherwise please continue to hold',
    'vm-starmain': 'press star to return to the main menu',
    'vm-tempgreeting': 'press one to record your temporary greeting',
    'vm-tempgreetactive': 'your temporary greeting is currently active',
    'vm-tocallnum': 'press one to call this number',
    'vm-tohearenv': 'press three to hear the message envelope',
    'vm-tocancelmsg': 'press star to cancel this message',
    'vm-torerecord': 'press three to re record your message',
}
TARGET_RMS = 2320.0  # -23 dBFS
# sentences per synthetic voice, some 600 closures: the standard error of their F1 is .015 (with 50
# sentences .03)
SENTENCES = 200


def read(path):
    if path.endswith('.raw'):
        return np.fromfile(path, np.int16)
    if path.endswith(('.g722', '.ogg')):
        done = subprocess.run(
            ['ffmpeg', '-v', 'error', '-i', path, '-f', 's16le', '-ar', str(RATE), '-ac', '1', '-'],
            capture_output=True,
            check=True,
        )
        return np.frombuffer(done.stdout, np.int16)
    rate, wave = scipy.io.wavfile.read(path)
    return engines.to_16k(wave[:, 0] if wave.ndim > 1 else wave, rate)


def level(wave):
    loud = wave[np.abs(wave.astype(int)) > 300]
    return np.clip(
        wave * (TARGET_RMS / augment.rms(loud if len(loud) else wave)), -32768, 32767
    ).astype(np.int16)


def reference(wave, segments):
    """Reference curves at the times that the model's outputs describe (not shaped for the frame
    rate), and the intervals of closed lips.
    """
    steps = steps_in(len(wave))
    first = 1 / FPS - LOOKAHEAD_S
    mask = speech_mask(segments, steps, first)
    fine, _ = curves(segments, 3 * steps, 3 * FPS, first - 1 / (3 * FPS))
    brow, nod = prosody(wave, steps, first)
    shown = np.concatenate(
        [
            fine.reshape(steps, 3, -1).mean(1) * mask[:, None],
            (brow * mask)[:, None],
            (nod * mask)[:, None],
            mask[:, None],
        ],
        1,
    )
    closures = []
    for start, end, symbol in segments:
        if symbol in BILABIAL and end - start > 0.015:
            if closures and start - closures[-1][1] < 0.02:
                closures[-1][1] = end  # "stop playing", "some money": one closure
            else:
                closures.append([start, end])
    return np.round(shown, 3), [[round(a, 3), round(b, 3)] for a, b in closures]


def synthetic(name, seed, count, skipped):
    kind, _, voice = name.partition('_')
    texts, rng = Texts(seed), np.random.default_rng(seed)
    sentences = [texts.english() for _ in range(count)]
    try:
        if kind == 'flite':
            spoken = [
                engines.flite(
                    t, voice, rng.uniform(0.85, 1.15), rng.uniform(*corpus.FLITE_PITCH[voice])
                )
                for t in sentences
            ]
            out = [s for s in spoken if s is not None]
        else:
            out = [
                (w, s)
                for _, w, s in engines.festival(voice, sentences, rng.uniform(0.85, 1.15, count))
            ]
    except FileNotFoundError:
        out = []
    if not out:
        skipped.append(f'{name}: the {kind} program or its voice is not installed')
    return [(level(w), s) for w, s in out]


def people(skipped):
    """Real speakers: {set: [(wave, segments)]}."""
    sets = {}
    if not align.available():
        skipped.append(
            'real people: pocketsphinx and pocketsphinx-en-us are needed to align their speech'
        )
        return sets
    listed = []
    if os.path.exists(SPHINX):
        for folder in ('librivox', 'cards'):
            table = glob.glob(f'{SPHINX}{folder}/*transcription')[0]
            for line in open(table):
                text, name = line.rsplit('(', 1)
                listed.append(
                    (
                        f'{SPHINX}{folder}/{name.strip().rstrip(")")}.wav',
                        text.replace('<s>', '').replace('</s>', '').strip(),
                    )
                )
        listed.append((SPHINX + 'goforward.raw', 'go forward ten meters'))
    else:
        skipped.append('pocketsphinx-testdata is not installed')
    if os.path.exists(ALSA):
        listed += [
            (path, os.path.basename(path)[:-4].replace('_', ' ').lower())
            for path in sorted(glob.glob(ALSA + '*_*.wav'))
        ]
    else:
        skipped.append('alsa-utils is not installed')
    allison = [
        (f'{ASTERISK}{name}.g722', text)
        for name, text in ASTERISK_TEXT.items()
        if text and os.path.exists(f'{ASTERISK}{name}.g722')
    ]
    if not allison:
        skipped.append('asterisk-core-sounds-en-g722 is not installed')
    named = {
        path: os.path.basename(path)[:-4].split('_')[-1]
        for path in sorted(glob.glob(KTUBERLING + '*.ogg'))
    }  # egypt_camel.ogg says "camel"
    if not named:
        skipped.append('ktuberling-data is not installed')
    words = [(path, KTUBERLING_TEXT.get(name, name)) for path, name in named.items()]
    for name, files in (('people', listed), ('allison', allison), ('words', words)):
        recordings = [(level(read(path)), text) for path, text in files]
        aligned = align.align(recordings) if recordings else []
        kept = [
            (wave, segments)
            for (wave, _), segments in zip(recordings, aligned)
            if segments is not None
        ]
        if len(kept) < len(recordings):
            skipped.append(
                f'{name}: {len(recordings) - len(kept)} recordings that the aligner could not follow'
            )
        if kept:
            sets[name] = kept
    return sets


def degrade(wave, how, rng):
    x = wave.astype(np.float32)
    if how.startswith('snr'):
        speech = augment.rms(x[np.abs(x) > 300])
        if how.endswith('babble'):
            noise = augment.coloured_noise(
                len(x), rng
            )  # with a spectrum and level like a distant crowd
            noise = noise * (1 + 0.6 * np.sin(np.cumsum(rng.uniform(2, 8, len(x))) / RATE * 6.3))
        else:
            noise = scipy.signal.lfilter([1], [1, -0.7], rng.standard_normal(len(x)))
        x = x + noise * speech / augment.rms(noise) * 10 ** (
            -float(how[3:].removesuffix('babble')) / 20
        )
    elif how.startswith('gain'):
        x = x * 10 ** (float(how[4:]) / 20)
    elif how == 'telephone':
        x = scipy.signal.sosfilt(
            scipy.signal.butter(6, [300, 3400], 'band', fs=RATE, output='sos'), x
        )
    elif how == 'room':
        count = 6400
        tail = rng.standard_normal(count) * np.exp(-6.9 * np.arange(count) / count)
        tail *= 0.5 / np.sqrt((tail**2).sum())
        tail[0] = 1
        x = scipy.signal.fftconvolve(x, tail)[: len(x)]
    return np.clip(np.round(x), -32768, 32767).astype(np.int16)


def not_speech(rng):
    seconds = 8 * RATE
    scale = lambda x, db: np.clip(
        x / augment.rms(x) * 32768 * 10 ** (db / 20), -32768, 32767
    ).astype(np.int16)
    yield 'digital silence', np.zeros(seconds, np.int16)
    for db in (-70, -60, -50):
        yield (
            f'room noise {db} dBFS',
            scale(scipy.signal.lfilter([1], [1, -0.9], rng.standard_normal(seconds)), db),
        )
    yield 'white noise -40 dBFS', scale(rng.standard_normal(seconds), -40)
    yield 'mains hum -45 dBFS', scale(augment.hum(seconds, rng), -45)
    for k in range(4):
        yield 'music -20 dBFS', scale(augment.music(seconds, rng), -20)
    for k in range(3):
        yield 'laughter-like -22 dBFS', scale(augment.laughter(seconds, rng), -22)
    if os.path.exists(ALSA + 'Noise.wav'):
        yield 'alsa Noise.wav', read(ALSA + 'Noise.wav')


CONDITIONS = ['clean', 'snr15', 'snr5', 'snr15babble', 'gain20', 'gain-20', 'telephone', 'room']


def main():
    folder, skipped, index = sys.argv[1], [], []
    rng = np.random.default_rng(2024)
    sets = {
        name: got
        for name, got in (
            ('awb', synthetic('flite_awb', 901, SENTENCES, skipped)),
            ('ked', synthetic('festival_ked_diphone', 902, SENTENCES, skipped)),
        )
        if got
    }
    sets.update(people(skipped))
    count = 0

    def write(name, condition, wave, shown, closures):
        nonlocal count
        path = f'{count:04d}.s16'
        count += 1
        wave.tofile(os.path.join(folder, path))
        index.append(
            dict(
                set=name,
                condition=condition,
                file=path,
                curves=None if shown is None else shown.tolist(),
                closures=closures,
            )
        )

    os.makedirs(folder, exist_ok=True)
    for name, items in sets.items():
        for wave, segments in items:
            shown, closures = reference(wave, segments)
            for condition in CONDITIONS:
                write(name, condition, degrade(wave, condition, rng), shown, closures)
    for name, wave in not_speech(rng):
        write(name, 'not speech', wave, None, [])
    json.dump(
        dict(lookaheadMs=LOOKAHEAD_S * 1000, skipped=skipped, items=index),
        open(os.path.join(folder, 'index.json'), 'w'),
    )
    print(f'{count} recordings; skipped: {skipped or "nothing"}')


if __name__ == '__main__':
    main()
