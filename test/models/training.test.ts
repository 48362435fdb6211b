// What models/training computes without a network: phones of voices, scripts, and the search for the times of known phones. Skipped where python3-numpy and -scipy are missing.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../../models/training', import.meta.url));
const PYTHON = '/usr/bin/python3';
const missing = spawnSync(PYTHON, ['-c', 'import numpy, scipy']).status === 0 ? false : 'python3-numpy or python3-scipy is missing';

/** What a Python expression gives, through JSON. */
function python(imports: string, expression: string): unknown {
  const work = mkdtempSync(join(tmpdir(), 'training-'));
  const done = spawnSync(PYTHON, ['-c', `import json\nimport numpy as np\n${imports}\nprint(json.dumps(${expression}))`], {
    cwd: FOLDER, encoding: 'utf8', env: { ...process.env, TRAINING_WORK: work, PYTHONDONTWRITEBYTECODE: '1' },
  });
  rmSync(work, { recursive: true, force: true });
  assert.equal(done.status, 0, done.stderr);
  return JSON.parse(done.stdout);
}

test('phones of festival voices become the IPA, whatever each language calls them', { skip: missing }, () => {
  const names = [['r~*', 'CZECH'], ['ch', 'CZECH'], ['E1', 'ITALIAN'], ['tS', 'ITALIAN'], ['p:', 'FINNISH'], ['&', 'FINNISH'], ['th', 'TELUGU'], ['#', 'TELUGU'], ['axr', 'ARPABET'], ['p', 'ARPABET'], ['??', 'CATALAN']];
  assert.deepEqual(python('import engines', `[engines._ipa(name, getattr(engines, table)) for name, table in ${JSON.stringify(names)}]`),
    ['rʃ', 'x', 'ɛ', 'tʃ', 'p', 'æ', 't', '_', 'ɚ', 'p', 'ə']);
});

test('the lips meet in a Catalan b after a pause or a nasal only', { skip: missing }, () => {
  const said = python('import engines', "[s for _, _, s in engines._spirants([(0, 1, c) for c in ['_', 'b', 'a', 'b', 'm', 'b']])]");
  assert.deepEqual(said, ['_', 'b', 'a', 'β', 'm', 'b']);
});

test('pseudo-words are written in Telugu script: vowels as signs, first letters whole, a virama where no vowel follows', { skip: missing }, () => {
  assert.deepEqual(python('import texts', "[texts._telugu(word) for word in ['pam', 'apto', 'fi']]"), ['పామ్', 'ఆప్తో', 'ఫి']);
});

test('the times of known phones are found where their classes are likely, and a pause between words only where one is heard', { skip: missing }, () => {
  // 10 frames each: silence, p, its aspiration, a; then m without a pause, o, silence
  const heard = ['_', 'p', 'h', 'ɑ', 'm', 'o', '_'];
  const setup = `import viterbi\nfrom targets import CLASSES, CLASS_COUNT\nscore = np.full((70, CLASS_COUNT), -5.)\nfor i, c in enumerate(${JSON.stringify(heard)}): score[10 * i: 10 * i + 10, CLASSES[c]] = 0\n`
    + "units = viterbi._units([['p', 'ɑ'], ['m', 'o']])\npath = viterbi.best_path(score, units)";
  assert.deepEqual(python(setup, '[[units[u][0], int((path == u).sum())] for u in np.unique(path)]'), heard.map((symbol) => [symbol, 10]));
  assert.equal(python(setup, 'viterbi.best_path(score[:12], units)'), null, 'twelve frames are too few');
});
