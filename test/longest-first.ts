// The order in which vitest starts test files: the longest first, so that none of them runs on alone
// at the end while the other core is idle.
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take ten seconds and more on two cores, the longest first; those that wait beside those
 * that compute.
 */
const LONGEST = [
  'native/sanitizers', // before the fuzzing beside it needs the same build
  'talk/conversation',
  'jobs/face/create-face',
  'scenarios/conversation',
  'scenarios/page',
  'front/videos/static-video-service',
  'scenarios/static-video',
  'front/signalling',
  'native/races',
  'scenarios/page-inputs',
  'jobs/face/create-face-mouth',
  'ops/live-prometheus',
  'jobs/face/create-face-eyes',
  'scenarios/chromium',
  'scenarios/client',
  'front/placement/watchdog',
  'jobs/face/portrait-quality',
  'pipeline/wav2lip/neighbours',
  'scenarios/failures',
  'talk/provider-sockets',
  'scenarios/docs-page',
  'jobs/video/render-video',
  'scenarios/refused-peer',
  'scenarios/wav2lip',
  'front/history/session-recorder',
  'scenarios/split-session',
  'scenarios/cluster',
  'scenarios/room-page',
  'front/cluster/cluster',
  'bench/scenarios',
  'bench/load',
  'bench/front',
  'scenarios/livekit-server',
  'scenarios/browser-commands',
  'scenarios/livekit-outages',
  'scenarios/livekit-room',
  'scenarios/bad-network',
  'scenarios/media-clock',
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
