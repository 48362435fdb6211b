"""Natural speech with known words for the corpus: the dialogues of three adventure games (games/:
some eighty roles in English) and of Fish Fillets (Debian's fillets-ng-data-cs: actors, in
Czech), and the names of Tux Paint's stamps (tuxpaint-stamps-default: one volunteer per language
reads nine hundred short phrases). espeak-ng gives the phones of a line, and a network trained on
the synthesizers aligns them (viterbi.py). Lines that do not fit the network's output are left
out.
"""

import ctypes
import glob
import os
import re
import subprocess
from functools import partial

import numpy as np
import torch

import train
import viterbi
from engines import RATE, to_16k
from frontend import FPS, WORK, features, steps_in
from games import drascula, queen, sky
from prepare import LOOKAHEAD_S
from targets import CLASS_COUNT, INDEX, curves, phones

FILLETS = '/usr/share/games/fillets-ng'
STAMPS = '/usr/share/tuxpaint/stamps'
ADVENTURES = {
    'sky': (sky, 'en-gb-x-rp'),
    'queen': (queen, 'en-us'),
    'drascula': (drascula, 'en-us'),
}  # with the language of their actors
ALIGNER = 'aligner'  # name of the network in the work folder
BELIEVED = 0.6  # least mean correlation of the curves of an alignment with the network's output
# Roles by the second part of a file name: the two fish, and all others (crabs, statues, ghosts;
# several voices).
ROLES = {'small': ('m',), 'big': ('v',)}


class Speller:
    """Converts words to phones by espeak-ng's rules for a language."""

    def __init__(self, language: str):
        self.library = ctypes.CDLL('libespeak-ng.so.1')
        self.library.espeak_Initialize(1, 0, None, 0)
        self.library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        if self.library.espeak_SetVoiceByName(language.encode()) != 0:
            raise SystemExit(f'espeak-ng has no voice {language}')

    def words(self, text: str) -> list:
        """Words of a text, each a list of known IPA symbols."""
        text_at, words = ctypes.c_char_p(text.encode()), []
        while text_at.value:
            said = self.library.espeak_TextToPhonemes(
                ctypes.byref(text_at), 1, 2 | ord('_') << 8
            ).decode()  # input UTF-8; output IPA, phonemes separated by _
            words += [
                [s for s in phones(word) if s != 'ʔ']
                for word in re.sub(r'\(.*?\)', '', said).split()
            ]
        return [word for word in words if word]


def lines(language: str) -> list:
    """[(load, text, role)] of the spoken lines of Fish Fillets."""
    texts = {}
    for path in sorted(glob.glob(f'{FILLETS}/script/*/*dialogs_{language}.lua')):
        texts.update(
            re.findall(
                r'dialogId\("([^"]+)"[^\n]*\n\s*dialogStr\("((?:[^"\\]|\\.)*)"\)',
                open(path, errors='ignore').read(),
            )
        )
    found = []
    for path in sorted(glob.glob(f'{FILLETS}/sound/*/{language}/*.ogg')):
        name = os.path.basename(path)[:-4]
        parts = name.split('-')
        if name in texts:
            role = next(
                (r for r, keys in ROLES.items() if len(parts) > 2 and parts[1] in keys), 'others'
            )
            found.append((partial(read, path), texts[name].replace('\\"', '"'), role))
    return found


def read(path: str) -> tuple:
    """Reads a sound file: (int16 wave of one channel, RATE), like the games' `load`. It uses sox,
    which starts four times as fast as ffmpeg: there are thousands of files.
    """
    done = subprocess.run(
        [
            'sox',
            '-D',
            path,
            '-t',
            'raw',
            '-r',
            str(RATE),
            '-c',
            '1',
            '-b',
            '16',
            '-e',
            'signed',
            '-',
        ],
        capture_output=True,
        check=True,
    )
    return np.frombuffer(done.stdout, np.int16), RATE


def class_prior() -> np.ndarray:
    """Log frequencies of the phone classes in the first shards."""
    counts = sum(
        np.bincount(np.load(path)['C'].ravel(), minlength=CLASS_COUNT)
        for path in sorted(glob.glob(os.path.join(WORK, 'shards', 'train_*.npz')))[:3]
    )
    return np.log((counts + 1) / counts.sum())


def _believable(wave, segments, network) -> bool:
    """Whether the curves of an alignment fit the network's output. They do not where the actor
    changed the text, or where music plays.
    """
    steps = steps_in(len(wave))
    shown, _ = curves(segments, steps, FPS, (1 - viterbi.DELAY) / FPS - LOOKAHEAD_S)
    with torch.no_grad():
        heard = network(torch.from_numpy(features(wave))[None])[0][0].numpy()
    pairs = [
        (shown[:, INDEX[n]], heard[:, INDEX[n]]) for n in ('jaw', 'open', 'round', 'wide', 'teeth')
    ]
    return np.mean([np.corrcoef(a, b)[0, 1] for a, b in pairs if np.ptp(a) > 1e-3]) > BELIEVED


def stamps(language: str) -> list:
    """[(load, text)] of the stamps with spoken names in a language. Each text is used once: the
    alphabets exist in several styles.
    """
    found = {}
    ending, name = (
        ('_desc.ogg', r'\A(.+)$')
        if language == 'en'
        else (f'_desc_{language}.ogg', rf'^{language}\.utf8=(.+)$')
    )
    for path in sorted(glob.glob(f'{STAMPS}/**/*{ending}', recursive=True)):
        try:
            named = re.search(
                name, open(path.removesuffix(ending) + '.txt', encoding='utf-8').read(), re.M
            )
        except FileNotFoundError:
            continue
        if named:
            found.setdefault(named[1].strip(), path)
    return [(partial(read, path), text) for text, path in found.items()]


def trimmed(wave: np.ndarray) -> np.ndarray:
    """Trims a recording to 0.2 s before its first and after its last loud moment (40 dB below the
    maximum), so that its length tells its tempo.
    """
    block = RATE // 100
    level = np.square(
        wave[: len(wave) // block * block].reshape(-1, block).astype(np.float32)
    ).mean(1)
    loud = np.flatnonzero(level > level.max() * 1e-4) if len(level) else []
    return wave[max(0, (loud[0] - 20) * block) : (loud[-1] + 20) * block] if len(loud) else wave[:0]


def _aligned(listed, language: str, shortest: float) -> list:
    """[(int16 wave, expanded segments, voice, text)] of the items [(load, text, voice)] that last
    from `shortest` to 12 s at a plausible tempo and that the network could align.
    """
    speller, network, prior, out = Speller(language), train.load(ALIGNER), class_prior(), []
    torch.set_num_threads(1)
    for load, text, voice in listed:
        wave, words = trimmed(to_16k(*load())), speller.words(text)
        seconds, count = len(wave) / RATE, sum(len(word) for word in words)
        if not (shortest < seconds < 12 and count > 4 and seconds / count < 0.25):
            continue
        segments = viterbi.align(wave, words, network, prior)
        if segments is not None and _believable(wave, segments, network):
            out.append((wave, segments, voice, text))
    return out


def utterances(kind: str, share=1.0) -> list:
    """[(int16 wave, expanded segments, voice, text)] of one talker or some roles: 'queen-joe',
    'sky', 'cs-small' of Fish Fillets, 'stamps-fr'. `share`: share of the recordings to use.
    """
    a, _, b = kind.partition('-')
    every = slice(None, None, max(1, round(1 / share)))
    if a in ADVENTURES:
        game, language = ADVENTURES[a]
        listed = [
            (load, text, f'{a}:{speaker}')
            for load, text, speaker in game.lines('/')[every]
            if b in ('', 'joe' if speaker == 'JOE' else 'others')
        ]
        return _aligned(listed, language, 0.8)
    if a == 'stamps':
        return _aligned([(load, text, f'stamps:{b}') for load, text in stamps(b)[every]], b, 0.6)
    return _aligned(
        [(load, text, f'fillets:{kind}') for load, text, role in lines(a)[every] if role == b],
        a,
        1.0,
    )
