"""Spoken lines and texts of Beneath a Steel Sky, talkie version 0.0372 (Debian's
beneath-a-steel-sky): some thirty British actors, 11025 Hz.

The formats (contents of the two files, positions of sounds and texts, and the code of the letters)
are described by ScummVM's engines/sky (disk, text, sound).
"""

import os
import struct

import numpy as np

FOLDER = 'usr/share/scummvm/beneath-a-steel-sky'
RATE = 11025
# size of the directory in this version; other versions code their letters differently
ENTRIES = 5097
SPEECH, TEXT, HEADER = 50000, 60600, 22
SECTIONS = (
    0,
    600,
    1100,
    2430,
    3380,
    4530,
    5080,
    5230,
)  # number of the first line of each section among the sounds
# The binary code of the letters: its tree in depth-first order. ¦ is a branch, ¶ ends a text, ¤ are
# characters that English lacks.
TREE = (
    "¦¦¦ ¦ea¦¦¦os¦tn¦¦.ir¦¦¦¦¦¶Eu¦mA¦¦¦lI¦dR¦¦NST¦¦¦¦¦Ohc¦Dg¦¦¦LC¦pU¦¦!yM¦¦¦¦¦PvH¦?b¦¦¦'f,¦GB¦¦¦¦¦VkF¦qw¦¦¦K-W¦J*¦¦¦¦zY¦j+¦¦¦Q¤)¦¦Z¤<¦¦¦¦¦¤~¤¦¤:¦¦¦¤]#¦¦xX¤"
    '¦¦¦¦¦¤`2¦¦0¤1¦¦¦/(=¦¤^¦¦¦¦39¦¤4¦¦¦}8\\¦"¤¦¦¦¦&¤¦56¦¦¤¤¦¤¤¦¦¦¦¤7¤¦¦¤¤¦$@¤'
)


def _tree(signs):
    sign = next(signs)
    return (_tree(signs), _tree(signs)) if sign == '¦' else sign


def _files(folder):
    """{number: (offset, length)} in sky.dsk."""
    data = open(os.path.join(folder, 'sky.dnr'), 'rb').read()
    if struct.unpack('<I', data[:4])[0] != ENTRIES:
        raise SystemExit(f'{folder}/sky.dnr is not of version 0.0372, whose letters are known here')
    found = {}
    for number, at, size, sizes in struct.iter_unpack('<HIBB', data[4 : 4 + 8 * ENTRIES]):
        size = (at >> 24) | size << 8 | (sizes & 0x3F) << 16
        found[number] = ((at & 0x7FFFFF) << (4 if at & 0x800000 else 0), size)
    return found


def _codes(bits):
    """A Huffman table of RNC: (width, [(bits of the code, value)] indexed by the next `width` bits,
    lowest first).
    """
    lengths = [bits.take(4) for _ in range(bits.take(5))]
    width, code = max(lengths, default=0), 0
    table = [None] * (1 << width)
    for length in range(1, width + 1):
        for value in (v for v, n in enumerate(lengths) if n == length):
            mirrored = int(f'{code >> (16 - length):0{length}b}'[::-1], 2)
            for rest in range(1 << (width - length)):
                table[mirrored | rest << length] = (length, value)
            code += 1 << (16 - length)
    return width, table


class _Bits:
    """Reads bits of little-endian words, lowest first; literal bytes lie between the words."""

    def __init__(self, data, at):
        self.data, self.at, self.left, self.held = data, at, 0, 0

    def take(self, count):
        if count > self.left:
            self.held |= int.from_bytes(self.data[self.at : self.at + 2], 'little') << self.left
            self.at += 2
            self.left += 16
        value = self.held & ((1 << count) - 1)
        self.held >>= count
        self.left -= count
        return value

    def value(self, codes):
        width, table = codes
        seen = (
            self.held
            if self.left >= width
            else self.held | int.from_bytes(self.data[self.at : self.at + 2], 'little') << self.left
        )
        length, value = table[seen & ((1 << width) - 1)]
        self.take(length)
        return value if value < 2 else self.take(value - 1) | 1 << (value - 1)


def _unpacked(data):
    """Unpacks a file packed by Rob Northen's RNC, method 1: runs of literal bytes, each followed by
    a copy of earlier data.
    """
    size, out, bits = int.from_bytes(data[4:8], 'big'), bytearray(), _Bits(data, 18)
    bits.take(2)
    for _ in range(data[17]):
        plain, back, lengths = _codes(bits), _codes(bits), _codes(bits)
        pairs = bits.take(16)
        for left in range(pairs, 0, -1):
            count = bits.value(plain)
            out += data[bits.at : bits.at + count]
            bits.at += count
            if left > 1:
                distance, count = bits.value(back) + 1, bits.value(lengths) + 2
                while count > 0:
                    piece = out[len(out) - distance :][:count]
                    out += piece
                    count -= len(piece)
    if len(out) != size:
        raise ValueError(f'unpacked to {len(out)} bytes instead of {size}')
    return bytes(out)


def _texts(section):
    """The texts of a section. Their positions follow from lengths in units of a quarter of a byte,
    per block of 32 and within it.
    """
    tree = _tree(iter(TREE))
    lengths_at, texts_at = struct.unpack_from('<HH', section)
    blocks = struct.unpack_from(f'<{(lengths_at - 4) // 2}H', section, 4)
    bits = np.unpackbits(np.frombuffer(section, np.uint8))
    for number in range(texts_at - lengths_at):
        block, within = divmod(number, 32)
        lengths = section[lengths_at + 32 * block : lengths_at + 32 * block + within]
        at = (
            2 * (sum(blocks[:block]) + sum(n if n < 128 else (n & 127) << 3 for n in lengths))
            + 8 * texts_at
        )
        text = ''
        while at < len(bits):
            node = tree
            while isinstance(node, tuple) and at < len(bits):
                node = node[bits[at]]
                at += 1
            if node == '¶':
                break
            text += node if isinstance(node, str) else ''
        yield text


def loader(sound: bytes):
    """A function that reads a sound: (int16 wave, rate). Unsigned bytes, most of them packed."""

    def load() -> tuple:
        plain = _unpacked(sound) if sound[:4] == b'RNC\x01' else sound
        return (np.frombuffer(plain, np.uint8).astype(np.int16) - 128) << 8, RATE

    return load


def lines(root: str) -> list:
    """[(load, text, None)] of the spoken lines. `root` is the folder in which the package is
    unpacked (/ when it is installed). Only the scripts of the game know the speaker.
    """
    folder = os.path.join(root, FOLDER)
    files, disk, out = _files(folder), open(os.path.join(folder, 'sky.dsk'), 'rb').read(), []
    for k, first in enumerate(SECTIONS):
        at, size = files[TEXT + k]
        for number, text in enumerate(_texts(disk[at : at + size])):
            if SPEECH + first + number in files:
                at, size = files[SPEECH + first + number]
                out.append((loader(disk[at + HEADER : at + size]), text, None))
    return out
