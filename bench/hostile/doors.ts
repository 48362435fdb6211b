// Every door that the hostile bench knows, in the order in which they are tried.
import type { Door } from './door.ts';
import { foreignMedia, forgedStun, junkDatagrams, publicStun } from './doors/datagrams.ts';
import {
  blankAudio,
  idleConnections,
  openPaths,
  slowBodies,
  uploads,
  wrongKeys,
} from './doors/requests.ts';
import { halfOpenDtls, hostileOffers, idleSockets, messages } from './doors/sessions.ts';

export const DOORS: readonly Door[] = [
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
