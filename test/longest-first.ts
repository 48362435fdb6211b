// The order in which vitest starts test files: the longest first, so that none of them runs on alone
// at the end while the other core is idle.
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take ten seconds and more on two cores, the longest first; those that wait beside those
 * that compute.
 */
const LONGEST = [
  'scenarios/page',
  'scenarios/client',
  'scenarios/refused-peer', // waits
  'scenarios/chromium',
  'ops/live-prometheus',
  'scenarios/docs-page',
  'scenarios/examples',
  'scenarios/split-session',
  'scenarios/failures',
  'scenarios/room-page',
  'talk/conversation', // waits
  'scenarios/browser-commands',
  'scenarios/media-clock',
  'bench/scenarios', // before those that start several servers: conversations are timed
  'scenarios/livekit-room',
  'scenarios/cluster',
  'scenarios/page-inputs',
  'scenarios/conversation', // not while three servers and browsers start at once
  'scenarios/static-video',
  'scenarios/wav2lip',
  'pipeline/wav2lip/neighbours',
  'bench/figures',
  'scenarios/bad-network',
].map((name) => path.resolve(import.meta.dirname, `${name}.test.ts`));

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = LONGEST.indexOf(moduleId);
  return rank < 0 ? LONGEST.length : rank;
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    return usual.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
