// The families of Redis keys: what `npm run data` exports, and what it checks.
import { keys } from './keys.ts';

/** A family of keys. */
export interface KeyFamily {
  readonly name: string;
  /** What its keys begin and end with; an id stands between. */
  readonly head: string;
  readonly tail: string | undefined;
  readonly type: 'hash' | 'set' | 'string' | 'zset';
  /** Whether an export holds it. The rest is the state of running servers. */
  readonly isDurable: boolean;
  /** Whether its values are JSON. */
  readonly isJson?: boolean;
}

/** Stands for an id. */
const ANY = 'any';

const family = (
  name: string,
  example: string,
  type: KeyFamily['type'],
  isDurable: boolean,
  isJson = false,
): KeyFamily => {
  const [head, tail] = example.split(ANY) as [string, string | undefined];
  return { name, head, tail, type, isDurable, isJson };
};

/** All of them. */
export const KEY_FAMILIES: readonly KeyFamily[] = [
  family('schema', keys.schema(), 'string', false),
  family('lock of the schema', keys.schemaLock(), 'string', false),
  family('API keys', keys.apiKey(ANY), 'hash', true),
  family('rates of API keys', keys.apiKeyBucket(ANY), 'hash', false),
  family('session slots', keys.apiKeyLive(ANY), 'zset', false),
  family('ids of API keys', keys.allApiKeys(), 'set', true),
  family('session tokens', keys.token(ANY), 'string', false, true),
  family('claims of tokens', keys.tokenClaim(ANY), 'hash', false),
  family('history', keys.history(ANY), 'zset', true),
  family('history records', keys.historyRecords(ANY), 'hash', true, true),
  family('heartbeats of sessions', keys.journal(), 'zset', false),
  family('live sessions', keys.journalRecords(), 'hash', false),
  family('heartbeats of servers', keys.nodeBeats(), 'zset', false),
  family('room of servers', keys.nodeRooms(), 'zset', false),
  family('servers', keys.nodeRecords(), 'hash', false),
  family('servers cleared up after', keys.nodeClearing(), 'zset', false),
  family('sessions of servers', keys.nodeSessions(ANY), 'hash', false),
  family('faces', keys.face(ANY), 'hash', true),
  family('faces of owners', keys.facesOf(ANY), 'zset', true),
  family('deleted faces', keys.deletedFaces(), 'zset', false),
  family('waiting jobs', keys.jobsWaiting(ANY), 'zset', false),
  family('running jobs', keys.jobsRunning(ANY), 'zset', false),
  family('data of jobs', keys.jobsData(ANY), 'hash', false),
  family('attempts of jobs', keys.jobsAttempts(ANY), 'hash', false),
  family('holders of jobs', keys.jobsHolders(ANY), 'hash', false),
  family('numbers of jobs', keys.jobsCounter(ANY), 'string', false),
  family('search for files of static videos', keys.staticSweep(), 'string', false),
  family('static videos', keys.staticVideo(ANY), 'hash', true),
  family('agents', keys.agents(ANY), 'hash', true, true),
  family('check of SECRETS_KEY', keys.secretsCheck(), 'string', true),
  family('auto tokens', keys.autoToken(ANY), 'string', true, true),
  family('conversations', keys.conversation(ANY), 'string', false),
  family('links to rooms', keys.conversationGrant(ANY), 'string', false),
  family('transcripts', keys.transcript(ANY), 'string', true, true),
];

/** The family of a key; undefined: none. */
export const familyOf = (key: string): KeyFamily | undefined =>
  KEY_FAMILIES.find(({ head, tail }) =>
    tail === undefined
      ? key === head
      : key.startsWith(head) &&
        key.endsWith(tail) &&
        /^[^{}]+$/.test(key.slice(head.length, key.length - tail.length)),
  );
