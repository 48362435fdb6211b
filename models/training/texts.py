"""Sentences for the speech synthesizers: prose from Debian packages, everyday phrases, random word
sequences and pseudo-words.
"""

import glob
import random
import re

SUBJECTS = [
    'I',
    'you',
    'we',
    'they',
    'she',
    'my mother',
    'the doctor',
    'Bob',
    'our team',
    'these people',
    'that baby',
    'the farmer',
    'Emma',
    'everybody',
    'the pilot',
]
VERBS = [
    'want',
    'need',
    'love',
    'moved',
    'bought',
    'found',
    'want to show',
    'will bring',
    'would prefer',
    'put',
    'picked',
    'gave me',
    'saw',
    'thought about',
    'forgot',
    'remember',
    'have',
    'maybe have',
]
OBJECTS = [
    'a blue shoe',
    'five boxes',
    'more coffee',
    'the right answer',
    'our new house',
    'that purple flower',
    'something very important',
    'a bowl of soup',
    'fresh fish',
    'the weather forecast',
    'your phone number',
    'a map of the village',
    'some help with this problem',
    'two weeks off',
    'the whole thing',
    'a simple example',
    'bread and butter',
    'the bottom of the page',
    'my favourite movie',
    'a very warm welcome',
]
ENDINGS = [
    '',
    'today',
    'right now',
    'before we leave',
    'on Monday morning',
    'if that is possible',
    'because it works',
    'for you',
    'with me',
    'in the evening',
    'please',
    'from time to time',
]
PHRASES = [
    'How are you today?',
    'Hello, how can I help you?',
    'Thank you very much.',
    'What would you like to know?',
    'I am happy to hear that.',
    'Let me think about it for a moment.',
    'Yes, of course.',
    'No problem at all.',
    'Good morning, my name is Emma.',
    'Sure, that makes sense.',
    'Could you repeat that, please?',
    'Welcome back!',
    'Oh wow, amazing!',
    'Mm hmm.',
    'Okay.',
    'Bye bye, see you tomorrow.',
    'One, two, three, four, five, six, seven, eight, nine, ten.',
    'Maybe. Probably not.',
    'Well, um, I suppose so.',
]
ONSETS = list('pbmfvtdszlrnkgjh') + [
    'p',
    'b',
    'm',
    'f',
    'v',
    'm',
    'b',
    'p',
    'st',
    'pr',
    'br',
    'fl',
    'sp',
    'sh',
    'ch',
    'th',
    'w',
    '',
]
VOWELS = list('aeiou') + ['a', 'o', 'u', 'oo', 'ee', 'ai']
CODAS = ['', '', '', '', 'n', 'm', 's', 'l', 'r', 't', 'p', 'b', 'f', 'sh']

CZECH = {'s': ['s', 'š', 's'], 'z': ['z', 'ž'], 't': ['t', 'č', 't'], 'r': ['r', 'ř', 'r']}
# Telugu letters of the pseudo-words. A consonant carries an a, which a vowel sign replaces or the
# virama removes.
TELUGU = {
    'p': 'ప',
    'b': 'బ',
    'm': 'మ',
    'f': 'ఫ',
    'v': 'వ',
    'w': 'వ',
    't': 'త',
    'd': 'ద',
    's': 'స',
    'z': 'జ',
    'l': 'ల',
    'r': 'ర',
    'n': 'న',
    'k': 'క',
    'g': 'గ',
    'j': 'య',
    'h': 'హ',
    'c': 'చ',
}
SIGNS = {'a': 'ా', 'e': 'ే', 'i': 'ి', 'o': 'ో', 'u': 'ు'}
FIRST = {'a': 'ఆ', 'e': 'ఏ', 'i': 'ఇ', 'o': 'ఓ', 'u': 'ఉ'}


def _telugu(word: str) -> str:
    out, bare = '', False  # bare: the last letter is a consonant without a following vowel
    for letter in word:
        if letter in SIGNS:
            out, bare = out + (SIGNS if bare else FIRST)[letter], False
        elif letter in TELUGU:
            out, bare = out + ('్' if bare else '') + TELUGU[letter], True
    return out + ('్' if bare else '')


def _words():
    words = [line.strip().lower() for line in open('/usr/share/dict/words', errors='ignore')]
    return [w for w in words if w.isascii() and w.isalpha() and 2 < len(w) < 11]


def _prose():
    found = set()
    for path in sorted(
        glob.glob('/usr/share/common-licenses/*') + glob.glob('/usr/lib/python3*/*.py')
    ):
        text = open(path, errors='ignore').read().replace('\n', ' ').replace('#', ' ')
        found.update(
            re.sub(r'\s+', ' ', m)
            for m in re.findall(r"[A-Z][a-z]+ (?:[a-z,']+ ){4,16}[a-z]+[.]", text)
        )
    return sorted(found)


class Texts:
    """An endless stream of sentences. The same seed gives the same text on the same Debian release."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.words, self.prose = _words(), _prose()

    def pseudo_word(self) -> str:
        r = self.rng
        return ''.join(
            r.choice(ONSETS) + r.choice(VOWELS) for _ in range(r.choice([1, 2, 2, 3]))
        ) + r.choice(CODAS)

    def pseudo(self) -> str:
        r = self.rng
        return ' '.join(
            r.choice(self.words) if r.random() < 0.25 else self.pseudo_word()
            for _ in range(r.randint(4, 9))
        ) + r.choice(['.', '?', '!'])

    def czech(self) -> str:
        """Pseudo-words with Czech letters."""
        return ''.join(self.rng.choice(CZECH.get(letter, [letter])) for letter in self.pseudo())

    def telugu(self) -> str:
        """Pseudo-words in Telugu script."""
        return (
            ' '.join(
                filter(None, (_telugu(self.pseudo_word()) for _ in range(self.rng.randint(4, 8))))
            )
            + '.'
        )

    def english(self) -> str:
        r, kind = self.rng, self.rng.random()
        if kind < 0.35:
            return r.choice(self.prose)
        if kind < 0.55:
            return ' '.join(r.choice(self.words) for _ in range(r.randint(4, 10))) + '.'
        if kind < 0.82:
            return ' '.join(
                r.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, ENDINGS)
            ).strip().capitalize() + r.choice('.?!')
        if kind < 0.92:
            return r.choice(PHRASES)
        return self.pseudo()
