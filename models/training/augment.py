"""Augmentation of speech: vocal tracts, tempi, rooms, microphones, telephone lines, levels and
noises; and sounds that are not speech.
"""

from typing import NamedTuple

import numpy as np
import scipy.signal as signal
from scipy.linalg import solve_toeplitz

RATE = 16000


def rms(wave) -> float:
    return float(np.sqrt(np.mean(np.square(wave, dtype=np.float64)))) + 1e-6


def resample(wave, factor: float):
    """Resamples to play `factor` times faster: formants and pitch rise with it, and durations
    shrink (a man's voice becomes a child's, or the reverse).
    """
    count = int(len(wave) / factor)
    if factor > 1:
        wave = signal.sosfilt(signal.butter(4, min(0.97, 1 / factor), output='sos'), wave)
    return np.interp(np.arange(count) * factor, np.arange(len(wave)), wave).astype(np.float32)


def stretch(wave, factor: float):
    """Time-scale modification: plays `factor` times faster with the same pitch and formants
    (waveform-similarity overlap-add, 30 ms windows).
    """
    window, hop, search = 480, 240, 120
    taper = np.hanning(window).astype(np.float32)
    count = int(len(wave) / factor / hop) - 2
    if count < 3:
        return wave
    padded = np.concatenate(
        [np.zeros(search, np.float32), wave, np.zeros(window + 2 * search, np.float32)]
    )
    out = np.zeros(count * hop + window, np.float32)
    at = search
    for k in range(count):
        ideal = int(k * hop * factor) + search
        if k:
            follow = padded[at + hop : at + hop + window]
            region = padded[ideal - search : ideal + search + window]
            if len(follow) < window or len(region) < window + 2 * search:
                break
            match = signal.fftconvolve(region, follow[::-1], 'valid')
            energy = np.sqrt(
                np.convolve(region * region, np.ones(window, np.float32), 'valid') + 1.0
            )
            at = ideal - search + int(np.argmax(match / energy))
        else:
            at = ideal
        out[k * hop : k * hop + window] += padded[at : at + window] * taper
    return out


def breathy(wave, rng):
    """Breathiness: replaces a share of the voice's source by noise (linear prediction in 30 ms
    frames; the residual is mixed with noise of its envelope).
    """
    order, window = 18, 480
    hop = window // 2
    taper = np.hanning(window).astype(np.float32)
    share = rng.uniform(0.2, 1.0) if rng.random() < 0.7 else 1.0
    out = np.zeros(len(wave) + window, np.float32)
    starts = range(0, len(wave) - window, hop)
    for i in starts:
        frame = wave[i : i + window] * taper
        spectrum = np.abs(np.fft.rfft(frame, 1024)) ** 2
        r = np.fft.irfft(spectrum)[: order + 1]
        if r[0] < 1:
            continue
        r[0] *= 1.0005
        a = np.concatenate([[1.0], -solve_toeplitz(r[:order], r[1 : order + 1])])
        residual = signal.lfilter(a, [1.0], frame)
        noise = rng.standard_normal(window) * rms(residual) * taper * 1.6
        mixed = residual * np.sqrt(1 - share) + noise * np.sqrt(share)
        out[i : i + window] += signal.lfilter([1.0], a, mixed).astype(np.float32)
    return out[: len(wave)]


def equaliser(rng, depth_db=9.0):
    """Filter taps of a smooth random frequency response: microphones, spectral tilt of voices,
    small loudspeakers.
    """
    points = np.linspace(0, 1, 8)
    gain = 10 ** ((rng.normal(0, depth_db / 2, 8) + rng.normal(0, 4) * (points - 0.5) * 2) / 20)
    return signal.firwin2(129, points, np.clip(gain, 0.05, 12)).astype(np.float32)


def room(rng):
    """A room impulse response: direct sound, a few early reflections, and an exponential tail that
    gets darker.
    """
    seconds = rng.uniform(0.08, 0.7)
    count = int(seconds * RATE)
    tail = rng.standard_normal(count) * np.exp(-6.9 * np.arange(count) / count)
    tail = signal.sosfilt(signal.butter(1, rng.uniform(1500, 7000), fs=RATE, output='sos'), tail)
    tail[: int(0.002 * RATE)] = 0
    tail *= rng.uniform(0.05, 0.7) / (np.sqrt((tail**2).sum()) + 1e-9)
    tail[0] = 1
    for _ in range(rng.integers(0, 5)):
        tail[rng.integers(16, min(count, 500))] += rng.uniform(-0.4, 0.4)
    return tail.astype(np.float32)


def mu_law(wave, rng):
    """A telephone line: sampled at 8 kHz, 8-bit mu-law."""
    low = signal.sosfilt(
        signal.butter(
            5, [rng.uniform(80, 350), rng.uniform(3000, 3850)], 'band', fs=RATE, output='sos'
        ),
        wave,
    )
    if rng.random() < 0.5:
        scaled = np.clip(low / (np.abs(low).max() + 1), -1, 1)
        code = np.round(np.sign(scaled) * np.log1p(255 * np.abs(scaled)) / np.log(256) * 127) / 127
        low = (
            np.sign(code) * (np.exp(np.abs(code) * np.log(256)) - 1) / 255 * (np.abs(low).max() + 1)
        )
    return low.astype(np.float32)


def lossy(wave, rng):
    """A low-bitrate transform codec: sets small spectral coefficients of 32 ms blocks to zero."""
    frequencies, _, spectrum = signal.stft(wave, RATE, nperseg=512, noverlap=256)
    magnitude = np.abs(spectrum)
    keep = magnitude > magnitude.max(0, keepdims=True) * 10 ** (rng.uniform(-50, -28) / 20)
    keep &= (frequencies < rng.uniform(3800, 8000))[:, None]
    return signal.istft(spectrum * keep, RATE, nperseg=512, noverlap=256)[1][: len(wave)].astype(
        np.float32
    )


def coloured_noise(count, rng):
    white = rng.standard_normal(count).astype(np.float32)
    kind = rng.random()
    if kind < 0.3:
        return white
    if kind < 0.7:
        return signal.lfilter([1], [1, -rng.uniform(0.6, 0.98)], white)
    return signal.fftconvolve(white, equaliser(rng, 16), 'same')


def swell(count, rng):
    """A varying level, like that of traffic, wind and crowds: a smooth random curve, 0.5 to 8 Hz."""
    points = max(4, int(count / RATE * 2 * rng.uniform(0.5, 8)))
    return np.interp(
        np.linspace(0, points - 1, count),
        np.arange(points),
        np.exp(rng.normal(0, rng.uniform(0.2, 0.9), points)),
    ).astype(np.float32)


def hum(count, rng):
    t = np.arange(count) / RATE
    base = rng.choice([50, 60, 100, 120, rng.uniform(80, 400)])
    return sum(
        rng.uniform(0, 1) / k * np.sin(2 * np.pi * base * k * t + rng.uniform(0, 6.3))
        for k in range(1, 9)
    ).astype(np.float32) + 0.05 * rng.standard_normal(count).astype(np.float32)


def clicks(count, rng):
    """Impulsive noise (keyboards, doors, steps): short resonant bursts."""
    out = np.zeros(count + 4000, np.float32)
    for _ in range(max(1, int(count / RATE * rng.uniform(0.5, 8)))):
        length = int(rng.uniform(20, 2000))
        burst = rng.standard_normal(length) * np.exp(-5 * np.arange(length) / length)
        burst = signal.lfilter([1], [1, -2 * 0.95 * np.cos(rng.uniform(0.05, 2.5)), 0.9], burst)
        at = rng.integers(0, count)
        out[at : at + length] += (
            burst / (np.abs(burst).max() + 1e-9) * rng.uniform(0.1, 1)
        ).astype(np.float32)
    return out[:count]


def music(count, rng):
    """Music: chords, a bass, a lead with vibrato, and drums. It is harmonic and has the tempo of
    syllables, like speech.
    """
    out = np.zeros(count + RATE * 2, np.float32)
    beat = rng.uniform(0.22, 0.7)
    scale = np.array([0, 2, 4, 5, 7, 9, 11]) + rng.integers(0, 12)
    voices = rng.integers(1, 4)
    brightness = rng.uniform(0.3, 1.6)
    vibrato = rng.uniform(0, 0.012)
    drums = rng.random() < 0.6
    attack = rng.uniform(0.003, 0.08)
    for b in range(int(count / RATE / beat) + 1):
        at = int(b * beat * RATE)
        for v in range(voices):
            if rng.random() < 0.25:
                continue
            length = int(beat * RATE * rng.choice([0.9, 1.8, 0.45]))
            pitch = 110 * 2 ** ((rng.choice(scale) + 12 * rng.integers(0, 3)) / 12)
            t = np.arange(length) / RATE
            phase = 2 * np.pi * pitch * (t + vibrato * np.sin(2 * np.pi * 5.5 * t) / 5.5)
            tone = sum(
                k**-brightness * rng.uniform(0.3, 1) * np.sin(k * phase)
                for k in range(1, min(14, int(7000 / pitch) + 2))
            )
            tone *= np.minimum(1, t / attack) * np.exp(-t * rng.uniform(0.5, 6))
            if at + length < len(out):
                out[at : at + length] += tone.astype(np.float32)
        if drums:
            length = 1600
            hit = rng.standard_normal(length) * np.exp(-np.arange(length) / rng.uniform(100, 500))
            if rng.random() < 0.5:
                hit = hit * 0.3 + 2 * np.sin(2 * np.pi * 70 * np.arange(length) / RATE) * np.exp(
                    -np.arange(length) / 500
                )
            out[at : at + length] += (hit * rng.uniform(0.5, 2)).astype(np.float32)
    return out[:count]


def laughter(count, rng):
    """Laughter: bursts of breathy voice, four to six per second, falling in pitch and level,
    without lip movement.
    """
    out = np.zeros(count + RATE, np.float32)
    at = 0
    while at < count:
        pitch, rate = rng.uniform(110, 420), rng.uniform(3.5, 6.5)
        formants = [
            (rng.uniform(450, 850), 90),
            (rng.uniform(1100, 1900), 120),
            (rng.uniform(2300, 3000), 180),
        ]
        for k in range(rng.integers(3, 10)):
            length = int(RATE / rate)
            t = np.arange(length) / RATE
            f0 = pitch * (1 - 0.05 * k) * (1 - 0.3 * t / t[-1])
            pulses = np.diff(np.floor(np.cumsum(f0) / RATE), prepend=0) > 0
            source = pulses * 1.0 + rng.standard_normal(length) * rng.uniform(0.03, 0.15)
            source *= np.hanning(length) ** rng.uniform(0.5, 2) * 0.9**k
            for centre, width in formants:
                radius = np.exp(-np.pi * width / RATE)
                source = signal.lfilter(
                    [1], [1, -2 * radius * np.cos(2 * np.pi * centre / RATE), radius**2], source
                )
            out[at : at + length] += (source / (np.abs(source).max() + 1e-9))[
                : len(out) - at
            ].astype(np.float32)
            at += length
            if at >= count:
                break
        at += int(rng.uniform(0.2, 1.2) * RATE)
    return out[:count]


def not_speech(count, rng):
    """One stretch of a sound that must leave the mouth still."""
    kind = rng.random()
    if kind < 0.15:
        return np.zeros(count, np.float32)
    if kind < 0.40:
        return coloured_noise(count, rng)
    if kind < 0.47:
        return hum(count, rng)
    if kind < 0.57:
        return clicks(count, rng)
    if kind < 0.85:
        return music(count, rng)
    return laughter(count, rng)


class Severity(NamedTuple):
    """The distribution of channels: shares of sessions, unless stated otherwise."""

    rooms: float
    lines: tuple  # none, telephone, lossy, lowpass
    noises: float
    least_snr: float  # dB
    overdriven: float  # clipped at full scale, as by a microphone with too much gain
    quiet: float
    quiet_db: tuple  # dBFS, range
    clipped: float
    breathy: float
    tract: float  # standard deviation of the log of the vocal tract length factor


HARSH = Severity(0.35, (0.72, 0.10, 0.08, 0.10), 0.75, 0, 0.13, 0.42, (-48, -12), 0.05, 0.06, 0.16)
MILD = Severity(
    0.20, (0.85, 0.05, 0.05, 0.05), 0.40, 3, 0.07, 0.38, (-45, -14), 0.02, 0.03, 0.13
)  # mostly clean, like the output of a synthesizer


class Channel:
    """A random channel from the mouth to the server: source quality, room, line, noise and level.
    It is the same for a whole session.
    """

    def __init__(self, rng, babble, severity):
        self.rng, self.babble = rng, babble
        self.equaliser = equaliser(rng, 7.0) if rng.random() < 0.7 else None
        self.room = room(rng) if rng.random() < severity.rooms else None
        self.line = rng.choice(['', 'telephone', 'lossy', 'lowpass'], p=severity.lines)
        self.snr = rng.uniform(severity.least_snr, 36) if rng.random() < severity.noises else None
        kind = rng.random() - severity.overdriven
        self.level_db = (
            rng.uniform(-12, 1)
            if kind < 0
            else rng.uniform(*severity.quiet_db)
            if kind < severity.quiet
            else rng.normal(-23, 3)
        )
        self.clip = rng.random() < severity.clipped

    def noise(self, count):
        kind = self.rng.random()
        if kind < 0.5:
            noise = coloured_noise(count, self.rng)
            return noise * swell(count, self.rng) if self.rng.random() < 0.35 else noise
        if kind < 0.75:
            # babble: several talkers at once, so that none is intelligible
            mix = np.zeros(count, np.float32)
            for _ in range(self.rng.integers(3, 7)):
                voice = self.babble[self.rng.integers(len(self.babble))].astype(np.float32)
                mix += np.roll(
                    np.resize(voice / rms(voice), count), self.rng.integers(count)
                ) * self.rng.uniform(0.5, 1)
            return mix
        if kind < 0.85:
            return music(count, self.rng)
        return clicks(count, self.rng) + hum(count, self.rng) * self.rng.uniform(0, 0.5)

    def apply(self, wave, speech_rms):
        """Applies the channel: float wave -> int16 wave of the same length."""
        if self.equaliser is not None:
            wave = signal.fftconvolve(wave, self.equaliser)[64 : 64 + len(wave)]
        if self.room is not None:
            wave = signal.fftconvolve(wave, self.room)[: len(wave)]
        if self.snr is not None:
            noise = self.noise(len(wave))
            wave = wave + noise * (speech_rms / rms(noise) * 10 ** (-self.snr / 20))
        if self.line == 'telephone':
            wave = mu_law(wave, self.rng)
        elif self.line == 'lossy':
            wave = lossy(wave, self.rng)
        elif self.line == 'lowpass':
            wave = signal.sosfilt(
                signal.butter(3, self.rng.uniform(2800, 7000), fs=RATE, output='sos'), wave
            )
        wave = wave * (32768 * 10 ** (self.level_db / 20) / speech_rms)
        if self.clip:
            limit = np.quantile(np.abs(wave), self.rng.uniform(0.95, 0.998)) + 1
            wave = np.clip(wave, -limit, limit)
        return np.clip(np.round(wave), -32768, 32767).astype(np.int16)
