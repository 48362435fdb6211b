"""Speech as the server takes it: PCM16, 16 kHz, mono."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from operator import mul

SPEECH_RATE = 16_000
"""Hz."""
CHUNK_BYTES = 6000
"""Bytes of speech in one message: 187.5 ms."""

Speech = bytes | bytearray | memoryview | Iterable[bytes] | AsyncIterable[bytes]
"""PCM16: all of it, or an iterable or async iterable of pieces."""

_PHASES = 64
_HALF_WIDTH = 16
_CLOSING = 1 << 15


class Resampler:
    """Resamples PCM16 of one stream to 16 kHz, with a windowed sinc."""

    def __init__(self, rate: int) -> None:
        """`rate` of the input in Hz, 4000 to 192,000. Raises ValueError."""
        if not 4000 <= rate <= 192_000:
            raise ValueError(f'The rate of speech must be 4000 to 192000 Hz, not {rate}.')
        self._step = rate / SPEECH_RATE
        self._half = math.ceil(_HALF_WIDTH * max(1.0, self._step))
        self._kernel = _make_kernel(self._half, min(1.0, 0.92 / self._step))
        self._input = array('h', bytes(2 * self._half))
        self._position = float(self._half)
        self._odd = b''

    def push(self, pcm: bytes) -> bytes:
        """Returns what can be computed now."""
        pcm = self._odd + pcm
        whole = len(pcm) & ~1
        self._odd = pcm[whole:]
        samples = array('h', pcm[:whole])
        if sys.byteorder == 'big':
            samples.byteswap()
        return self._convert(self._input + samples)

    def flush(self) -> bytes:
        """Returns the end of the stream."""
        return self._convert(self._input + array('h', bytes(2 * self._half)))

    def _convert(self, samples: array[int]) -> bytes:
        output = array('h')
        half, step, position = self._half, self._step, self._position
        end = len(samples) - half
        while position < end:
            whole = int(position)
            taps = self._kernel[int((position - whole) * _PHASES)]
            value = round(sum(map(mul, taps, samples[whole - half + 1 : whole + half + 1])))
            output.append(max(-_CLOSING, min(_CLOSING - 1, value)))
            position += step
        done = min(len(samples), int(position) - half)
        self._input = samples[done:]
        self._position = position - done
        if sys.byteorder == 'big':
            output.byteswap()
        return output.tobytes()


def _make_kernel(half: int, cutoff: float) -> list[list[float]]:
    """Hann-windowed low-pass filters, one per phase; `cutoff` is a share of the Nyquist rate."""
    kernel = []
    for phase in range(_PHASES):
        taps = []
        for tap in range(2 * half):
            x = tap - half + 1 - phase / _PHASES
            angle = math.pi * cutoff * x
            sinc = 1.0 if x == 0 else math.sin(angle) / angle
            taps.append(sinc * (0.5 + 0.5 * math.cos(math.pi * x / (half + 1))))
        total = sum(taps)
        kernel.append([tap / total for tap in taps])
    return kernel


async def _pieces(speech: Speech) -> AsyncIterator[bytes]:
    if isinstance(speech, (bytes, bytearray, memoryview)):
        yield bytes(speech)
    elif isinstance(speech, AsyncIterable):
        async for piece in speech:
            yield bytes(piece)
    else:
        for piece in speech:
            yield bytes(piece)


async def messages(speech: Speech, rate: int, opus: bool) -> AsyncIterator[bytes]:
    """Speech in messages. With `opus` each piece is one packet."""
    resampler = None if opus or rate == SPEECH_RATE else Resampler(rate)
    async for piece in _pieces(speech):
        if opus:
            yield piece
            continue
        for start in range(0, len(piece), CHUNK_BYTES):
            chunk = piece[start : start + CHUNK_BYTES]
            yield resampler.push(chunk) if resampler else chunk
    if resampler:
        yield resampler.flush()
