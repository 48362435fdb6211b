// What models/training computes: phones of voices, scripts, alignment of known phones, and what the
// exported graph adds to the network.
// Tests are skipped where python3-numpy and -scipy are missing; the last ones need python3-torch
// and -onnx.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../../models/training', import.meta.url));
const PYTHON = '/usr/bin/python3';
const missing =
  spawnSync(PYTHON, ['-c', 'import numpy, scipy']).status === 0
    ? false
    : 'python3-numpy or python3-scipy is missing';
const noTorch =
  spawnSync(PYTHON, ['-c', 'import torch, onnx, scipy']).status === 0
    ? false
    : 'python3-torch, python3-onnx or python3-scipy is missing';

/** The value of a Python expression, passed as JSON. */
function python(imports: string, expression: string): unknown {
  const work = mkdtempSync(join(tmpdir(), 'training-'));
  const done = spawnSync(
    PYTHON,
    ['-c', `import json\nimport numpy as np\n${imports}\nprint(json.dumps(${expression}))`],
    {
      cwd: FOLDER,
      encoding: 'utf8',
      env: { ...process.env, TRAINING_WORK: work, PYTHONDONTWRITEBYTECODE: '1' },
    },
  );
  rmSync(work, { recursive: true, force: true });
  assert.equal(done.status, 0, done.stderr);
  return JSON.parse(done.stdout);
}

test('phones of festival voices become IPA symbols in every language', (t) => {
  t.skip(Boolean(missing), String(missing));
  const names = [
    ['r~*', 'CZECH'],
    ['ch', 'CZECH'],
    ['E1', 'ITALIAN'],
    ['tS', 'ITALIAN'],
    ['p:', 'FINNISH'],
    ['&', 'FINNISH'],
    ['th', 'TELUGU'],
    ['#', 'TELUGU'],
    ['axr', 'ARPABET'],
    ['p', 'ARPABET'],
    ['??', 'CATALAN'],
  ];
  assert.deepEqual(
    python(
      'import engines',
      `[engines._ipa(name, getattr(engines, table)) for name, table in ${JSON.stringify(names)}]`,
    ),
    ['rʃ', 'x', 'ɛ', 'tʃ', 'p', 'æ', 't', '_', 'ɚ', 'p', 'ə'],
  );
});

test('a Catalan b closes the lips only after a pause or a nasal', (t) => {
  t.skip(Boolean(missing), String(missing));
  const said = python(
    'import engines',
    "[s for _, _, s in engines._spirants([(0, 1, c) for c in ['_', 'b', 'a', 'b', 'm', 'b']])]",
  );
  assert.deepEqual(said, ['_', 'b', 'a', 'β', 'm', 'b']);
});

test('pseudo-words in Telugu script: vowel signs, initial vowels, virama where no vowel follows', (t) => {
  t.skip(Boolean(missing), String(missing));
  assert.deepEqual(
    python('import texts', "[texts._telugu(word) for word in ['pam', 'apto', 'fi']]"),
    ['పామ్', 'ఆప్తో', 'ఫి'],
  );
});

test('alignment puts phones where their classes are likely, and a pause only where there is one', (t) => {
  t.skip(Boolean(missing), String(missing));
  // 10 frames each: silence, p, its aspiration, a; then m without a pause, o, silence
  const heard = ['_', 'p', 'h', 'ɑ', 'm', 'o', '_'];
  const setup =
    `import viterbi\nfrom targets import CLASSES, CLASS_COUNT\nscore = np.full((70, ` +
    `CLASS_COUNT), -5.)\nfor i, c in enumerate(${JSON.stringify(heard)}): score[10 * i: 10 ` +
    `* i + 10, CLASSES[c]] = 0\n` +
    "units = viterbi._units([['p', 'ɑ'], ['m', 'o']])\npath = viterbi.best_path(score, units)";
  assert.deepEqual(
    python(setup, '[[units[u][0], int((path == u).sum())] for u in np.unique(path)]'),
    heard.map((symbol) => [symbol, 10]),
  );
  assert.equal(
    python(setup, 'viterbi.best_path(score[:12], units)'),
    null,
    'twelve frames are too few',
  );
});

test('the closure threshold falls with noise, not in pauses; a zero state is a fresh stream', (t) => {
  t.skip(Boolean(noTorch), String(noTorch));
  // Streams with closed lips in every twelfth frame; then one ambiguous frame.
  const setup = `import torch
from export import Shape
from network import CLOSURE, RAW, SPEECH
shape, logit = Shape(), lambda p: float(np.log(p / (1 - p)))
def frame(p, speech=9.):
    raw = torch.zeros(1, RAW)
    raw[0, CLOSURE], raw[0, SPEECH] = logit(p), speech
    return raw
def heard(noise): return torch.full((1, 3, 40), noise)
def press_after(noise=0., pauses=0., speech=9., last=.6, before=.02):
    memory = torch.zeros(1, shape.MEMORY)
    for k in range(600):
        level = before if k == 599 else .95 if k % 12 == 0 else .02
        _, memory = shape(frame(level, speech), heard(noise if k % 60 else pauses), memory)
    return float(shape(frame(last), heard(noise), memory)[0][0, 2])
fresh = float(shape(frame(.6), heard(0.), torch.zeros(1, shape.MEMORY))[0][0, 2])`;
  const [clean, surely, again, loud, noisy, paused, fresh] = python(
    setup,
    '[press_after(), press_after(last=.7), press_after(before=.95), press_after(1.2), ' +
      'press_after(1.2, 1.1), press_after(speech=-9., before=.95), fresh]',
  ) as [number, number, number, number, number, number, number];
  assert.ok(clean < 0.5, `in clean speech .6 is no closure after open lips: ${clean}`);
  assert.ok(surely >= 0.5, `.7 is one: ${surely}`);
  assert.ok(again >= 0.5, `so is .6 after closed lips: ${again}`);
  assert.ok(
    loud < 0.5,
    `in speech with pauses every two seconds .6 is none, however loud: ${loud}`,
  );
  assert.ok(noisy >= 0.5, `where the pauses are noise as well it is one: ${noisy}`);
  assert.equal(paused, fresh);
});

test('running step by step equals running the whole sequence, including the talker mean', (t) => {
  t.skip(Boolean(noTorch), String(noTorch));
  const setup = `import torch
from export import Shape
from network import Network, Step
torch.manual_seed(1)
network, shape = Network(32, 8).eval(), Shape()
torch.nn.init.normal_(network.talker.tell.weight)
step, mel = Step(network, shape).eval(), torch.rand(2, 60, 3, 40)
with torch.no_grad():
    raw, apart, untold = network(mel)[0], 0., 0.
    state, memory = torch.zeros(2, step.state_size), torch.zeros(2, shape.MEMORY)
    for k in range(60):
        one, state = step(mel[:, k], state)
        other, memory = shape(raw[:, k], mel[:, k], memory)
        apart = max(apart, float((one - other).abs().max()))
    network.talker.tell.weight.zero_()
    untold = float((network(mel)[0] - raw).abs().max())`;
  const [apart, untold] = python(setup, '[apart, untold]') as [number, number];
  assert.ok(apart < 1e-5, `${apart}`);
  assert.ok(untold > 0.1, `what it is told of the talker matters: ${untold}`);
});

test('the features of a phone belong to the step that describes it 60 ms later', (t) => {
  t.skip(Boolean(missing), String(missing));
  // One second with a change of phone at 0.5 s: the first feature frame whose middle is later hears
  // the second phone.
  const setup =
    'import prepare, talkers\nclasses = prepare.frame_targets([(0, .5, "a"), (.5, 2, ' +
    '"m")], 30)[1]\nheard = talkers.heard_classes(classes)';
  assert.deepEqual(
    python(setup, '[len(heard), int(np.flatnonzero(heard == heard[-1])[0])]'),
    [90, 45],
  );
});

test('silence round a recording is trimmed to 0.2 s', (t) => {
  t.skip(Boolean(noTorch), String(noTorch));
  const setup =
    'import natural\nwave = np.zeros(48000, np.int16)\nwave[16000:24000] = 5000 * ' +
    'np.sin(np.arange(8000) * .3)\nwave[30000:] = 20';
  const length = python(setup, 'len(natural.trimmed(wave))') as number;
  assert.ok(Math.abs(length - (8000 + 2 * 3200)) < 320, `${length} samples`);
  assert.equal(python('import natural', 'len(natural.trimmed(np.zeros(0, np.int16)))'), 0);
});

test('RNC unpacking: literal runs lie between bit words, and copies may overlap', (t) => {
  t.skip(Boolean(missing), String(missing));
  // Four literal bytes, six copied from four back, four more literals. Each table has one code of
  // one bit. RNC stores the lowest bits first.
  const setup = `from games import sky
bits, plain = [], []
def put(value, count): bits.extend(value >> k & 1 for k in range(count))
put(0, 2)
for lengths in ([0, 0, 0, 1], [0, 0, 1], [0, 0, 0, 1]):
    put(len(lengths), 5)
    for n in lengths: put(n, 4)
put(2, 16)
put(0, 3); plain.append((len(bits), b'abcd'))
put(0b10, 2); put(0, 3)
put(0, 3); plain.append((len(bits), b'wxyz'))
bits += [0] * (-len(bits) % 16)
chunks = [bits[i: i + 16][::-1] for i in range(0, len(bits), 16)]
words = [int(''.join(map(str, chunk)), 2).to_bytes(2, 'little') for chunk in chunks]
for at, run in reversed(plain): words.insert(-(-at // 16), run)
packed = b'RNC\\x01' + (14).to_bytes(4, 'big') + bytes(9) + b'\\x01' + b''.join(words) + bytes(4)`;
  assert.equal(python(setup, 'sky._unpacked(packed).decode()'), 'abcdabcdabwxyz');
  assert.deepEqual(
    python(
      'from games import sky\ndef leaves(n): return n if isinstance(n, str) else leaves(n[0]) + leaves(n[1])',
      "sorted(set('abcdefghijklmnopqrstuvwxyz') - set(leaves(sky._tree(iter(sky.TREE)))))",
    ),
    [],
    'a letter without a code',
  );
});

test('lines of Flight of the Amazon Queen are split at movements, without unspoken text', (t) => {
  t.skip(Boolean(missing), String(missing));
  assert.deepEqual(
    python(
      'from games import queen',
      "[queen.segments('Oh no!*XY12345678901 Not*F3again'), queen.clean('(sigh) It is " +
        "Lola^_ <sneeze>'), queen.clean('(...)'), bool(queen.NOISES.search('Oooh! Squawk!'))]",
    ),
    [
      [
        ['1', 'Oh no!'],
        ['2', ' Not'],
        ['3', 'again'],
      ],
      'It is Lola',
      '',
      true,
    ],
  );
});
