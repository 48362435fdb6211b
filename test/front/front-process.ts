// A front in a process of its own, to be killed: prints its address and key, then serves. Arguments: data directory, key or '' to make one.
import path from 'node:path';
import { createLogger } from '../../src/base/log.ts';
import { createFront } from '../../src/front/front.ts';
import { History } from '../../src/front/history/history.ts';
import { connectStore } from '../../src/front/process/open-store.ts';
import { serverIdentity } from '../../src/front/store/data-dir.ts';
import { SessionRecorder } from '../../src/front/history/session-recorder.ts';

const [dataDir = '', sessionId = ''] = process.argv.slice(2);
const log = createLogger('error');
const { store } = await connectStore({ redisUrl: undefined, dataDir }, log);
const history = new History(store, 30);
const serverId = await serverIdentity(dataDir);
const recorder = await SessionRecorder.open({ store, history, serverId, dataDir, log });
const fixtures = path.join(dataDir, 'fixtures');
const front = await createFront({
  config: {
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    dataDir,
    apiKeyHeaders: ['x-service-api-key'],
    tokenTtlSeconds: 60,
    requestsPerSecond: 10_000,
    sessionsPerKey: 10,
    iceServers: [{ urls: 'stun:127.0.0.1:3478' }],
    publicHost: '127.0.0.1',
    turnSecret: undefined,
    allowedOrigins: [],
    maxConnections: 100,
    secretsKey: undefined,
    jobThreads: 1,
    jobCpus: [],
    maxQueuedJobs: 10,
    version: '0.0.0',
    defaultFaces: { manifestFile: path.join(fixtures, 'faces.json'), builtDir: fixtures },
  },
  store,
  log,
  deps: {
    history,
    serverId,
    canPlace: () => true,
    draining: () => false,
    models: ['rig'],
    readiness: {},
    metrics: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
    onRequest: () => {},
  },
});
await front.apiKeys.register('the key of the crash test', 'owner', 'crash');
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
const { port } = await front.listen();
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
