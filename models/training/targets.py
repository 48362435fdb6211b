"""From phones to articulator curves: Cohen and Massaro's dominance functions (1993) with a table of targets per IPA symbol."""
import numpy as np

ARTICULATORS = ['jaw', 'open', 'press', 'round', 'wide', 'tuck', 'upraise', 'ttip', 'tout', 'tback', 'teeth']
N = len(ARTICULATORS)
INDEX = {name: i for i, name in enumerate(ARTICULATORS)}
SILENCE = '_'


def _vector(fill, **values):
    out = np.full(N, fill, np.float32)
    for name, value in values.items():
        out[INDEX[name]] = value
    return out


# symbol -> (target 0..1 per articulator, dominance: how strongly the phone insists on it against its neighbours)
TABLE = {}


def _put(symbols, target, dominance):
    for symbol in symbols.split():
        TABLE[symbol] = (_vector(0, **target), _vector(.25, **dominance))


def _vowel(symbols, jaw, open, round, wide, tback=0., upraise=0.):
    _put(symbols, dict(jaw=jaw, open=open, round=round, wide=wide, tback=tback, upraise=upraise),
         dict(jaw=1, open=1, round=1, wide=1, press=.8, tuck=.8, upraise=.8, ttip=.5, tout=.5, tback=.6, teeth=.5))


_vowel('i', .18, .30, 0, .85, .2, .1)
_vowel('ɪ ᵻ ɨ', .26, .36, 0, .5, .1)
_vowel('e', .38, .45, 0, .65)
_vowel('ɛ', .48, .55, 0, .45, 0, .1)
_vowel('æ a', .75, .75, 0, .40, 0, .2)
_vowel('ɑ', .72, .72, .05, .08)
_vowel('ʌ', .5, .52, .05, .1)
_vowel('ɐ', .45, .48, .05, .1)
_vowel('ɒ ɔ', .58, .60, .5, 0, .2)
_vowel('o ɤ', .42, .45, .75, 0, .3)
_vowel('ʊ', .28, .32, .65, 0, .4)
_vowel('u ʉ ɯ', .20, .24, 1., 0, .5)
_vowel('y ʏ', .2, .25, .95, 0, .2)
_vowel('ø œ ɵ', .38, .42, .8, 0)
_vowel('ə ɘ', .32, .36, .08, .12)
_vowel('ɜ ɚ ɝ ɞ', .34, .38, .45, 0)
_put('p b m ɓ', dict(jaw=.06, press=1), dict(press=6, open=8, jaw=1.5, tuck=3, round=.15, wide=.15, upraise=1))
_put('f v ɸ β ʋ ɱ', dict(jaw=.12, open=.10, tuck=1, upraise=.25, teeth=.3), dict(tuck=6, press=4, open=4, jaw=1.2, upraise=2, teeth=1, round=.2, wide=.2))
_put('w ʍ', dict(jaw=.16, open=.14, round=1, tback=.4), dict(round=3, open=3, jaw=1, press=2, wide=2, tback=.5))
_put('ɥ', dict(jaw=.16, open=.16, round=1), dict(round=3, open=3, jaw=1, press=2, wide=2))
_ALVEOLAR = dict(ttip=4, jaw=1., open=.5, press=2, tuck=2, round=.12, wide=.15, tback=.5, teeth=.6)
_put('t d n ɾ ɳ ʈ ɖ ɗ', dict(jaw=.16, open=.28, ttip=1, teeth=.4), _ALVEOLAR)
_put('l ɫ ɬ ɭ', dict(jaw=.26, open=.36, ttip=1, teeth=.2), _ALVEOLAR)
_put('s z', dict(jaw=.06, open=.26, ttip=.5, teeth=1, wide=.35), dict(teeth=4, jaw=3, open=1, press=3, tuck=3, round=.2, wide=.3, ttip=1))
_put('ʃ ʒ ɕ ʑ ʂ ʐ', dict(jaw=.08, open=.32, teeth=1, round=.65, upraise=.3), dict(teeth=4, jaw=3, open=1.5, press=3, tuck=3, round=1.5, wide=1, upraise=1))
_put('θ ð', dict(jaw=.16, open=.28, ttip=.7, tout=1, teeth=.4), dict(tout=5, ttip=2, jaw=1.5, open=1, press=3, tuck=3, round=.15, wide=.15))
_put('ɹ r ʁ ʀ ɻ ɽ', dict(jaw=.22, open=.28, round=.5, ttip=.3), dict(round=.9, jaw=.8, open=.7, press=2, tuck=2, wide=.5, ttip=.8))
_put('k g ɡ ŋ x ɣ q c ɟ ɲ ç ɠ', dict(jaw=.28, open=.36, tback=1), dict(tback=3, jaw=.5, open=.35, press=1.5, tuck=1.5, round=.08, wide=.08))
_put('j ʝ ʎ', dict(jaw=.18, open=.28, wide=.6, tback=.4), dict(wide=.8, jaw=.8, open=.7, press=2, tuck=2, tback=1))
_put('h ɦ ʔ ħ χ ʕ', dict(jaw=.3, open=.35), dict(jaw=.15, open=.15, press=1.2, tuck=1, round=.05, wide=.05))
TABLE[SILENCE] = (_vector(0), _vector(1, press=.7, round=1.6, wide=1.6))

# Classes of like looks and sounds, for the auxiliary head of the network in training.
CLASSES = {}
for _i, _symbols in enumerate(['_', 'p b ɓ', 'm', 'f v ɸ β ʋ ɱ', 't d ʈ ɖ ɗ', 'n ɳ', 'l ɾ ɫ ɬ ɭ', 's z', 'ʃ ʒ ɕ ʑ ʂ ʐ', 'θ ð', 'k g ɡ q c ɟ ɠ', 'ŋ ɲ', 'x ɣ ç h ɦ ʔ ħ χ ʕ',
                               'ɹ r ʁ ʀ ɻ ɽ ɜ ɚ ɝ ɞ', 'w u ʉ ʊ ɯ y ʏ ʍ ɥ', 'o ɔ ɒ ø œ ɤ ɵ', 'ɑ a æ ʌ ɐ', 'ɛ e ə ɘ', 'i ɪ ᵻ ɨ j ʝ ʎ']):
    for _c in _symbols.split():
        CLASSES[_c] = _i
CLASS_COUNT = 19
BILABIAL = set('pbmɓ')
STOPS = set('pbtdkgɡɓɗɖʈqcɟɠ')

# Decay of a phone's influence outside it, 1/s; longer time constants than these blur speech to mush (measured). Lips that round start early.
DECAY = 1 / np.array([.038, .032, .020, .06, .055, .022, .04, .03, .025, .04, .030], np.float32)
LEAD = np.array([1., 1., 1., 1.3, 1.2, 1., 1., 1., 1., 1., 1.], np.float32)
CORE = .15  # the share at either end of a phone where its influence already fades


def phones(ipa: str) -> list:
    """Known symbols of an IPA string; length, stress and diacritics fall away."""
    return [c for c in ipa if c in TABLE and c != SILENCE]


def expand(segments) -> list:
    """[(start s, end s, ipa)] -> the same with one known symbol each; diphthongs and affricates share their time equally."""
    out = []
    for start, end, ipa in segments:
        symbols = [SILENCE] if not ipa.strip() or ipa.startswith(SILENCE) else phones(ipa) or ['ə']
        width = (end - start) / len(symbols)
        out += [(start + k * width, start + (k + 1) * width, s) for k, s in enumerate(symbols)]
    return out


def curves(segments, count: int, rate: float, first: float = 0.):
    """Articulator curves of expanded segments at times first + i / rate, i < count: (float32 [count, 11], class uint8 [count])."""
    times = first + np.arange(count) / rate
    top = np.zeros((count, N), np.float32)
    bottom = np.full((count, N), 1e-4, np.float32)
    classes = np.zeros(count, np.uint8)
    at = lambda seconds: int(np.clip(np.ceil((seconds - first) * rate), 0, count))
    for start, end, symbol in segments:
        i, j = at(start - .4), at(end + .4)
        if j <= i:
            continue
        target, dominance = TABLE[symbol]
        fade = CORE * (end - start)
        before = np.maximum(0, start + fade - times[i:j])[:, None]
        after = np.maximum(0, times[i:j] - (end - fade))[:, None]
        weight = dominance * np.exp(-before * (DECAY / LEAD) - after * DECAY, dtype=np.float32)
        top[i:j] += weight * target
        bottom[i:j] += weight
        classes[at(start):at(end)] = CLASSES.get(symbol, CLASSES['ə'])
    return (top / bottom).astype(np.float32), classes
