// The client of Mouthpiece for browsers.
export { ARKIT_BLEND_SHAPES } from './blend-shapes.ts';
export { type ChromaKeyOptions, chromaKey } from './chroma-key.ts';
export { type Device, type Devices, listDevices, openMicrophone } from './devices.ts';
export {
  type Command,
  type ConversationEvent,
  SessionError,
  type SessionEvents,
  type SessionState,
} from './events.ts';
export {
  RequestError,
  type RequestOptions,
  type ServiceOptions,
  type TokenOptions,
  createToken,
  getIceServers,
  request,
} from './rest.ts';
export { type ConnectOptions, Session, type VideoMetadata, connect } from './session.ts';
export { CHUNK_BYTES, type SpeechChunk, type SpeechSource, decodeSpeech } from './speech.ts';
export { RETRYABLE } from './retry.ts';
export { SPEECH_RATE } from './resample.ts';
export type { SpeakOptions } from './speech-queue.ts';
export {
  Viewer,
  type ViewerEvents,
  type ViewerOptions,
  type ViewerState,
  watch,
} from './viewer.ts';
export type { Codec } from './connection.ts';
export type { SessionStats } from './stats.ts';
