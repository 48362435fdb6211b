"""Writes models/MODEL_CARD.md from the manifest and the last evaluation (evaluation.json, written
by `npm run eval:speech -- --json`).
"""

import json
import os
import re
import textwrap

from corpus import LANGUAGES, VARIANTS
from frontend import HERE

VOICES = [
    (
        f'espeak-ng, {len(set(LANGUAGES))} languages and accents x {len(VARIANTS)} variants',
        'training',
        'formant synthesis; the program is GPL-3.0+, its output is not covered by it',
    ),
    (
        'flite kal, kal16 (American man, diphones)',
        'training',
        "CMU, permissive (BSD-like: flite's COPYING)",
    ),
    ('flite rms (American man)', 'training', "CMU, permissive (BSD-like: flite's COPYING)"),
    ('flite slt (American woman)', 'training', "CMU, permissive (BSD-like: flite's COPYING)"),
    ('festival kal_diphone (festvox-kallpc16k)', 'training', 'CMU, permissive (BSD-like)'),
    ('festival cmu_us_slt_arctic_hts (festvox-us-slt-hts)', 'training', 'BSD-3-clause, permissive'),
    ('festival msu_ru_nsh_clunits (festvox-ru, Russian man)', 'training', 'BSD-like, permissive'),
    ('festival czech_ph (festvox-czech-ph, Czech man)', 'training', 'GPL-2+'),
    (
        'festival czech_dita, czech_krb, czech_machac '
        '(festvox-czech-dita, -krb, -machac: Czech woman, child, man)',
        'training',
        'GPL-3+',
    ),
    (
        'festival lp_diphone, pc_diphone (festvox-italp16k, festvox-itapc16k: Italian woman, man)',
        'training',
        'GPL-2+',
    ),
    (
        'festival suo_fi_lj_diphone, hy_fi_mv_diphone (festvox-suopuhe-lj, -mv: Finnish woman, man)',
        'training',
        'LGPL-2+',
    ),
    ('festival upc_ca_ona_hts (festvox-ca-ona-hts, Catalan woman)', 'training', 'LGPL-2.1+'),
    ('festival telugu_NSK_diphone (festvox-te-nsk, Telugu man)', 'training', 'GPL-2+'),
    (
        'actors of Flight of the Amazon Queen '
        '(flight-of-the-amazon-queen: some fifty roles in American English, 3 h 53 min)',
        'training',
        "the game's own: free to use, change and pass on, not to be sold by itself",
    ),
    (
        'actors of Beneath a Steel Sky '
        '(beneath-a-steel-sky: some thirty roles in British English, 1 h 35 min)',
        'training',
        "the game's own, as above",
    ),
    (
        'actors of Drascula (drascula: eleven roles in English, 39 min)',
        'chose thresholds and the blend',
        "the game's own, as above",
    ),
    (
        'actors of Fish Fillets, the two fish (fillets-ng-data-cs: natural Czech, a man and a woman)',
        'training',
        'GPL-2+',
    ),
    (
        'actors of Fish Fillets, the other roles (fillets-ng-data-cs), and in Dutch (fillets-ng-data-nl)',
        'the first third of an earlier tuning; the former then chose thresholds',
        'GPL-2+',
    ),
    (
        'volunteers of Tux Paint, one a language (tuxpaint-stamps-default): Belarusian, Spanish, '
        'Romanian (women, by their pitch), French and Russian (men), 12 to 18 minutes each',
        'training',
        'GPL-2',
    ),
    (
        'volunteers of Tux Paint: Greek (a woman), Catalan and Danish (men), and half a minute of English',
        'chose thresholds and the blend',
        'GPL-2',
    ),
    ('flite awb (Scottish man)', 'held out', "CMU, permissive (BSD-like: flite's COPYING)"),
    (
        'festival ked_diphone (festvox-kdlpc16k, American man)',
        'held out, with its synthesis method',
        'CMU, permissive (BSD-like)',
    ),
    (
        'real people: pocketsphinx-testdata, alsa-utils',
        'held out',
        'BSD-2-clause / GPL-2+; evaluation only',
    ),
    (
        'real person: Allison Smith, asterisk-core-sounds-en-g722',
        'held out',
        'CC-BY-SA-3.0; evaluation only',
    ),
    (
        'real person: the English words of KTuberling, ktuberling-data',
        'held out',
        'GPL-2+; evaluation only',
    ),
]


def table(results):
    rows = [r for r in results if r['condition'] != 'not speech']
    lines = [
        '| set | condition | r, mean of six mouth curves | closures precision | recall | F1 | lag ms |',
        '|---|---|---|---|---|---|---|',
    ]
    for r in rows:
        c = r['closures']
        lines.append(
            f'| {r["set"]} | {r["condition"]} | {r["mouth"]:.2f} | {c["precision"]:.2f} | {c["recall"]:.2f} | {c["f1"]:.2f} | {r["lagMs"]:.0f} |'
        )
    return '\n'.join(lines)


def per_channel(results):
    rows = [r for r in results if r['condition'] == 'clean']
    names = [n for n in rows[0]['r'] if n != 'speech']
    lines = ['| set | ' + ' | '.join(names) + ' |', '|---' * (len(names) + 1) + '|']
    return '\n'.join(
        lines
        + [f'| {r["set"]} | ' + ' | '.join(f'{r["r"][n]:.2f}' for n in names) + ' |' for r in rows]
    )


def still(results):
    lines = ['| sound | largest mouth channel | frames with motion |', '|---|---|---|']
    return '\n'.join(
        lines
        + [
            f'| {r["set"]} | {r["peak"]:.3f} | {100 * r["moving"]:.1f} % |'
            for r in results
            if r['condition'] == 'not speech'
        ]
    )


def wrapped(text, columns=100):
    """Wraps the paragraphs and list items of `text` (Markdown without code fences) at `columns`."""
    blocks = []
    for block in text.split('\n\n'):
        if re.match(r'[|#]', block):
            blocks.append(block)
            continue
        items = re.split(r'\n(?=- )', block.strip('\n'))
        blocks.append(
            '\n'.join(
                textwrap.fill(
                    ' '.join(item.split()),
                    columns,
                    subsequent_indent='  ' if item.startswith('- ') else '',
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                for item in items
            )
        )
    return '\n\n'.join(blocks).rstrip('\n') + '\n'


def main():
    entry = json.load(open(os.path.join(HERE, '../manifest.json')))['models']['speech-articulation']
    evaluation = json.load(open(os.path.join(HERE, 'evaluation.json')))
    results = evaluation['results']
    voices = '\n'.join(f'| {a} | {b} | {c} |' for a, b, c in VOICES)
    skipped = ''.join(f'- Not evaluated here: {s}\n' for s in evaluation['skipped'])
    card = f"""# Speech to articulation

`{entry['file']}`: {entry['bytes']} bytes, {entry['parameters']} parameters, licence {entry['licence']}, SHA-256 `{entry['sha256']}`.

The model runs one step per video frame. Input: 3 x 40 log-mel bands of the last 1/30 s, and a state of {entry['stateFloats']} floats. Output: 14 channels
(`ARTICULATORS` in `src/media/articulation.ts`), and the next state. It is causal. Output k describes the audio {entry['lookaheadMs']} ms before the end of the
input: the look-ahead, analysis window included, is {entry['lookaheadMs']} ms. The network is a dilated convolution over video frames (memory {entry['memorySteps'] / 30:.1f} s). A gated mean over some
ten seconds tells it how the phones of the talker sound. The graph includes the post-processing: gain, closures by a threshold that is lower in noise, and
the gate that keeps the face at rest without speech.

## Data

The training data are speech from synthesizers in Debian, which report the times of their phones, and the dialogues of games and the phrases of a drawing
program, whose phones were aligned by a network trained for it. No data set was downloaded, and no person was recorded. Voices marked "held out" were
never trained on: the shipped model is the evaluated one.

| voices | use | licence |
|---|---|---|
{voices}

Targets are dominance curves (Cohen and Massaro 1993) from a table of mouth shapes per IPA symbol (`training/targets.py`), not measurements of faces.
Augmentation: phones shifted by the difference between two talkers ("lent"; `training/talkers.py`), vocal tract length, tempo, breathiness, equalisation, rooms, telephone and codec lines, noise of many kinds at 0 to 36 dB SNR, level over 49 dB, clipping and overdriven input.

## Evaluation

`npm run eval:speech`. Curves are compared with the plain dominance curves of the reference phones; a closure (p, b, m) counts as found when the middle of a run of
frames with pressed lips lies within 40 ms of its interval. Phones of real people come from forced alignment with pocketsphinx, whose own errors
(10-20 ms, and sometimes a wrong phone) count against the model: these figures are lower bounds. awb and ked have 200 sentences each
(standard error of F1: .015). `people` are several talkers (read books, dictation, system sounds; 35 closures, standard error .06). `allison` is one professional speaker,
`words` are 72 single words by one volunteer (35 closures), whose British "tomato" and "oregano" are compared with American references.
`snr15` and `snr5` have stationary noise with a spectrum that falls by 15 dB up to 8 kHz, relative to the loud parts of the speech. At 15 dB the following shares of the time-frequency
cells of awb's speech exceed the noise: nine in ten below 500 Hz, a quarter between 1 and 2 kHz, one in twenty above 4 kHz, where f, s and the bursts of p and t are.

{table(results)}

The effect of each group of voices, measured with 50 sentences of awb (r, closure F1):

| trained on | awb | people | allison | people, 20 dB softer | allison at 15 dB SNR |
|---|---|---|---|---|---|
| permissively licensed voices only | .82, .76 | .72, .62 | .69, .54 | .69, .51 | .54, .37 |
| + those under the GPL and LGPL, Czech actors, heavier noise | .82, .71 | .74, .59 | .69, .53 | .74, .57 | .55, .43 |
| + the volunteers, with a separate output for closures | .82, .76 | .73, .63 | .68, .59 | .72, .57 | .55, .49 |
| + the actors who speak English | .82, .76 | .74, .64 | .71, .64 | .74, .68 | .57, .51 |

Then the same voices were used in milder sessions (less noise, fewer rooms and lines). With 200 sentences of awb, before and after: awb .83, .81 -> .84, .82; ked .81, .77 -> .83, .81; people
.74, .64 -> .77, .69; allison .72, .64 -> .74, .68; at 15 dB SNR
r -.00 to +.01 and recall .71 -> .68 (awb), .73 -> .74 (ked), .69 -> .66 (people), .60 (allison); at 5 dB r -.00 to -.01.
Then phones were shifted between talkers, and the network got the talker mean: awb .840, .82 -> .851, .83; ked .830, .81 -> .845, .85; people .771, .69 -> .782, .72; allison .741, .68 -> .747, .69; recall at
15 dB SNR .68 -> .72 (awb), .74 -> .78 (ked), .66 -> .74 (people), .60 -> .58 (allison). Single words end before much is known of their talker, and lost: .667, .74 -> .647, .72; at 5 dB r -.01 to +.01.
Then each class of phones was shifted by one of two talker pairs, and the closure threshold no longer depends on the certainty of the network: awb .851, .83 -> .857, .86; ked .845, .85 -> .849, .85; people .782, .72 -> .790, .80; allison .747, .69 ->
.754, .67; words .647, .72 -> .640, .70; recall at 15 dB SNR .72 -> .75 (awb), .78 -> .82 (ked), .74 -> .77 (people), .58 -> .60 (allison) for .01 to .04 of F1.

Correlation per channel, clean:

{per_channel(results)}

Sounds that are not speech must not move the mouth:

{still(results)}
{skipped}
## Limits

- The actors act (many roles are caricatures) and were recorded at 11 kHz, in the Queen's case at 16 kbit/s. All but one of the other human voices are adults: children, pathological voices and singing are extrapolated by vocal tract scaling.
- The tongue channels (`tout`, `tback`) are weak, because they can hardly be heard.
- `brow` and `nod` follow pitch and stress by rule. They are plausible, not measured from faces.
- Music with a voice-like lead, and laughter, can move the mouth a little (table above).
- The model reacts to sound, not to meaning: a second talker in the room moves the mouth like the first.
"""
    open(os.path.join(HERE, '../MODEL_CARD.md'), 'w').write(wrapped(card))


if __name__ == '__main__':
    main()
