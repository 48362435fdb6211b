"""Speech synthesizers that report the times of their phones: espeak-ng (as a library), flite and
festival (as programs).
"""

import ctypes
import os
import re
import subprocess
import tempfile

import numpy as np
import scipy.io.wavfile
import scipy.signal

from targets import SILENCE, STOPS, expand, phones

RATE = 16000
ARPABET = dict(
    pau='_',
    sil='_',
    brth='_',
    aa='ɑ',
    ae='æ',
    ah='ʌ',
    ao='ɔ',
    aw='aʊ',
    ax='ə',
    axr='ɚ',
    ay='aɪ',
    b='b',
    ch='tʃ',
    d='d',
    dh='ð',
    dx='ɾ',
    eh='ɛ',
    el='l',
    em='m',
    en='n',
    er='ɝ',
    ey='eɪ',
    f='f',
    g='g',
    hh='h',
    hv='h',
    ih='ɪ',
    iy='i',
    jh='dʒ',
    k='k',
    l='l',
    m='m',
    n='n',
    nx='n',
    ng='ŋ',
    ow='oʊ',
    oy='ɔɪ',
    p='p',
    r='ɹ',
    s='s',
    sh='ʃ',
    t='t',
    th='θ',
    uh='ʊ',
    uw='u',
    v='v',
    w='w',
    y='j',
    z='z',
    zh='ʒ',
)
RUSSIAN = dict(
    ii='i',
    yy='ɨ',
    uu='u',
    ee='ɛ',
    oo='o',
    aa='a',
    ae='ɪ',
    ay='ə',
    ur='ʊ',
    a='a',
    e='ɪ',
    i='i',
    y='ɨ',
    u='u',
    c='ts',
    ch='tʃ',
    sh='ʃ',
    sch='ʃ',
    zh='ʒ',
    h='x',
    hh='x',
    rr='r',
    ll='l',
    b='b',
    bb='b',
    v='v',
    vv='v',
    g='g',
    gg='g',
    d='d',
    dd='d',
    z='z',
    zz='z',
    j='j',
    k='k',
    kk='k',
    l='l',
    m='m',
    mm='m',
    n='n',
    nn='n',
    p='p',
    pp='p',
    r='r',
    s='s',
    ss='s',
    t='t',
    tt='t',
    f='f',
    ff='f',
    sil='_',
    pau='_',
)
# Phone names of other festival voices that differ from IPA. Left out: single letters that are their
# own symbol, stress digits, length marks and doubling.
FINNISH = {
    'y': 'y',
    '7': 'ø',
    '&': 'æ',
    '@': 'ə',
    'T': 'θ',
    'S': 'ʃ',
    'N': 'ŋ',
    'L': 'ʎ',
    'D': 'ð',
    'Z': 'ʒ',
}
ITALIAN = {
    'E': 'ɛ',
    'O': 'ɔ',
    'S': 'ʃ',
    'Z': 'ʒ',
    'ts': 'ts',
    'tS': 'tʃ',
    'dz': 'dz',
    'dZ': 'dʒ',
    'J': 'ɲ',
    'ng': 'ŋ',
    'nf': 'n',
    'L': 'ʎ',
}
CATALAN = {
    'ax': 'ə',
    'E': 'ɛ',
    'O': 'ɔ',
    'J': 'ɲ',
    'L': 'ʎ',
    'rr': 'r',
    'r': 'ɾ',
    'S': 'ʃ',
    'Z': 'ʒ',
    'N': 'ŋ',
}
CZECH = {
    'c': 'ts',
    'c~': 'tʃ',
    'ch': 'x',
    'd~': 'ɟ',
    'dz': 'dz',
    'dz~': 'dʒ',
    'h': 'ɦ',
    'n*': 'ŋ',
    'n~': 'ɲ',
    'r~': 'rʒ',
    'r~*': 'rʃ',
    's~': 'ʃ',
    't~': 'c',
    'z~': 'ʒ',
}
TELUGU = {
    'aa': 'a',
    'a': 'ə',
    'uh': 'ʊ',
    'uw': 'u',
    'ih': 'ɪ',
    'iy': 'i',
    'ee': 'e',
    'eh': 'e',
    'oo': 'o',
    'oh': 'o',
    'ae': 'æ',
    'au': 'aʊ',
    'ay': 'aɪ',
    'ch': 'tʃ',
    'sh': 'ʃ',
    'th': 't',
    'dh': 'd',
    'bh': 'b',
    'ph': 'f',
    'kh': 'k',
    'gh': 'g',
    'jh': 'dʒ',
    'j': 'dʒ',
    'y': 'j',
    'ng': 'ŋ',
    'nj': 'ɲ',
    'rx': 'r',
    'lx': 'l',
    'tx': 't',
    'dx': 'd',
    'nx': 'n',
}
LANGUAGE = {
    'msu_ru': RUSSIAN,
    'suo_fi': FINNISH,
    'hy_fi': FINNISH,
    'lp_': ITALIAN,
    'pc_': ITALIAN,
    'upc_ca': CATALAN,
    'czech': CZECH,
    'telugu': TELUGU,
}  # by the prefix of the voice's name; else English


def _ipa(name: str, table: dict) -> str:
    """The IPA symbol of a festival phone."""
    if name in table:
        return table[name]
    bare = name.rstrip('0123456789').rstrip(':')
    if bare in ('', '#', '##', 'h#', 'pau', '_', 'sil'):
        return SILENCE
    if bare not in table and len(bare) == 2 and bare[0] == bare[1]:
        bare = bare[0]
    bare = table.get(bare, bare)
    return bare if table is not ARPABET and phones(bare) else 'ə'


def _spirants(segments):
    """Catalan b, d and g are stops only after a pause or a nasal. Elsewhere b is an approximant,
    and the lips do not meet.
    """
    before = [SILENCE] + [symbol for _, _, symbol in segments]
    return [
        (start, end, 'β' if symbol == 'b' and last not in ('m', 'n', 'ŋ', SILENCE) else symbol)
        for (start, end, symbol), last in zip(segments, before)
    ]


def to_16k(wave: np.ndarray, rate: int) -> np.ndarray:
    """Resamples: int16 at `rate` -> int16 at 16 kHz."""
    if rate != RATE:
        divisor = int(np.gcd(RATE, rate))
        wave = scipy.signal.resample_poly(wave.astype(np.float32), RATE // divisor, rate // divisor)
    return np.clip(np.round(wave), -32768, 32767).astype(np.int16)


def _envelope(wave: np.ndarray) -> np.ndarray:
    """Log energy of the upper band, where bursts show: 5 ms windows, one per millisecond."""
    high = np.diff(wave.astype(np.float32), prepend=0)
    power = np.convolve(high * high, np.ones(80) / 80, 'same')[::16]
    return np.log(power + 1.0)


def split_stops(wave: np.ndarray, segments) -> list:
    """Splits each stop into its closure and its release at the burst found in the waveform. The
    release becomes an h: aspiration leaves the lips free.
    The lips are together during the closure only. A whole aspirated p as a closure would teach lips
    that open 30 to 60 ms late.
    """
    envelope, out = _envelope(wave), []
    for start, end, symbol in segments:
        i, j = int(start * 1000), min(int(end * 1000), len(envelope))
        if symbol not in STOPS or j - i < 25:
            out.append((start, end, symbol))
            continue
        part = envelope[i:j]
        low = int(np.argmin(part[: max(1, int(0.8 * len(part)))]))
        peak = part[low:].max()
        if peak - part[low] < 2.0:  # no burst: an unreleased or lenis stop
            out.append((start, end, symbol))
            continue
        burst = start + 0.001 * (low + int(np.argmax(part[low:] > 0.5 * (peak + part[low]))))
        burst = min(max(burst, start + 0.02), end)
        out.append((start, burst, symbol))
        if end - burst > 0.008:
            out.append((burst, end, 'h'))
    return out


class _Id(ctypes.Union):
    _fields_ = [('number', ctypes.c_int), ('name', ctypes.c_char_p), ('string', ctypes.c_char * 8)]


class _Event(ctypes.Structure):
    _fields_ = [
        ('type', ctypes.c_int),
        ('uid', ctypes.c_uint),
        ('text', ctypes.c_int),
        ('length', ctypes.c_int),
        ('audio', ctypes.c_int),
        ('sample', ctypes.c_int),
        ('user', ctypes.c_void_p),
        ('id', _Id),
    ]


class Espeak:
    """espeak-ng through its C interface, with phoneme events (espeakEVENT_PHONEME = 7, IPA names)."""

    # measured against a forced alignment of its own speech; the times of the other engines are
    # within 5 ms
    EVENTS_LATE_S = 0.012

    def __init__(self):
        self.library = ctypes.CDLL('libespeak-ng.so.1')
        callback = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
        )
        self._callback = callback(self._take)
        self.rate = self.library.espeak_Initialize(
            1, 0, None, 1 | 2
        )  # AUDIO_OUTPUT_RETRIEVAL; PHONEME_EVENTS | PHONEME_IPA
        self.library.espeak_SetSynthCallback(self._callback)

    def _take(self, wave, count, events):
        if wave and count > 0:
            self._waves.append(np.ctypeslib.as_array(wave, (count,)).copy())
        k = 0
        while events[k].type != 0:
            if events[k].type == 7:
                self._events.append(
                    (
                        max(0.0, events[k].sample / self.rate - self.EVENTS_LATE_S),
                        bytes(events[k].id.string).split(b'\0')[0].decode('utf8', 'ignore'),
                    )
                )
            k += 1
        return 0

    def speak(self, text: str, voice: str, rate: int, pitch: int, span: int):
        """(int16 wave at 16 kHz, expanded segments), or None when the voice does not exist or gives
        no sound.
        """
        self._waves, self._events = [], []
        if self.library.espeak_SetVoiceByName(voice.encode()) != 0:
            return None
        for parameter, value in ((1, rate), (3, pitch), (4, span)):
            self.library.espeak_SetParameter(parameter, value, 0)
        data = text.encode()
        self.library.espeak_Synth(data, len(data) + 1, 0, 1, 0, 1, None, None)
        self.library.espeak_Synchronize()
        if len(self._events) < 4:
            return None
        wave = to_16k(np.concatenate(self._waves), self.rate)
        return wave, self._segments(wave)

    def _segments(self, wave):
        # espeak reports a stop at its burst. The closure precedes it: move the start back over the
        # gap of low energy, by 70 ms at most.
        envelope = _envelope(wave)
        ends = [t for t, _ in self._events[1:]] + [len(wave) / RATE]
        spans = [[t, end, name or SILENCE] for (t, name), end in zip(self._events, ends)]
        out = [[0.0, spans[0][0], SILENCE]] if spans[0][0] > 0 else []
        for start, end, name in spans:
            if end <= start:
                continue
            if name[0] in STOPS and out:
                floor = max(out[-1][0] + 0.02, start - 0.07)
                around = envelope[
                    max(0, int((start - 0.15) * 1000)) : int((start + 0.1) * 1000) + 1
                ]
                quiet = (
                    around.max() - 4.2 if len(around) else 0
                )  # power below 1.5 % of the maximum nearby
                back = start - 0.004
                while back > floor and envelope[min(len(envelope) - 1, int(back * 1000))] < quiet:
                    back -= 0.002
                back = back if start - back > 0.008 else start - 0.02
                back = max(floor, min(start, back))
                out[-1][1] = back
                burst = start + 0.005
                if len(name) == 1 and end - burst > 0.02:
                    out += [[back, burst, name], [burst, end, 'h' if name in 'ptkqc' else 'ə']]
                    continue
                start = back
            out.append([start, end, name])
        return expand(out)


def flite(text: str, voice: str, stretch: float, pitch: float):
    """(int16 wave at 16 kHz, expanded segments) or None. `stretch` > 1 is slower; `pitch`: mean, Hz."""
    with tempfile.NamedTemporaryFile(suffix='.wav') as file:
        done = subprocess.run(
            [
                'flite',
                '-voice',
                voice,
                '-t',
                text,
                '-o',
                file.name,
                '-psdur',
                '--setf',
                f'duration_stretch={stretch:.2f}',
                '--setf',
                f'int_f0_target_mean={pitch:.0f}',
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            return None
        rate, wave = scipy.io.wavfile.read(file.name)
    segments, at = [], 0.0
    for name, end in re.findall(r'([a-z]+):([\d.]+)', done.stdout):
        segments.append((at, float(end), ARPABET.get(name, 'ə')))
        at = float(end)
    wave = to_16k(wave, rate)
    if len(wave) < 8000 or len(segments) < 4:
        return None
    return wave, split_stops(wave, expand(segments))


def festival(voice: str, sentences, stretches):
    """Yields (text, int16 wave at 16 kHz, expanded segments) for each sentence that the voice can
    speak, in one run of the program.
    """
    names = next((table for start, table in LANGUAGE.items() if voice.startswith(start)), ARPABET)
    encoding = 'iso-8859-2' if names is CZECH else 'utf-8'
    with tempfile.TemporaryDirectory() as folder:
        lines = [f'(voice_{voice})']
        for i, (text, stretch) in enumerate(zip(sentences, stretches)):
            text = text.replace('"', '').replace('\\', '')
            lines.append(
                f"(Parameter.set 'Duration_Stretch {stretch:.2f})"
                f'(unwind-protect (begin (set! u (utt.synth (Utterance Text "{text}")))'
                f'(utt.save.wave u "{folder}/{i}.wav" \'riff)(utt.save.segs u "{folder}/{i}.seg")) nil)'
            )
        script = os.path.join(folder, 'say.scm')
        open(script, 'w', encoding=encoding, errors='replace').write('\n'.join(lines))
        subprocess.run(
            ['festival', '-b', script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for i, text in enumerate(sentences):
            try:
                rate, wave = scipy.io.wavfile.read(f'{folder}/{i}.wav')
                rows = [line.split() for line in open(f'{folder}/{i}.seg', errors='ignore')]
            except (OSError, ValueError):
                continue
            segments, at = [], 0.0
            for row in rows:
                if len(row) == 3 and row[0] != '#':
                    segments.append((at, float(row[0]), _ipa(row[2], names)))
                    at = float(row[0])
            wave = to_16k(wave, rate)
            if len(segments) < 4 or len(wave) < 8000 or abs(at - len(wave) / RATE) > 0.5:
                continue
            if names is CATALAN:
                segments = _spirants(segments)
            yield text, wave, split_stops(wave, expand(segments))
