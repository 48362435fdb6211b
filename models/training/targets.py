"""From phones to articulator curves: dominance functions (Cohen and Massaro 1993) with a table of
targets per IPA symbol.
"""

import numpy as np

ARTICULATORS = [
    'jaw',
    'open',
    'press',
    'round',
    'wide',
    'tuck',
    'upraise',
    'ttip',
    'tout',
    'tback',
    'teeth',
]
N = len(ARTICULATORS)
INDEX = {name: i for i, name in enumerate(ARTICULATORS)}
SILENCE = '_'


def _vector(fill, **values):
    out = np.full(N, fill, np.float32)
    for name, value in values.items():
        out[INDEX[name]] = value
    return out


# symbol -> (target 0..1 per articulator, dominance: how strongly the phone prevails over its
# neighbours)
TABLE = {}


def _put(symbols, target, dominance):
    for symbol in symbols.split():
        TABLE[symbol] = (_vector(0, **target), _vector(0.25, **dominance))


def _vowel(symbols, jaw, open, round, wide, tback=0.0, upraise=0.0):
    _put(
        symbols,
        dict(jaw=jaw, open=open, round=round, wide=wide, tback=tback, upraise=upraise),
        dict(
            jaw=1,
            open=1,
            round=1,
            wide=1,
            press=0.8,
            tuck=0.8,
            upraise=0.8,
            ttip=0.5,
            tout=0.5,
            tback=0.6,
            teeth=0.5,
        ),
    )


_vowel('i', 0.18, 0.30, 0, 0.85, 0.2, 0.1)
_vowel('ɪ ᵻ ɨ', 0.26, 0.36, 0, 0.5, 0.1)
_vowel('e', 0.38, 0.45, 0, 0.65)
_vowel('ɛ', 0.48, 0.55, 0, 0.45, 0, 0.1)
_vowel('æ a', 0.75, 0.75, 0, 0.40, 0, 0.2)
_vowel('ɑ', 0.72, 0.72, 0.05, 0.08)
_vowel('ʌ', 0.5, 0.52, 0.05, 0.1)
_vowel('ɐ', 0.45, 0.48, 0.05, 0.1)
_vowel('ɒ ɔ', 0.58, 0.60, 0.5, 0, 0.2)
_vowel('o ɤ', 0.42, 0.45, 0.75, 0, 0.3)
_vowel('ʊ', 0.28, 0.32, 0.65, 0, 0.4)
_vowel('u ʉ ɯ', 0.20, 0.24, 1.0, 0, 0.5)
_vowel('y ʏ', 0.2, 0.25, 0.95, 0, 0.2)
_vowel('ø œ ɵ', 0.38, 0.42, 0.8, 0)
_vowel('ə ɘ', 0.32, 0.36, 0.08, 0.12)
_vowel('ɜ ɚ ɝ ɞ', 0.34, 0.38, 0.45, 0)
_put(
    'p b m ɓ',
    dict(jaw=0.06, press=1),
    dict(press=6, open=8, jaw=1.5, tuck=3, round=0.15, wide=0.15, upraise=1),
)
_put(
    'f v ɸ β ʋ ɱ',
    dict(jaw=0.12, open=0.10, tuck=1, upraise=0.25, teeth=0.3),
    dict(tuck=6, press=4, open=4, jaw=1.2, upraise=2, teeth=1, round=0.2, wide=0.2),
)
_put(
    'w ʍ',
    dict(jaw=0.16, open=0.14, round=1, tback=0.4),
    dict(round=3, open=3, jaw=1, press=2, wide=2, tback=0.5),
)
_put('ɥ', dict(jaw=0.16, open=0.16, round=1), dict(round=3, open=3, jaw=1, press=2, wide=2))
_ALVEOLAR = dict(
    ttip=4, jaw=1.0, open=0.5, press=2, tuck=2, round=0.12, wide=0.15, tback=0.5, teeth=0.6
)
_put('t d n ɾ ɳ ʈ ɖ ɗ', dict(jaw=0.16, open=0.28, ttip=1, teeth=0.4), _ALVEOLAR)
_put('l ɫ ɬ ɭ', dict(jaw=0.26, open=0.36, ttip=1, teeth=0.2), _ALVEOLAR)
_put(
    's z',
    dict(jaw=0.06, open=0.26, ttip=0.5, teeth=1, wide=0.35),
    dict(teeth=4, jaw=3, open=1, press=3, tuck=3, round=0.2, wide=0.3, ttip=1),
)
_put(
    'ʃ ʒ ɕ ʑ ʂ ʐ',
    dict(jaw=0.08, open=0.32, teeth=1, round=0.65, upraise=0.3),
    dict(teeth=4, jaw=3, open=1.5, press=3, tuck=3, round=1.5, wide=1, upraise=1),
)
_put(
    'θ ð',
    dict(jaw=0.16, open=0.28, ttip=0.7, tout=1, teeth=0.4),
    dict(tout=5, ttip=2, jaw=1.5, open=1, press=3, tuck=3, round=0.15, wide=0.15),
)
_put(
    'ɹ r ʁ ʀ ɻ ɽ',
    dict(jaw=0.22, open=0.28, round=0.5, ttip=0.3),
    dict(round=0.9, jaw=0.8, open=0.7, press=2, tuck=2, wide=0.5, ttip=0.8),
)
_put(
    'k g ɡ ŋ x ɣ q c ɟ ɲ ç ɠ',
    dict(jaw=0.28, open=0.36, tback=1),
    dict(tback=3, jaw=0.5, open=0.35, press=1.5, tuck=1.5, round=0.08, wide=0.08),
)
_put(
    'j ʝ ʎ',
    dict(jaw=0.18, open=0.28, wide=0.6, tback=0.4),
    dict(wide=0.8, jaw=0.8, open=0.7, press=2, tuck=2, tback=1),
)
_put(
    'h ɦ ʔ ħ χ ʕ',
    dict(jaw=0.3, open=0.35),
    dict(jaw=0.15, open=0.15, press=1.2, tuck=1, round=0.05, wide=0.05),
)
TABLE[SILENCE] = (_vector(0), _vector(1, press=0.7, round=1.6, wide=1.6))

# Classes of phones that look and sound alike, for the auxiliary output of the network in training.
CLASSES = {}
for _i, _symbols in enumerate(
    [
        '_',
        'p b ɓ',
        'm',
        'f v ɸ β ʋ ɱ',
        't d ʈ ɖ ɗ',
        'n ɳ',
        'l ɾ ɫ ɬ ɭ',
        's z',
        'ʃ ʒ ɕ ʑ ʂ ʐ',
        'θ ð',
        'k g ɡ q c ɟ ɠ',
        'ŋ ɲ',
        'x ɣ ç h ɦ ʔ ħ χ ʕ',
        'ɹ r ʁ ʀ ɻ ɽ ɜ ɚ ɝ ɞ',
        'w u ʉ ʊ ɯ y ʏ ʍ ɥ',
        'o ɔ ɒ ø œ ɤ ɵ',
        'ɑ a æ ʌ ɐ',
        'ɛ e ə ɘ',
        'i ɪ ᵻ ɨ j ʝ ʎ',
    ]
):
    for _c in _symbols.split():
        CLASSES[_c] = _i
CLASS_COUNT = 19
BILABIAL = set('pbmɓ')
STOPS = set('pbtdkgɡɓɗɖʈqcɟɠ')

# Decay of the influence of a phone outside it, 1/s. Slower decays blur speech (measured). Rounded
# lips start early.
DECAY = 1 / np.array(
    [0.038, 0.032, 0.020, 0.06, 0.055, 0.022, 0.04, 0.03, 0.025, 0.04, 0.030], np.float32
)
LEAD = np.array([1.0, 1.0, 1.0, 1.3, 1.2, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], np.float32)
CORE = 0.15  # share of a phone at each end where its influence already fades


def phones(ipa: str) -> list:
    """The known symbols of an IPA string. Length, stress and diacritics are dropped."""
    return [c for c in ipa if c in TABLE and c != SILENCE]


def expand(segments) -> list:
    """Expands segments: [(start s, end s, ipa)] -> the same with one known symbol each. Diphthongs
    and affricates divide their time equally.
    """
    out = []
    for start, end, ipa in segments:
        symbols = [SILENCE] if not ipa.strip() or ipa.startswith(SILENCE) else phones(ipa) or ['ə']
        width = (end - start) / len(symbols)
        out += [(start + k * width, start + (k + 1) * width, s) for k, s in enumerate(symbols)]
    return out


def curves(segments, count: int, rate: float, first: float = 0.0):
    """Articulator curves of expanded segments at the times first + i / rate, i < count: (float32
    [count, 11], class uint8 [count]).
    """
    times = first + np.arange(count) / rate
    top = np.zeros((count, N), np.float32)
    bottom = np.full((count, N), 1e-4, np.float32)
    classes = np.zeros(count, np.uint8)
    at = lambda seconds: int(np.clip(np.ceil((seconds - first) * rate), 0, count))
    for start, end, symbol in segments:
        i, j = at(start - 0.4), at(end + 0.4)
        if j <= i:
            continue
        target, dominance = TABLE[symbol]
        fade = CORE * (end - start)
        before = np.maximum(0, start + fade - times[i:j])[:, None]
        after = np.maximum(0, times[i:j] - (end - fade))[:, None]
        weight = dominance * np.exp(-before * (DECAY / LEAD) - after * DECAY, dtype=np.float32)
        top[i:j] += weight * target
        bottom[i:j] += weight
        classes[at(start) : at(end)] = CLASSES.get(symbol, CLASSES['ə'])
    return (top / bottom).astype(np.float32), classes
