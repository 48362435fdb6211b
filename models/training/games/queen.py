"""Spoken lines and texts of Flight of the Amazon Queen (Debian's flight-of-the-amazon-queen; John
Passfield and Steven Stamatiadis; professional actors, in English).

The talkie version is one archive, queen.1c, which the ScummVM project repacked with MP3 sounds at
11025 Hz. The formats are described by ScummVM's engines/queen.
"""

import os
import re
import struct
import subprocess

import numpy as np

PACKED = 'usr/share/scummvm/flight-of-the-amazon-queen/queen.1c'
RATE = 11025
HEADER = 20  # bytes before the data in *.JAS, *.CUT and *.DOG
JOE_RESPONSES = (
    40  # Joe's stock answers; their sounds are numbered before those of the descriptions
)
PERSON = (-3, -4)  # image numbers of objects that are people
# Short names of dialogues and other names of actors -> the name used here (the owner of a dialogue:
# from the command tables of the game).
ALIASES = {
    'AND': 'ANDERSON',
    'ANDSON': 'ANDERSON',
    'JIM': 'JIMMY',
    'JOHN': 'JOHAN',
    'LARIS': 'MIKE',
    'PRIN': 'AZURA',
    'PRINCESS': 'AZURA',
    'SEC': 'SECRETARY',
    'TALLPYG': 'PYGMY',
    'TAM': 'TAMMY',
    'WEDGE': 'WEDGEWOOD',
}
# Sounds of apes, parrots, dogs, gagged people, guns and speakers of an invented language, and words
# with a letter repeated more than twice (except hmm and mmm).
NOISES = re.compile(r"""(?ix)\b(?: \w*ngh?[ao]\w* | ungha?|ugh | (?:wh|ar)?oo+p|eep|oot
                    | gr+|aroo+f|wh?oo+f|rowr|ruff | sq\w+k|[wf]?a+r+k | budda|glub
                    | \w*((?!m)[a-z])\1\1\w* | (?!h?m+\b|mrs\b|tsk\b|shh|psst)[b-df-hj-np-tv-xz]{3,} )\b""")


def table(data: bytes) -> dict:
    """{name: bytes} of the archive's files. Its header: QTBL, the version (E: English), the
    compression (1: MP3) and the count. An entry: name, bundle, offset, size.
    """
    magic, version, compression, count = struct.unpack('>4s6s2xBH', data[:15])
    if magic != b'QTBL' or version[:2] != b'CE' or compression != 1:
        raise ValueError('not the English talkie with MP3 sounds')
    entries = struct.iter_unpack('>12sBII', data[15 : 15 + 21 * count])
    return {name.rstrip(b'\0').decode(): data[at : at + size] for name, _, at, size in entries}


def segments(text: str) -> list:
    """[(number of the sound, text)] of a sentence. A sentence is split at each * with a
    two-character command (poses, pauses; XY: a walk, with eleven more characters), and each part
    has its own sound.
    """
    pieces = re.split(r'\*(?:XY.{11}|.{0,2})', text)
    return [(f'{number:X}', piece) for number, piece in enumerate(pieces, 1) if piece.strip()]


def string(data: bytes, at: int, align: int = 2) -> tuple:
    """Reads a text that is preceded by its length: (text, position after it)."""
    size = data[at]
    return data[at + 1 : at + 1 + size].decode('cp437'), (
        at + 1 + size + align - 1
    ) & -align if size else at + 1


def short(data: bytes, at: int) -> int:
    """A signed 16-bit number, high byte first."""
    return struct.unpack_from('>h', data, at)[0]


def who(name: str) -> str:
    """The person behind the name of an actor or a dialogue: X3_RITA, FAYE-H (her head, close),
    FAYE2 (her second dialogue).
    """
    name = re.sub(r'\AX\d+_|[-_].*|(?<!MAN)\d\Z', '', name)
    return ALIASES.get(name, name)


class World:
    """QUEEN.JAS and QUEEN2.JAS: Joe's sentences, and the people."""

    def __init__(self, files: dict):
        data, at = files['QUEEN.JAS'], HEADER

        def take(count: int, width: int) -> list:
            """`count` records of `width` numbers."""
            nonlocal at
            flat = struct.unpack_from(f'>{count * width}h', data, at)
            at += 2 * count * width
            return [flat[i : i + width] for i in range(0, len(flat), width)]

        def counted(width: int) -> list:
            """A count and its records. A count of 0 is followed by one record too."""
            count = take(1, 1)[0][0]
            return take(count or 1, width)[:count]

        [(rooms, names, objects, descriptions)] = take(1, 4)
        self.objects = take(
            objects, 8
        )  # fields: name, x, y, description, entry, room, state, image
        take(rooms + 1, 1), take(rooms, 1), counted(5), counted(5)
        for _ in range(rooms):  # the areas where Joe can walk
            take(take(1, 2)[0][1], 8)
        take(objects, 4), counted(3), counted(4)
        counted(10), counted(3), counted(3), counted(3), counted(4), take(1, 1), counted(2)
        [(actors, animations, actor_names, _)] = take(1, 4)
        self.actors = take(
            actors, 12
        )  # fields: room, number of the person in it, name, condition and its value …
        texts = files['QUEEN2.JAS'].decode('cp437').split('\r\n')
        self.descriptions = texts[:descriptions]
        after = descriptions + names + rooms + 12
        self.responses = texts[after : after + JOE_RESPONSES]
        after += JOE_RESPONSES + animations
        self.names = texts[after : after + actor_names]

    def person(self, number: int):
        """The name of the person that an object is (None where the state of the game decides it)."""
        if number <= 0:
            return 'JOE' if number > -2 else None
        if number > len(self.objects):
            return None
        room = self.objects[number - 1][5]
        place = sum(o[5] == room and o[7] in PERSON for o in self.objects[:number])
        found = {who(self.names[a[2] - 1]) for a in self.actors if a[:2] == (room, place)}
        return found.pop() if len(found) == 1 else None


def said_by_joe(world: World):
    """(sound, text, speaker) of Joe's comments on things."""
    for number, text in enumerate(world.responses + world.descriptions, 1):
        yield f'JOE{number:04}', text, 'JOE'


def said_in_dialogue(data: bytes, other: str):
    """(sound, text, speaker) of a .DOG: a tree of sentences of Joe (J) and the other person (P).
    SSSS is spoken at the first meeting, XXXX at later ones.
    """
    data = data[HEADER:]
    levels, _, key, joes, others = (abs(v) for v in struct.unpack_from('>5h', data))
    theirs, _, second = struct.unpack_from('>3H', data, 22)
    ours = 32 + levels * 96
    if not short(data, ours + 2):
        yield f'{key:02}SSSSJ', string(data, ours + 4)[0], 'JOE'
    text, at = string(data, second)
    yield f'{key:02}XXXXP', text, other
    yield f'{key:02}XXXXJ', string(data, at)[0], 'JOE'
    for at, count, mark, speaker in ((ours, joes, 'J', 'JOE'), (theirs, others, 'P', other)):
        for _ in range(count):
            number = short(data, at + 2)
            text, at = string(data, at + 4, 4)
            yield f'{key:02}{number & 0xFFFF:04X}{mark}', text, speaker


def said_in_scene(name: str, data: bytes, world: World):
    """(sound, text, speaker) of a .CUT: records of events, each with a sentence that is often
    empty.
    """
    data = data[HEADER:]
    count, text_at, at = abs(short(data, 2)), struct.unpack_from('>H', data, 8)[0], 12
    _, text_at = string(data, text_at)
    for number in range(1, count + 1):
        record = struct.unpack_from('>17h', data, at)
        # the people in the scene follow, preceded by their count
        at += 36 + 2 * short(data, at + 34)
        actor, animated, played, copied = record[0], record[4], record[5], record[12]
        person = (
            actor in (0, -1)
            or 0 < actor <= len(world.objects)
            and world.objects[actor - 1][7] in PERSON
        )
        if actor > -2 and (animated or not person) and copied <= 0 and played:
            while short(data, at) != -2:  # frames of the animation
                at += 20
            at += 2
        text, text_at = string(data, text_at)
        yield f'{name:_<5}{number:02}', text, world.person(actor)


def clean(text: str) -> str:
    """A text without stage directions, (sigh), <sneeze>, and the signs ^_ (trade mark) and @@
    (hearts). Empty when no letter is left.
    """
    text = re.sub(r'\s+', ' ', re.sub(r'\(.*?\)|<.*?>|\^_|@@', '', text)).strip()
    return text if re.search('[A-Za-z]', text) else ''


def loader(sound: bytes):
    """A function that reads an MP3: (int16 wave, rate). It uses sox with Debian's libsox-fmt-mp3,
    because ffmpeg starts many times slower and there are thousands of files.
    """

    def load() -> tuple:
        done = subprocess.run(
            [
                'sox',
                '-D',
                '-t',
                'mp3',
                '-',
                '-t',
                'raw',
                '-c',
                '1',
                '-b',
                '16',
                '-e',
                'signed',
                '-',
            ],
            input=sound,
            capture_output=True,
            check=True,
        )
        return np.frombuffer(done.stdout, np.int16), RATE

    return load


def lines(root: str) -> list:
    """[(load, text, speaker)] of the spoken lines. `root` is the folder in which the package is
    unpacked (/ when it is installed).
    """
    with open(os.path.join(root, PACKED), 'rb') as stream:
        files = table(stream.read())
    world = World(files)
    said = list(said_by_joe(world))
    for name, data in sorted(files.items()):
        if name.endswith('.DOG'):
            said += said_in_dialogue(data, who(name.removesuffix('.DOG')))
        elif name.endswith('.CUT'):
            said += said_in_scene(name.removesuffix('.CUT'), data, world)
    found = {}
    for sound, text, speaker in said:
        for part, piece in segments(text):
            name = f'{sound}{part}.SB'
            if name in files and clean(piece) and not NOISES.search(piece):
                found.setdefault(name, (loader(files[name]), clean(piece), speaker))
    return list(found.values())
