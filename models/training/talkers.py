"""How talkers differ: the level of each band in each class of phones, for every talker in the
corpus with enough speech. Training adds the difference between two talkers to the phones of a
third (train.Data.lent), because there are far fewer talkers than hours of speech.

usage: talkers.py
Writes work/talkers.npz: float32 [talkers, CLASS_COUNT, BANDS] for each kind of recording.
"""

import collections
import os

import numpy as np

import targets
from evalset import level
from frontend import BANDS, WORK, features
from prepare import LOOKAHEAD_S, WEIGHTS, load_groups
from viterbi import FINE

PATH = os.path.join(WORK, 'talkers.npz')
# Differences are computed within a kind of recording, where they come from the talker and not from
# the microphone. Formant synthesis has none worth using; in sky the speaker is not known.
KINDS = {'flite': 'synthesizer', 'festival': 'synthesizer', 'queen': 'queen', 'stamps': 'stamps'}
UTTERANCES = 60  # of each talker
LEAST, SHRUNK = (
    1500,
    30,
    # feature frames of speech that a talker needs; and frames of the mean of all talkers with which
    # each class of a talker begins
)
HEARD_S = 0.5 / FINE  # the middle of the first feature frame
AHEAD = round(
    LOOKAHEAD_S * FINE - 1.5
    # from the first class of a step in a shard (a third of a step before the time that the step
    # describes) to the class in its first feature frame
)


def heard_classes(classes):
    """Class of phone in each feature frame [3 n], from the classes at the times that the steps
    describe [n, 3].
    """
    flat = classes.reshape(-1)
    return np.concatenate([flat[AHEAD:], np.repeat(flat[-1:], AHEAD)])


def main():
    sums = collections.defaultdict(lambda: np.zeros((targets.CLASS_COUNT, BANDS + 1)))
    count = collections.Counter()
    for items in load_groups(WEIGHTS).values():
        for wave, segments, voice, _ in items:
            count[voice] += 1
            if voice.partition(':')[0] not in KINDS or count[voice] > UTTERANCES:
                continue
            heard = features(level(wave)).reshape(-1, BANDS)
            _, classes = targets.curves(segments, len(heard), FINE, HEARD_S)
            np.add.at(sums[voice], classes, np.concatenate([heard, np.ones((len(heard), 1))], 1))
    everyone = sum(sums.values())
    everyone = everyone[:, :-1] / np.maximum(1, everyone[:, -1:])
    kinds = collections.defaultdict(list)
    silence = targets.CLASSES[targets.SILENCE]
    for voice, total in sums.items():
        if np.delete(total[:, -1], silence).sum() > LEAST:
            mean = (total[:, :-1] + SHRUNK * everyone) / (total[:, -1:] + SHRUNK)
            mean[silence] = 0
            kinds[KINDS[voice.partition(':')[0]]].append(mean.astype(np.float32))
    kinds = {kind: np.stack(means) for kind, means in kinds.items() if len(means) > 1}
    np.savez(PATH, **kinds)
    print('talkers:', {kind: len(means) for kind, means in kinds.items()})


if __name__ == '__main__':
    main()
