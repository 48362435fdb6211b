// What a server does: accounts, faces, history, videos, conversations, live sessions, and what it
// shares with the other servers of its Redis.
import { Cluster } from '../front/cluster/cluster.ts';
import { Forwarder } from '../front/cluster/forwarder.ts';
import { Relay } from '../front/cluster/relay.ts';
import { RelayTickets } from '../front/cluster/relay-tickets.ts';
import { RoomiestNodes } from '../front/cluster/roomiest-nodes.ts';
import { DEFAULT_FACES } from '../front/faces/default-faces.ts';
import { SessionRecorder } from '../front/history/session-recorder.ts';
import { LegTokens } from '../front/legs/leg-tokens.ts';
import { SplitSessions } from '../front/legs/split-sessions.ts';
import { type Services, openServices } from '../front/services.ts';
import { SessionService } from '../front/sessions/session-service.ts';
import { createConversationMeter } from '../front/talk/conversation-meter.ts';
import { Conversations } from '../front/talk/conversations.ts';
import { TalkLibraryInstaller } from '../front/talk/library-installer.ts';
import { StaticVideoService } from '../front/videos/static-video-service.ts';
import { ROOT } from '../version.ts';
import type { ServerCore } from './core.ts';

/** The opened services of a server. */
export interface ServerSessions {
  readonly services: Services;
  readonly recorder: SessionRecorder;
  readonly videos: StaticVideoService;
  readonly conversations: Conversations;
  readonly cluster: Cluster;
  readonly otherNodes: RoomiestNodes;
  readonly relay: Relay;
  readonly forwarder: Forwarder;
  readonly sessions: SessionService;
  readonly splits: SplitSessions;
}

/** Opens the services, and takes up the jobs that the last run left unfinished. */
export async function openSessions(core: ServerCore): Promise<ServerSessions> {
  const { config, log, closers, store, storage, serverId, metrics, jobCpus, pool } = core;
  const services = await openServices({
    config,
    store,
    storage,
    serverId,
    jobCpus,
    defaultFaces: DEFAULT_FACES,
    log,
  });
  closers.add(() => services.close());
  const { tokens, quota, history } = services;
  const recorder = await SessionRecorder.open({
    store,
    history,
    serverId,
    dataDir: config.DATA_DIR,
    log,
  });
  closers.add(() => recorder.close());
  const videos = await openVideos(core, services, recorder);
  const conversations = new Conversations({
    store: services.conversationStore,
    maxConversations: config.MAX_CONVERSATIONS,
    isPreemptive: config.PREEMPTIVE_REPLIES,
    library: new TalkLibraryInstaller(ROOT, log),
    meter: createConversationMeter(metrics),
    log,
  });
  closers.add(() => conversations.close());
  const cluster = new Cluster(serverId, { store, tokens, quota, metrics, log });
  await cluster.clearOwn();
  cluster.onDeath(async (nodeId) => {
    await Promise.all([services.faces.takeOver(nodeId), videos.takeOver(nodeId)]);
  });
  const otherNodes = new RoomiestNodes(cluster.registry, serverId, config.REGION ?? '');
  const relay = openRelay(core, services, cluster, otherNodes);
  const sessions = new SessionService({
    tokens,
    quota,
    faces: services.faceCatalog,
    journal: cluster.journal(recorder),
    pool,
    conversations,
    elsewhere: relay,
    metrics,
    tracing: core.tracing,
    log,
    serverId,
    host: config.HOST,
  });
  const splits = new SplitSessions({
    sessions,
    tokens: new LegTokens(services.secrets.derive('tokens of agents and viewers')),
    elsewhere: relay,
    metrics,
  });
  const { registry } = cluster;
  return {
    services,
    recorder,
    videos,
    conversations,
    cluster,
    otherNodes,
    relay,
    forwarder: new Forwarder({ registry, nodes: otherNodes, nodeId: serverId, log }),
    sessions,
    splits,
  };
}

async function openVideos(
  { config, log, closers, store, serverId, metrics, jobCpus }: ServerCore,
  { blobs, faceCatalog }: Services,
  recorder: SessionRecorder,
): Promise<StaticVideoService> {
  const videos = await StaticVideoService.open({
    store,
    blobs,
    faces: faceCatalog,
    recorder,
    metrics,
    log,
    serverId,
    threads: config.JOB_THREADS,
    cpus: jobCpus,
    motion: config.MOTION,
    maxQueued: config.MAX_QUEUED_JOBS,
    ttlSeconds: config.STATIC_TTL_SECONDS,
  });
  closers.add(() => videos.close());
  return videos;
}

/** Passes sessions on to the server with the most room where this one has none. */
function openRelay(
  { log, closers, serverId, metrics }: ServerCore,
  { secrets, tokens }: Services,
  { registry }: Cluster,
  nodes: RoomiestNodes,
): Relay {
  const relay = new Relay({
    nodes,
    registry,
    nodeId: serverId,
    tickets: new RelayTickets(secrets.derive('relay tickets'), serverId),
    tokens,
    metrics,
    log,
  });
  closers.add(() => {
    relay.close();
  });
  return relay;
}
