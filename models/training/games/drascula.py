"""Spoken lines and texts of Drascula: The Vampire Strikes Back (Debian's drascula; Alcachofa Soft;
professional actors, in English).

A sound is a file of unsigned bytes at 11025 Hz; the texts are in drascula.dat, which comes with the
game. The formats are described by ScummVM's engines/drascula and devtools/create_drascula.
"""

import glob
import os
import re
import struct

import numpy as np

FOLDER = 'usr/share/scummvm/drascula/en'
RATE = 11025
ENGLISH = 0  # index among the languages of drascula.dat
HEADER = 9  # the signature DRASCULA and the version
TABLES = (
    4,
    4,
    4,
    2,
    4,
    2,
    4,
    2,
    2,
    20,
    20,
    10,
    8,
)  # the tables before the texts: record size of each
LISTS = (
    '',
    'D',
    'B',
    'BJ',
    'E',
    'I',
    'L',
    'P',
    'T',
    'VB',
)  # the lists of texts in order, by the prefix of the names of their sounds
ROLES = {
    '': 'HACKER',
    'D': 'DRASCULA',
    'B': 'DRUNK',
    'BJ': 'BJ',
    'E': 'DESIDERIO',
    'I': 'IGOR',
    'L': 'WEREWOLF',
    'P': 'PIANIST',
    'T': 'BARTENDER',
    'VB': 'VONBRAUN',
}
# Other speakers in list D: who, from where to where (talk_hacker, talk_blind, talk_bartender and
# talk_trunk of the engine).
GUESTS = (('HACKER', 56, 67), ('BLINDMAN', 68, 78), ('BARTENDER', 82, 82), ('TRUNK', 83, 83))


def texts(data: bytes) -> dict:
    """{prefix of a sound's name: texts}. Numbers have two bytes, high byte first. The size of a
    text counts itself and the zeros after the text.
    """
    at = HEADER

    def number() -> int:
        """The next number."""
        nonlocal at
        at += 2
        return struct.unpack_from('>H', data, at - 2)[0]

    for size in TABLES:
        count = number()
        at += count * size
    languages, found = number(), {}
    for name in LISTS:
        count = number()
        for language in range(languages):
            end = number() + at
            at += 2
            said = []
            for _ in range(count):
                size = number() - 2
                said.append(data[at : at + size].split(b'\0')[0].decode('cp850'))
                at += size
            assert at == end, 'not the drascula.dat known here'
            if language == ENGLISH:
                found[name] = said
    return found


def role(name: str, number: int) -> str:
    """The speaker of a line."""
    return next(
        (who for who, first, last in GUESTS if name == 'D' and first <= number <= last), ROLES[name]
    )


def clean(text: str) -> str:
    """A text in lower case, without stage directions. It is all in capitals, which a speech
    synthesizer might spell.
    """
    return re.sub(r'\s+', ' ', re.sub(r'\(.*?\)', '', text)).strip().lower()


def loader(path: str):
    """A function that reads a sound: (int16 wave, rate). The engine plays it without its first and
    last 32 bytes.
    """

    def load() -> tuple:
        return (np.fromfile(path, np.uint8)[32:-32].astype(np.int16) - 128) << 8, RATE

    return load


def lines(root: str) -> list:
    """[(load, text, speaker)] of the spoken lines. `root` is the folder in which the package is
    unpacked (/ when it is installed).
    """
    folder = os.path.join(root, FOLDER)
    with open(os.path.join(folder, 'drascula.dat'), 'rb') as stream:
        said = texts(stream.read())
    found = []
    for path in sorted(glob.glob(os.path.join(folder, '*.ALS'))):
        name, number = re.fullmatch(r'([A-Z]*)(\d+)\.ALS', os.path.basename(path)).groups()
        number = int(number)
        if name in said and number < len(said[name]) and clean(said[name][number]):
            found.append((loader(path), clean(said[name][number]), role(name, number)))
    return found
