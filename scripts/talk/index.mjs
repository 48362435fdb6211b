// The library of conversations, as src/talk/library.ts loads it. It is installed here, beside the
// server, because few servers hold conversations: it takes 290 MB of disk.
export { AudioFrame } from '@livekit/rtc-node';
export {
  VAD,
  VADEventType,
  VADStream,
  initializeLogger,
  llm,
  stt,
  tts,
  voice,
} from '@livekit/agents';
