// What everything else of a server stands on: metrics, the stores, and the media workers.
import type { CloseStack } from '../base/close-stack.ts';
import type { Logger } from '../base/log.ts';
import type { Config } from '../config.ts';
import { DEFAULT_FACES, readAnyDefaultFace } from '../front/faces/default-faces.ts';
import { observeRedis, observeStorage } from '../front/front-metrics.ts';
import { type CoreClaims, claimCores } from '../front/placement/core-claims.ts';
import { WorkerPool } from '../front/placement/worker-pool.ts';
import { connectStore } from '../front/process/open-store.ts';
import { prepareDataDir, serverIdentity } from '../front/store/data-dir.ts';
import { openStorage, type Storage } from '../front/store/open-storage.ts';
import type { RedisStore } from '../front/store/redis.ts';
import { migrate } from '../front/store/schema.ts';
import { type TracingOptions, openTracing } from '../front/tracing/open-tracing.ts';
import type { Tracing } from '../front/tracing/tracing.ts';
import type { MediaConfig } from '../link/worker-init.ts';
import { mediaConfig, wav2lipOptions } from '../media-config.ts';
import { Metrics } from '../metrics/metrics.ts';
import { watchMainThread } from '../metrics/threads.ts';
import { native } from '../native/addon.ts';
import { tracesUrl } from '../cluster-settings.ts';
import { storageOptions } from '../storage-settings.ts';
import { storeConfig } from '../store-config.ts';
import { commitHash, packageVersion } from '../version.ts';

/** What a server is composed from. */
export interface Composition {
  readonly config: Config;
  readonly log: Logger;
  /** Closes, in reverse order, what was opened. */
  readonly closers: CloseStack;
}

/** The opened core of a server. */
export interface ServerCore extends Composition {
  readonly version: string;
  readonly metrics: Metrics;
  /** Undefined: no collector is configured. */
  readonly tracing: Tracing | undefined;
  readonly store: RedisStore;
  /** The storage of faces and videos. */
  readonly storage: Storage;
  /** Names this server, across restarts. */
  readonly serverId: string;
  readonly media: MediaConfig;
  readonly pool: WorkerPool;
  /** CPUs for offline work: those without a media worker where there are any. */
  readonly jobCpus: readonly number[];
}

/** Connects the store and starts the workers. @throws Error with one line to act on */
export async function openCore(composition: Composition): Promise<ServerCore> {
  const { config, log, closers } = composition;
  const version = packageVersion();
  await prepareDataDir(config.DATA_DIR);
  const metrics = new Metrics();
  closers.add(
    watchMainThread(metrics, () => native.threadCpuMs(), { version, commit: commitHash() }),
  );
  const opened = await connectStore(storeConfig(config), log);
  closers.add(() => opened.close());
  const { store } = opened;
  await migrate(store, log);
  observeRedis(metrics, store.client, () => store.ready);
  const storage = await openStorage(storageOptions(config), {
    ...observeStorage(metrics),
    log,
  });
  closers.add(() => {
    storage.close();
  });
  const serverId = await serverIdentity(config.DATA_DIR);
  const tracing = await traceTo(composition, { serverId, version, metrics });

  const media = await mediaConfig(config);
  const wav2lip = wav2lipOptions(config);
  const cores = await claimWorkerCores(config, log);
  closers.add(() => cores.release());
  const pool = await WorkerPool.start({
    cpus: cores.cpus,
    isRealtime: config.REALTIME_WORKERS && cores.free.length > 0,
    media,
    calibrationFace: readAnyDefaultFace(DEFAULT_FACES),
    wav2lip,
    metrics,
    log,
  });
  closers.add(() => pool.stop());
  const jobCpus = cores.free.length > 0 ? cores.free : native.allowedCpus();
  return {
    ...composition,
    version,
    metrics,
    tracing,
    store,
    storage,
    serverId,
    media,
    pool,
    jobCpus,
  };
}

/** Opens the tracing, if a collector is configured. */
async function traceTo(
  { config, log, closers }: Composition,
  server: Pick<TracingOptions, 'serverId' | 'version' | 'metrics'>,
): Promise<Tracing | undefined> {
  const url = tracesUrl(config);
  if (url === undefined) {
    return undefined;
  }
  const tracing = await openTracing({ ...server, url, log });
  closers.add(() => tracing.close());
  return tracing;
}

/** Claims a core for each worker, and warns where another server on this host has it already. */
async function claimWorkerCores(config: Config, log: Logger): Promise<CoreClaims> {
  const workers = config.WORKERS;
  const cores = await claimCores(native.allowedCpus(), workers, { lockDir: config.CORE_LOCK_DIR });
  if (cores.shared.length > 0) {
    log.warn(
      { cpus: cores.shared, workers },
      'workers share cores with another server on this host: frames will be late on both. ' +
        'Lower WORKERS, or give each server its own cpuset',
    );
  }
  return cores;
}
