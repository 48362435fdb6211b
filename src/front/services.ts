// The services behind the routes and the sessions: accounts, tokens, faces, history, and the
// threads of their jobs.
import type { Config } from '../config.ts';
import type { Logger } from '../base/log.ts';
import { createJobPool, type JobPool, type NamedThread } from '../jobs/job-pool.ts';
import { Agents } from './accounts/agents.ts';
import { ApiKeys } from './accounts/api-keys.ts';
import { AutoTokens } from './accounts/auto-tokens.ts';
import { SecretBox } from './accounts/secret-box.ts';
import type { AgentFields } from './api/auto.ts';
import { type DefaultFaceFiles, loadDefaultFaces } from './faces/default-faces.ts';
import { FaceCatalog } from './faces/face-catalog.ts';
import { FaceRecords } from './faces/face-records.ts';
import { Faces, type FaceJob } from './faces/faces.ts';
import { History } from './history/history.ts';
import { JobQueue } from './queue/job-queue.ts';
import { SessionQuota } from './sessions/session-quota.ts';
import { SessionTokens } from './sessions/session-tokens.ts';
import type { BlobStore } from './store/blobs.ts';
import type { Storage } from './store/open-storage.ts';
import type { RedisStore } from './store/redis.ts';
import { ConversationStore } from './talk/conversation-store.ts';

/** What the services are built from. */
export interface ServiceOptions {
  readonly config: Config;
  readonly store: RedisStore;
  /** Names this server, across restarts. */
  readonly serverId: string;
  /** Where faces and videos are. */
  readonly storage: Pick<Storage, 'blobs' | 'evict'>;
  /** CPUs for offline work; empty: any. */
  readonly jobCpus: readonly number[];
  readonly defaultFaces: DefaultFaceFiles;
  readonly log: Logger;
}

/** The services of one server. */
export interface Services {
  readonly apiKeys: ApiKeys;
  readonly tokens: SessionTokens;
  readonly quota: SessionQuota;
  readonly history: History;
  readonly agents: Agents<AgentFields>;
  readonly autoTokens: AutoTokens;
  readonly conversationStore: ConversationStore;
  readonly blobs: BlobStore;
  readonly secrets: SecretBox;
  readonly faces: Faces;
  readonly faceCatalog: FaceCatalog;
  /** The thread that parses large request bodies. */
  readonly bodyPool: JobPool;
  /** Those that make faces, and the one that parses bodies, while they run. */
  readonly jobThreads: readonly NamedThread[];
  /** Stops running jobs; the next start takes them up again. */
  close(): Promise<void>;
}

/** Builds the services on `store`, and takes up the face jobs that the last run left unfinished. */
export async function openServices(options: ServiceOptions): Promise<Services> {
  const { config, store, storage, serverId, jobCpus, log } = options;
  const { blobs } = storage;
  const secrets = await SecretBox.open(config.SECRETS_KEY, config.DATA_DIR, store);
  const queue = new JobQueue<FaceJob>({
    store,
    name: 'face',
    serverId,
    capacity: config.MAX_QUEUED_JOBS,
  });
  await queue.reclaim();
  const facePool = createJobPool('face-job', config.JOB_THREADS, jobCpus);
  const bodyPool = createJobPool('body-job', 1, jobCpus);
  const faces = new Faces({
    store,
    records: new FaceRecords(store),
    blobs,
    evict: (key) => storage.evict(key),
    queue,
    pool: facePool,
    threads: config.JOB_THREADS,
    log,
    defaultFaces: await loadDefaultFaces(options.defaultFaces),
  });
  return {
    apiKeys: new ApiKeys(store, config.RATE_LIMIT_RPS),
    tokens: new SessionTokens(store, config.TOKEN_TTL_SECONDS),
    quota: new SessionQuota(store, config.MAX_SESSIONS_PER_KEY),
    history: new History(store, config.HISTORY_RETENTION_DAYS),
    agents: new Agents<AgentFields>(store),
    autoTokens: new AutoTokens(store, secrets),
    conversationStore: new ConversationStore(store, secrets, config.TRANSCRIPT_RETENTION_DAYS),
    blobs,
    secrets,
    faces,
    faceCatalog: new FaceCatalog(faces),
    bodyPool,
    get jobThreads() {
      return [...facePool.threads, ...bodyPool.threads];
    },
    async close() {
      await faces.close();
      await Promise.all([facePool.close(), bodyPool.close()]);
    },
  };
}
