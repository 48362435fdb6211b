"""Writes models/MODEL_CARD.md from the manifest and the last evaluation (evaluation.json, written by `npm run eval:speech -- --json`)."""
import json
import os

from corpus import LANGUAGES, VARIANTS
from frontend import HERE

VOICES = [
    (f'espeak-ng, {len(set(LANGUAGES))} languages and accents x {len(VARIANTS)} variants', 'training', 'formant synthesis; the program is GPL-3.0+, its output is not covered by it'),
    ('flite kal, kal16 (American man, diphones)', 'training', "CMU, permissive (BSD-like: flite's COPYING)"),
    ('flite rms (American man)', 'training', "CMU, permissive (BSD-like: flite's COPYING)"),
    ('flite slt (American woman)', 'training', "CMU, permissive (BSD-like: flite's COPYING)"),
    ('festival kal_diphone (festvox-kallpc16k)', 'training', 'CMU, permissive (BSD-like)'),
    ('festival cmu_us_slt_arctic_hts (festvox-us-slt-hts)', 'training', 'BSD-3-clause, permissive'),
    ('festival msu_ru_nsh_clunits (festvox-ru, Russian man)', 'training', 'BSD-like, permissive'),
    ('festival czech_ph (festvox-czech-ph, Czech man)', 'training', 'GPL-2+'),
    ('festival czech_dita, czech_krb, czech_machac (festvox-czech-dita, -krb, -machac: Czech woman, child, man)', 'training', 'GPL-3+'),
    ('festival lp_diphone, pc_diphone (festvox-italp16k, festvox-itapc16k: Italian woman, man)', 'training', 'GPL-2+'),
    ('festival suo_fi_lj_diphone, hy_fi_mv_diphone (festvox-suopuhe-lj, -mv: Finnish woman, man)', 'training', 'LGPL-2+'),
    ('festival upc_ca_ona_hts (festvox-ca-ona-hts, Catalan woman)', 'training', 'LGPL-2.1+'),
    ('festival telugu_NSK_diphone (festvox-te-nsk, Telugu man)', 'training', 'GPL-2+'),
    ('actors of Flight of the Amazon Queen (flight-of-the-amazon-queen: some fifty roles in American English, 3 h 53 min)', 'training', "the game's own: free to use, change and pass on, not to be sold by itself"),
    ('actors of Beneath a Steel Sky (beneath-a-steel-sky: some thirty roles in British English, 1 h 35 min)', 'training', "the game's own, as above"),
    ('actors of Drascula (drascula: eleven roles in English, 39 min)', 'chose thresholds and the blend', "the game's own, as above"),
    ('actors of Fish Fillets, the two fish (fillets-ng-data-cs: natural Czech, a man and a woman)', 'training', 'GPL-2+'),
    ('actors of Fish Fillets, the other roles (fillets-ng-data-cs), and in Dutch (fillets-ng-data-nl)', 'the first third of an earlier tuning; the former then chose thresholds', 'GPL-2+'),
    ('volunteers of Tux Paint, one a language (tuxpaint-stamps-default): Belarusian, Spanish, Romanian (women, by their pitch), French and Russian (men), 12 to 18 minutes each', 'training', 'GPL-2'),
    ('volunteers of Tux Paint: Greek (a woman), Catalan and Danish (men), and half a minute of English', 'chose thresholds and the blend', 'GPL-2'),
    ('flite awb (Scottish man)', 'held out', "CMU, permissive (BSD-like: flite's COPYING)"),
    ('festival ked_diphone (festvox-kdlpc16k, American man)', 'held out, with its synthesis method', 'CMU, permissive (BSD-like)'),
    ('real people: pocketsphinx-testdata, alsa-utils', 'held out', 'BSD-2-clause / GPL-2+; evaluation only'),
    ('real person: Allison Smith, asterisk-core-sounds-en-g722', 'held out', 'CC-BY-SA-3.0; evaluation only'),
]

# The model before this one, by the same evaluation: without the actors who speak English.
# (set, condition): r, precision, recall, F1
BEFORE = {('awb', 'clean'): (.82, .71, .82, .76), ('awb', 'snr15'): (.64, .48, .53, .50), ('awb', 'snr5'): (.53, .47, .28, .35),
          ('awb', 'gain20'): (.76, .57, .82, .67), ('awb', 'gain-20'): (.81, .69, .79, .74), ('awb', 'telephone'): (.79, .76, .72, .74),
          ('ked', 'clean'): (.80, .76, .79, .77), ('ked', 'snr15'): (.65, .54, .53, .54), ('ked', 'snr5'): (.54, .33, .12, .18),
          ('ked', 'gain20'): (.78, .70, .72, .71), ('ked', 'gain-20'): (.80, .75, .77, .76), ('ked', 'telephone'): (.78, .73, .68, .71),
          ('people', 'clean'): (.73, .57, .71, .63), ('people', 'snr15'): (.63, .63, .63, .63), ('people', 'snr5'): (.50, .53, .29, .37),
          ('people', 'gain20'): (.71, .60, .77, .68), ('people', 'gain-20'): (.72, .52, .63, .57), ('people', 'telephone'): (.71, .66, .54, .59),
          ('allison', 'clean'): (.68, .50, .72, .59), ('allison', 'snr15'): (.55, .45, .53, .49), ('allison', 'snr5'): (.43, .37, .23, .28),
          ('allison', 'gain20'): (.62, .42, .66, .51), ('allison', 'gain-20'): (.67, .49, .69, .57), ('allison', 'telephone'): (.61, .53, .57, .55)}


def before_and_after(results):
    lines = ['| set | condition | r before | r now | closures P / R / F1 before | now |', '|---|---|---|---|---|---|']
    for r in results:
        old = BEFORE.get((r['set'], r['condition']))
        if old:
            c = r['closures']
            lines.append(f"| {r['set']} | {r['condition']} | {old[0]:.2f} | {r['mouth']:.2f} | {old[1]:.2f} / {old[2]:.2f} / {old[3]:.2f} | {c['precision']:.2f} / {c['recall']:.2f} / {c['f1']:.2f} |")
    return '\n'.join(lines)


def table(results):
    rows = [r for r in results if r['condition'] != 'not speech']
    lines = ['| set | condition | r, mean of six mouth curves | closures precision | recall | F1 | lag ms |', '|---|---|---|---|---|---|---|']
    for r in rows:
        c = r['closures']
        lines.append(f"| {r['set']} | {r['condition']} | {r['mouth']:.2f} | {c['precision']:.2f} | {c['recall']:.2f} | {c['f1']:.2f} | {r['lagMs']:.0f} |")
    return '\n'.join(lines)


def per_channel(results):
    rows = [r for r in results if r['condition'] == 'clean']
    names = [n for n in rows[0]['r'] if n != 'speech']
    lines = ['| set | ' + ' | '.join(names) + ' |', '|---' * (len(names) + 1) + '|']
    return '\n'.join(lines + [f"| {r['set']} | " + ' | '.join(f"{r['r'][n]:.2f}" for n in names) + ' |' for r in rows])


def still(results):
    lines = ['| sound | largest mouth channel | frames with motion |', '|---|---|---|']
    return '\n'.join(lines + [f"| {r['set']} | {r['peak']:.3f} | {100 * r['moving']:.1f} % |" for r in results if r['condition'] == 'not speech'])


def main():
    entry = json.load(open(os.path.join(HERE, '../manifest.json')))['models']['speech-articulation']
    evaluation = json.load(open(os.path.join(HERE, 'evaluation.json')))
    results = evaluation['results']
    voices = '\n'.join(f'| {a} | {b} | {c} |' for a, b, c in VOICES)
    skipped = ''.join(f'- Not evaluated here: {s}\n' for s in evaluation['skipped'])
    card = f"""# Speech to articulation

`{entry['file']}`: {entry['bytes']} bytes, {entry['parameters']} parameters, licence {entry['licence']}, SHA-256 `{entry['sha256']}`.

One step a video frame: 3 x 40 log-mels of the last 1/30 s and a state of {entry['stateFloats']} floats in; 14 channels (`ARTICULATORS` in
`src/media/articulation.ts`) and the next state out. Causal. Output k describes the audio {entry['lookaheadMs']} ms before the end of what was heard: the
look-ahead, window included, is {entry['lookaheadMs']} ms. The network is a dilated convolution over video frames (memory {entry['memorySteps'] / 30:.1f} s); what follows it (gain,
closures by a threshold that follows how sure the network is, the gate that holds the face at rest while nobody speaks) is part of the graph.

## Data

Made by speech synthesizers from Debian, whose phone times are known, and from the dialogues of games and the phrases of a drawing program, whose phones a network of ours found in the sound; no data set was
downloaded, and no person was recorded for it. Voices marked "held out" were never trained on: the shipped model is the evaluated one.

| voices | use | licence |
|---|---|---|
{voices}

Targets are dominance curves (Cohen and Massaro 1993) from a table of mouth shapes per IPA symbol (`training/targets.py`), not measurements of faces.
Augmentation: vocal tract length, tempo, breathiness, equalisation, rooms, telephone and codec lines, noise of many kinds at 0 to 36 dB SNR, level over 49 dB, clipping and overdriven input.

## Evaluation

`npm run eval:speech`. Curves are compared with the plain dominance curves of the reference phones; a closure (p, b, m) counts as found when the middle of a run of
frames with pressed lips lies within 40 ms of its interval. Phones of real people come from forced alignment with pocketsphinx, whose own errors
(10-20 ms, and now and then a phone) count against the model: these figures are lower bounds. `people` are several talkers (read books, dictation, system sounds), `allison` one professional speaker.

{table(results)}

What hours of English by some eighty actors' roles brought, against the model before:

{before_and_after(results)}

Correlation per channel, clean:

{per_channel(results)}

Sounds that are not speech must leave the mouth still:

{still(results)}
{skipped}
## Limits

- The actors play (many roles are caricatures) and were recorded at 11 kHz, in the Queen's case at 16 kbit/s; all but one of the other human voices are adults: children, pathological voices and singing are extrapolation by vocal tract scaling.
- The tongue's channels (`tout`, `tback`) are weak, as they can hardly be heard.
- `brow` and `nod` follow pitch and stress by rule; they are plausible, not measured from faces.
- Music with a voice-like lead and laughter can move the mouth a little (table above).
- It hears sound, not meaning: a second talker in the room moves the mouth as the first does.
"""
    open(os.path.join(HERE, '../MODEL_CARD.md'), 'w').write(card)


if __name__ == '__main__':
    main()
