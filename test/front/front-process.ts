// A front in a process of its own, to be killed: prints its address, then serves.
// Arguments: data directory; id of a session to begin, or none.
import { CloseStack } from '../../src/base/close-stack.ts';
import { createLogger } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config.ts';
import { SessionRecorder } from '../../src/front/history/session-recorder.ts';
import { connectStore } from '../../src/front/process/open-store.ts';
import { serverIdentity } from '../../src/front/store/data-dir.ts';
import { openFront } from './harness.ts';

const [dataDir = '', sessionId = ''] = process.argv.slice(2);
const log = createLogger('error');
const opened = await connectStore({ redis: undefined, dataDir }, log);
const { store } = opened;
const serverId = await serverIdentity(dataDir);
const config = loadConfig({ DATA_DIR: dataDir, PORT: '0' });
const { services, http } = await openFront(config, opened, new CloseStack(), { serverId });
const recorder = await SessionRecorder.open({
  store,
  history: services.history,
  serverId,
  dataDir,
  log,
});
await services.apiKeys.register('the key of the crash test', 'owner', 'crash');
if (sessionId !== '') {
  await recorder.begin({
    id: sessionId,
    ownerId: 'owner',
    tokenId: 't',
    faceId: 'ava',
    kind: 'p2p',
    aggregator: null,
    keyName: 'crash',
    startMs: Date.now(),
  });
}
process.stdout.write(`${JSON.stringify({ url: http.url })}\n`);
