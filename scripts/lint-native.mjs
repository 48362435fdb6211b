// Lints the C++ of native/src with clang-tidy (.clang-tidy): `node scripts/lint-native.mjs`. Files
// that passed before, with the same headers and settings, are left out. Exits with 1 when there is
// a finding.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { buildNative } from './build-native.mjs';
import { SetupError } from './setup.mjs';

const ROOT = path.resolve(import.meta.dirname, '..');
const SOURCE = path.join(ROOT, 'native/src');
const BUILD = path.join(ROOT, 'native/build');
const CONFIG = path.join(ROOT, '.clang-tidy');
/** Files that include a group, and the commands that compile them. */
const GROUPS = path.join(BUILD, 'lint');
/**
 * Files that are checked in one run. Most of the time goes into the headers of the system, which a
 * group reads once: 8 files take 2.3 s of a core instead of 13 (measured). Some do not go together,
 * so all 37 take half as long as one by one.
 */
const GROUP_SIZE = 8;
/** The hash of each file's inputs when it last passed. */
const STAMP = path.join(BUILD, 'lint.json');

/** @returns the file and all files of native/src that it includes, directly or not */
function withIncludes(file, found = new Set()) {
  if (found.has(file) || !existsSync(file)) {
    return found;
  }
  found.add(file);
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/^#include "(.+)"$/gm)) {
    withIncludes(path.join(SOURCE, name), found);
  }
  return found;
}

function hashOf(parts) {
  const hash = createHash('sha256');
  for (const part of parts) {
    hash.update(part).update('\0');
  }
  return hash.digest('hex');
}

/** Puts files that are compiled alike into groups. @param commands of compile_commands.json */
function groupsOf(commands) {
  const alike = new Map();
  for (const one of commands) {
    // What is for one processor defines what the portable file does.
    const key = one.file.endsWith('_avx2.cc') ? one.file : flagsOf(one);
    alike.set(key, [...(alike.get(key) ?? []), one]);
  }
  return [...alike.values()].flatMap((members) =>
    Array.from({ length: Math.ceil(members.length / GROUP_SIZE) }, (_, index) =>
      members.slice(index * GROUP_SIZE, (index + 1) * GROUP_SIZE),
    ),
  );
}

const flagsOf = ({ command }) => command.slice(0, command.indexOf(' -o '));

/** @returns whether clang-tidy finds nothing in a file that includes those of the group */
async function isClean(group) {
  const folder = mkdtempSync(path.join(GROUPS, 'group-'));
  const file = path.join(folder, 'group.cc');
  const [{ directory }] = group;
  const command = `${flagsOf(group[0])} -o group.o -c ${file}`;
  writeFileSync(file, group.map((one) => `#include "${one.file}"\n`).join(''));
  writeFileSync(
    path.join(folder, 'compile_commands.json'),
    JSON.stringify([{ directory, command, file }]),
  );
  const own = [`--config-file=${CONFIG}`, '--checks=-bugprone-suspicious-include'];
  return (await findingsIn(file, folder, own)) === '';
}

/**
 * @param folder of compile_commands.json
 * @returns what clang-tidy finds in the file; empty when it passes
 */
async function findingsIn(file, folder = path.join(BUILD, 'release'), more = []) {
  const args = ['--quiet', '-p', folder, ...more, file];
  const child = spawn('clang-tidy', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let diagnostics = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    diagnostics += text;
  });
  const code = await new Promise((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', reject);
  });
  return code === 0 ? '' : output.trim() || diagnostics.trim() || `clang-tidy exited with ${code}`;
}

/** @returns whether all files pass */
async function lintNative() {
  const version = spawnSync('clang-tidy', ['--version'], { encoding: 'utf8' });
  if (version.error) {
    console.log(
      'C++ lint skipped: clang-tidy is not installed. On Debian: apt-get install clang-tidy',
    );
    return true;
  }
  // The build configures the compiler's flags (compile_commands.json) and generates adapters.inc.
  await buildNative({ log: console.log });
  const commands = JSON.parse(
    readFileSync(path.join(BUILD, 'release/compile_commands.json'), 'utf8'),
  );
  const settings = [version.stdout, readFileSync(CONFIG)];
  const passed = existsSync(STAMP) ? JSON.parse(readFileSync(STAMP, 'utf8')) : {};
  const hashes = new Map(
    commands.map(({ file, command }) => [
      file,
      hashOf([...settings, command, ...[...withIncludes(file)].map((name) => readFileSync(name))]),
    ]),
  );
  const nameOf = (file) => path.relative(ROOT, file);
  const changed = [...hashes.keys()].filter((file) => passed[nameOf(file)] !== hashes.get(file));
  const failed = new Set();
  const findings = new Set(); // a finding in a header appears for each file that includes it
  const startMs = Date.now();
  rmSync(GROUPS, { recursive: true, force: true });
  mkdirSync(GROUPS, { recursive: true });
  const queue = groupsOf(commands.filter(({ file }) => changed.includes(file)));
  const check = async (group) => {
    if (group.length > 1) {
      // Two files of a group may define the same: what is found counts only in a file alone.
      if (!(await isClean(group))) {
        const middle = group.length >> 1;
        await check(group.slice(0, middle));
        await check(group.slice(middle));
      }
      return;
    }
    const [{ file }] = group;
    const output = await findingsIn(file);
    if (output === '') {
      return;
    }
    failed.add(file);
    for (const finding of output.split(/^(?=\S+:\d+:\d+: (?:error|warning): )/m)) {
      findings.add(finding.trim());
    }
  };
  const work = async () => {
    for (let group = queue.shift(); group !== undefined; group = queue.shift()) {
      await check(group);
    }
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, work));
  for (const finding of findings) {
    console.log(finding);
  }
  const clean = [...hashes].filter(([file]) => !failed.has(file));
  const stamp = Object.fromEntries(clean.map(([file, hash]) => [nameOf(file), hash]));
  writeFileSync(STAMP, JSON.stringify(stamp, null, 1));
  const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
  console.log(
    `C++ lint: ${changed.length} of ${hashes.size} files checked in ${seconds} s, ` +
      `${failed.size} with findings`,
  );
  return failed.size === 0;
}

try {
  if (!(await lintNative())) {
    process.exitCode = 1;
  }
} catch (error) {
  if (!(error instanceof SetupError)) {
    throw error;
  }
  console.error(error.message);
  process.exitCode = 1;
}
