// Every entry point that the hostile bench knows, in the order in which they are tried.
import type { EntryPoint } from './entry-point.ts';
import { foreignMedia, forgedStun, junkDatagrams, publicStun } from './entry-points/datagrams.ts';
import {
  blankAudio,
  idleConnections,
  openPaths,
  slowBodies,
  uploads,
  wrongKeys,
} from './entry-points/requests.ts';
import { halfOpenDtls, hostileOffers, idleSockets, messages } from './entry-points/sessions.ts';

export const ENTRY_POINTS: readonly EntryPoint[] = [
  junkDatagrams,
  forgedStun,
  foreignMedia,
  publicStun,
  halfOpenDtls,
  messages,
  idleSockets,
  idleConnections,
  openPaths,
  wrongKeys,
  slowBodies,
  uploads,
  blankAudio,
  hostileOffers,
];
