// The order in which vitest starts test files: the longest first, so that none of them runs on alone
// at the end while the other core is idle.
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take ten seconds and more on two cores, the longest first. */
const LONGEST = [
  'native/sanitizers', // before the fuzzing beside it needs the same build
  'bench/scenarios',
  'bench/load',
  'jobs/face/create-face',
  'jobs/face/create-face-mouth',
  'jobs/face/create-face-eyes',
  'scenarios/conversation',
  'scenarios/browser-commands',
  'scenarios/page',
  'scenarios/bad-network',
  'talk/conversation',
  'front/signalling',
  'ops/live-prometheus',
  'scenarios/media-clock',
  'scenarios/livekit-room',
  'scenarios/chromium',
  'scenarios/page-inputs',
  'scenarios/static-video',
  'native/races',
  'talk/provider-sockets',
  'front/videos/static-video-service',
  'pipeline/wav2lip/neighbours',
  'scenarios/refused-peer',
  'jobs/video/render-video',
  'front/placement/watchdog',
  'scenarios/wav2lip',
  'scenarios/room-page',
  'front/history/session-recorder',
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
