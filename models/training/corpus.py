"""Builds the labelled corpus: one pickle per voice group in work/corpus, each a list of (int16 wave
at 16 kHz, [(start s, end s, ipa)], voice, text).

usage: corpus.py MINUTES_SCALE [GROUP,...]
Existing files are kept. Natural voices are added when there is a network to align them with
(`train.py aligner STEPS`).
"""

import os
import pickle
import random
import sys
import time

import engines
from frontend import WORK
from texts import Texts

FOLDER = os.path.join(WORK, 'corpus')
# English first, because most of its phones are shared; the other languages add vowels and
# consonants that English lacks. Latin scripts only: the text is English or pseudo-words, read by
# the rules of each language.
LANGUAGES = ['en-us'] * 6 + [
    'en-gb',
    'en-gb-x-rp',
    'en-gb-scotland',
    'en-gb-x-gbclan',
    'en-029',
    'de',
    'de',
    'fr',
    'fr',
    'es',
    'es-419',
    'it',
    'it',
    'pt',
    'pt-br',
    'nl',
    'pl',
    'sv',
    'tr',
    'da',
    'nb',
    'fi',
    'hu',
    'cs',
    'ro',
    'id',
    'sw',
    'hr',
    'ca',
    'et',
    'af',
    'sk',
    'sl',
    'vi',
]
# Formant and source variants of espeak-ng.
VARIANTS = [
    '',
    'm1',
    'm2',
    'm3',
    'm4',
    'm5',
    'm7',
    'm8',
    'f1',
    'f2',
    'f3',
    'f4',
    'f5',
    'Alex',
    'Andrea',
    'Annie',
    'Denis',
    'Gene',
    'Hugo',
    'Lee',
    'Mario',
    'Michael',
    'belinda',
    'david',
    'ed',
    'john',
    'linda',
    'quincy',
    'rob',
    'steph',
    'travis',
    'zac',
    'paul',
    'klatt',
    'klatt2',
    'klatt3',
    'klatt4',
    'max',
    'adam',
    'sandro',
    'victor',
    'anikaRobot',
    'Andy',
    'aunty',
    'caleb',
    'kaukovalta',
    'marcelo',
    'miguel',
    'norbert',
    'pablo',
    'rupert',
    'shelby',
    'robosoft',
    'robosoft2',
    'robosoft3',
    'robosoft4',
    'Tweaky',
    'Nguyen',
    'Jacky',
    'boris',
    'Marco',
    'Reed',
    'Storm',
    'grandma',
    'grandpa',
    'iven',
    'Diogo',
    'edward',
    'fast',
    'anika',
]
FLITE_PITCH = {
    'slt': (125, 240),
    'rms': (70, 150),
    'awb': (80, 160),
    'kal16': (70, 150),
    'kal': (75, 140),
}  # Hz

# Minutes of speech per group. flite's awb and festival's ked are held out for evalset.py and must
# never appear here.
GROUPS = {
    'flite_slt': 60,
    'flite_rms': 60,
    'flite_kal16': 30,
    'flite_kal': 10,
    'festival_kal_diphone': 20,
    'festival_cmu_us_slt_arctic_hts': 40,
    'festival_msu_ru_nsh_clunits': 40,
    'festival_czech_dita': 25,
    'festival_czech_krb': 25,
    'festival_czech_machac': 25,
    'festival_czech_ph': 25,
    'festival_lp_diphone': 25,
    'festival_pc_diphone': 25,
    'festival_suo_fi_lj_diphone': 25,
    'festival_hy_fi_mv_diphone': 25,
    'festival_upc_ca_ona_hts': 25,
    'festival_telugu_NSK_diphone': 25,
    'natural_sky': None,
    'natural_queen-joe': None,
    'natural_queen-others': None,
    'natural_drascula': None,
    'natural_cs-small': None,
    'natural_cs-big': None,
    'natural_cs-others': None,
    'espeak': 200,
    **{
        f'natural_stamps-{language}': None
        for language in ('be', 'ca', 'da', 'el', 'en', 'es', 'fr', 'ro', 'ru')
    },
}  # None: all of it
ENGLISH = ('kal_diphone', 'cmu_us_slt_arctic_hts')


def espeak_group(minutes, texts, rng):
    engine, seconds, items = engines.Espeak(), 0.0, []
    while seconds < minutes * 60:
        language, variant = rng.choice(LANGUAGES), rng.choice(VARIANTS)
        voice = language + ('+' + variant if variant else '')
        text = (
            texts.english() if language.startswith('en') or rng.random() < 0.6 else texts.pseudo()
        )
        spoken = engine.speak(
            text, voice, rng.randint(120, 230), rng.randint(10, 90), rng.randint(15, 85)
        )
        if spoken is None or len(spoken[0]) < 8000:
            continue
        items.append((*spoken, 'espeak:' + voice, text))
        seconds += len(spoken[0]) / engines.RATE
    return items


def flite_group(voice, minutes, texts, rng):
    seconds, items = 0.0, []
    while seconds < minutes * 60:
        text = texts.english()
        spoken = engines.flite(
            text, voice, rng.uniform(0.78, 1.3), rng.uniform(*FLITE_PITCH[voice])
        )
        if spoken is None:
            continue
        items.append((*spoken, 'flite:' + voice, text))
        seconds += len(spoken[0]) / engines.RATE
    return items


def festival_group(voice, minutes, texts, rng):
    seconds, items = 0.0, []
    # English voices read English; the others read pseudo-words by the rules of their languages.
    read = (
        texts.czech
        if voice.startswith('czech')
        else texts.telugu
        if voice.startswith('telugu')
        else texts.english
        if voice in ENGLISH
        else texts.pseudo
    )
    while seconds < minutes * 60:
        count = 60
        sentences = [read() for _ in range(count)]
        before = seconds
        for text, wave, segments in engines.festival(
            voice, sentences, [rng.uniform(0.78, 1.25) for _ in range(count)]
        ):
            items.append((wave, segments, 'festival:' + voice, text))
            seconds += len(wave) / engines.RATE
        if seconds == before:
            raise SystemExit(
                f'festival says nothing with voice_{voice}: is its Debian package installed?'
            )
    return items


def build(name, minutes, scale, seed):
    texts, rng = Texts(seed), random.Random(seed)
    kind, _, voice = name.partition('_')
    if kind == 'espeak':
        return espeak_group(minutes * scale, texts, rng)
    if kind == 'natural':
        # imported here: it needs torch, and the evaluation, which imports this file, does not
        import natural

        return natural.utterances(voice, scale)
    return (flite_group if kind == 'flite' else festival_group)(voice, minutes * scale, texts, rng)


def main():
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    only = sys.argv[2].split(',') if len(sys.argv) > 2 else GROUPS
    os.makedirs(FOLDER, exist_ok=True)
    for seed, (name, minutes) in enumerate(GROUPS.items()):
        path = os.path.join(FOLDER, name + '.pkl')
        if (
            name not in only
            or os.path.exists(path)
            or (minutes is None and not os.path.exists(os.path.join(WORK, 'aligner.pt')))
        ):
            continue
        started = time.time()
        items = build(name, minutes, scale, 100 + seed)
        with open(path + '.part', 'wb') as file:
            pickle.dump(items, file)
        os.replace(path + '.part', path)
        print(
            f'{name}: {len(items)} utterances, '
            f'{sum(len(i[0]) for i in items) / engines.RATE / 60:.1f} min, '
            f'made in {time.time() - started:.0f} s',
            flush=True,
        )


if __name__ == '__main__':
    main()
