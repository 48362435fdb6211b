// A receiving client without decoder or screen: signals, connects, decrypts, answers RTCP, and
// keeps the times of all that arrives.
import {
  type MediaStreamTrack,
  ReceiverEstimatedMaxBitrate,
  RTCPeerConnection,
  RTCRtpCodecParameters,
  type RTCRtpReceiver,
  RtcpPayloadSpecificFeedback,
  type RtpPacket,
  RtcpSrPacket,
  useFIR,
  useH264,
  useNACK,
  useOPUS,
  usePLI,
  useREMB,
  useSdesMid,
  useVP8,
} from 'werift';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { AUDIO_RATE, SPEECH_RATE, VIDEO_CLOCK } from '../../src/media/timeline.ts';
import { type ArrivedFrame, FrameAssembler } from './frames.ts';
import { type Impairment, ImpairedRelay, mediaAddress, rerouted } from './impaired-relay.ts';
import { native } from '../../src/native/addon.ts';
import { ReceiverEstimate } from './receiver-estimate.ts';

export interface PeerTarget {
  readonly url: string;
  readonly apiKey: string;
}
export interface PeerOptions {
  readonly target: PeerTarget;
  readonly codec: VideoCodec;
  readonly faceId: string;
  /** Keep the coded frames, for decoding afterwards. */
  readonly keepFrames?: boolean;
  /** A bad network in between. */
  readonly impairment?: Impairment | undefined;
  readonly token?: Readonly<Record<string, unknown>>;
}

/**
 * An utterance as seen from outside; times on this process' clock, null while it has not happened.
 */
export interface Utterance {
  readonly sentMs: number;
  speakMs: number | undefined;
  audibleMs: number | undefined;
  silentMs: number | undefined;
}

export interface PeerFigures {
  state: 'connecting' | 'live' | 'over';
  /** Milliseconds since the token was asked for. */
  setUp: {
    token: number;
    socket: number;
    answer: number;
    connected: number;
    start: number;
    firstFrame: number;
  };
  ending: string | undefined;
  frames: number;
  framesLost: number;
  keyFrames: number;
  videoPackets: number;
  audioPackets: number;
  bytes: number;
  nacks: number;
  plis: number;
  packetsMissed: number;
  /** Longest time between two showable frames, and how many such times were over 300 ms. */
  longestGapMs: number;
  gapsOver300: number;
  /**
   * Delay of frames above the quickest one, RTP time against arrival: what lateness looks like from
   * outside. That of frame n (from 0) stands in place n modulo MAX_KEPT_DELAYS.
   */
  delaysMs: number[];
  utterances: Utterance[];
  estimateKbps: number;
  receivedKbps: number[];
  /** When the last packet with sound in it arrived. */
  lastAudibleMs: number;
  /**
   * One entry for each ten seconds: least delay of a frame above the quickest ever, and the mean of
   * picture time minus sound time by the sender reports.
   */
  course: { readonly atMs: number; readonly delayMs: number; readonly skewMs: number }[];
}

const FREEZE_MS = 300;
const COURSE_MS = 10_000;
const SETTLED_AFTER_SKIP_MS = 600;
const GIVE_UP_WAITING_MS = 30_000;
export const MAX_KEPT_DELAYS = 4000;
const MAX_KEPT_FRAMES = 20_000;
/**
 * Louder than this (of 32768) is sound. Sizes do not tell: for a quarter of a second after speech
 * Opus spends 80 bytes a packet on silence.
 */
const AUDIBLE_PEAK = 200;
const CHUNK_BYTES = 6000;
const CONNECT_LIMIT_MS = 20_000;

/** The longest Opus packet at 16 kHz. */
const decoded = new Int16Array((SPEECH_RATE * 120) / 1000);

export class LightPeer {
  readonly figures: PeerFigures = {
    state: 'connecting',
    setUp: { token: 0, socket: 0, answer: 0, connected: 0, start: 0, firstFrame: 0 },
    ending: undefined,
    frames: 0,
    framesLost: 0,
    keyFrames: 0,
    videoPackets: 0,
    audioPackets: 0,
    bytes: 0,
    nacks: 0,
    plis: 0,
    packetsMissed: 0,
    longestGapMs: 0,
    gapsOver300: 0,
    delaysMs: [],
    utterances: [],
    estimateKbps: 0,
    receivedKbps: [],
    lastAudibleMs: 0,
    course: [],
  };
  /** Complete frames, if kept. */
  readonly kept: ArrivedFrame[] = [];
  sessionId = '';
  readonly #options: PeerOptions;
  readonly #pc: RTCPeerConnection;
  #socket: WebSocket | undefined = undefined;
  #relay: ImpairedRelay | undefined = undefined;
  readonly #beganMs = performance.now();
  readonly #estimate = new ReceiverEstimate();
  #lastFrameMs = 0;
  #firstTimestamp = -1;
  #leastDelayMs = Number.POSITIVE_INFINITY;
  #highestVideo = -1;
  #secondMs = 0;
  #secondBytes = 0;
  readonly #clocks: { audio: SenderClock | undefined; video: SenderClock | undefined } = {
    audio: undefined,
    video: undefined,
  };
  #audioMediaMs = Number.NaN;
  readonly #period = { startMs: 0, leastDelayMs: Number.POSITIVE_INFINITY, skewSumMs: 0, skews: 0 };
  readonly #decoder = new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
  readonly #onOver: (() => void)[] = [];

  private constructor(options: PeerOptions) {
    this.#options = options;
    this.#pc = createConnection(options.codec, new URL(options.target.url).hostname);
  }

  /**
   * @throws Error when the session does not come up within 20 s, with the server's word if it gave
   * one.
   */
  static async connect(options: PeerOptions): Promise<LightPeer> {
    const peer = new LightPeer(options);
    try {
      await peer.#open();
      return peer;
    } catch (error) {
      await peer.close();
      throw error;
    }
  }

  #sinceBegin(): number {
    return performance.now() - this.#beganMs;
  }

  async #open(): Promise<void> {
    const { target, faceId, token } = this.#options;
    const response = await fetch(`${target.url}/compose/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-api-key': target.apiKey },
      body: JSON.stringify({ faceId, ...token }),
      signal: AbortSignal.timeout(CONNECT_LIMIT_MS),
    });
    const body = (await response.json()) as { session_token?: string; detail?: unknown };
    if (!response.ok) {
      throw new Error(`token: ${response.status} ${JSON.stringify(body.detail)}`);
    }
    this.figures.setUp.token = this.#sinceBegin();

    const socket = new WebSocket(
      `${target.url.replace(/^http/, 'ws')}/compose/webrtc/p2p?session_token=${body.session_token}`,
    );
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    const started = Promise.withResolvers<void>();
    const firstFrame = Promise.withResolvers<void>();
    for (const { promise } of [started, firstFrame]) {
      promise.catch(() => {});
    }
    const fail = (why: string): void => {
      this.#end(why);
      for (const { reject } of [started, firstFrame]) {
        reject(new Error(why));
      }
    };
    socket.addEventListener('message', ({ data }) => {
      this.#onMessage(
        String(data),
        () => {
          started.resolve();
        },
        fail,
      );
    });
    socket.addEventListener('close', () => {
      fail(this.figures.ending ?? 'socket closed');
    });
    socket.addEventListener('error', () => {
      fail('socket error');
    });
    const limit = setTimeout(() => {
      fail('not connected in time');
    }, CONNECT_LIMIT_MS);
    try {
      await Promise.race([
        new Promise<void>((resolve) => {
          socket.addEventListener(
            'open',
            () => {
              resolve();
            },
            { once: true },
          );
        }),
        started.promise,
      ]);
      this.figures.setUp.socket = this.#sinceBegin();
      this.#receive(firstFrame.resolve);
      await this.#pc.setLocalDescription(await this.#pc.createOffer());
      socket.send(JSON.stringify({ type: 'offer', sdp: this.#pc.localDescription!.sdp }));
      await started.promise;
      await firstFrame.promise;
      this.figures.state = 'live';
    } finally {
      clearTimeout(limit);
    }
  }

  #onMessage(text: string, onStart: () => void, fail: (why: string) => void): void {
    if (text.startsWith('{')) {
      const message = JSON.parse(text) as { sdp?: string; session_id?: string };
      if (message.session_id !== undefined) {
        this.sessionId = message.session_id;
      }
      if (message.sdp === undefined) {
        return;
      }
      this.figures.setUp.answer = this.#sinceBegin();
      this.#accept(message.sdp).catch((error: unknown) => {
        fail(`answer: ${String(error)}`);
      });
      return;
    }
    const word = text.split(' ', 1)[0]!.toUpperCase();
    const last = this.figures.utterances.at(-1);
    if (word === 'START') {
      this.figures.setUp.start = this.#sinceBegin();
      onStart();
    } else if (word === 'SPEAK' && last !== undefined) {
      last.speakMs ??= performance.now();
    } else if (word === 'SILENT' && last !== undefined) {
      last.silentMs = performance.now();
    } else if (word === 'STOP') {
      this.figures.ending ??= text;
    } else if (word === 'ERROR') {
      fail(text);
    }
  }

  async #accept(answer: string): Promise<void> {
    const { impairment } = this.#options;
    if (impairment !== undefined) {
      this.#relay = await ImpairedRelay.open(mediaAddress(answer), impairment);
    }
    await this.#pc.setRemoteDescription({
      type: 'answer',
      sdp: this.#relay === undefined ? answer : rerouted(answer, this.#relay.port),
    });
  }

  /** Changes the network in between, if the peer was opened with one. */
  impair(impairment: Impairment): void {
    if (this.#relay !== undefined) {
      this.#relay.impairment = impairment;
    }
  }

  #receive(onFirstFrame: () => void): void {
    this.#pc.connectionStateChange.subscribe((state) => {
      if (state === 'connected') {
        this.figures.setUp.connected = this.#sinceBegin();
      }
    });
    this.#pc.onTrack.subscribe((track) => {
      const receiver = this.#pc.getReceivers().find(({ kind }) => kind === track.kind)!;
      receiver.onRtcp.subscribe((packet) => {
        if (packet instanceof RtcpSrPacket) {
          this.#clocks[track.kind === 'audio' ? 'audio' : 'video'] = {
            ntpMs: (Number(packet.senderInfo.ntpTimestamp >> 16n) * 1000) / 65_536,
            rtp: packet.senderInfo.rtpTimestamp,
          };
        }
      });
      if (track.kind === 'audio') {
        track.onReceiveRtp.subscribe((packet) => {
          this.#onAudio(packet);
        });
      } else {
        this.#receiveVideo(track, receiver, onFirstFrame);
      }
    });
  }

  #receiveVideo(track: MediaStreamTrack, receiver: RTCRtpReceiver, onFirstFrame: () => void): void {
    const { figures } = this;
    const assembler = new FrameAssembler(
      this.#options.codec,
      (frame) => {
        if (figures.frames === 0) {
          figures.setUp.firstFrame = this.#sinceBegin();
          onFirstFrame();
        }
        this.#onFrame(frame);
        figures.framesLost = assembler.framesLost;
      },
      () => {
        figures.plis++;
        receiver.sendRtcpPLI(track.ssrc!).catch(() => {});
      },
    );
    receiver.onPacketLost.subscribe(() => {
      figures.nacks++;
    });
    track.onReceiveRtp.subscribe((packet) => {
      const nowMs = performance.now();
      figures.videoPackets++;
      this.#count(packet.payload.length, nowMs);
      this.#watchSequence(packet.header.sequenceNumber);
      if (this.#firstTimestamp < 0) {
        this.#firstTimestamp = packet.header.timestamp;
      }
      const mediaMs = (((packet.header.timestamp - this.#firstTimestamp) | 0) * 1000) / VIDEO_CLOCK;
      this.#estimate.onPacket(packet.payload.length + 12, nowMs - mediaMs);
      assembler.push(
        packet.header.sequenceNumber,
        packet.header.timestamp,
        packet.header.marker,
        packet.payload,
        nowMs,
      );
      if (this.#estimate.update(nowMs)) {
        this.#sendEstimate(receiver, track.ssrc!);
      }
    });
  }

  #onFrame(frame: ArrivedFrame): void {
    const { figures } = this;
    figures.frames++;
    if (frame.isKey) {
      figures.keyFrames++;
    }
    if (this.#lastFrameMs > 0) {
      const gapMs = frame.completedMs - this.#lastFrameMs;
      figures.longestGapMs = Math.max(figures.longestGapMs, gapMs);
      if (gapMs > FREEZE_MS) {
        figures.gapsOver300++;
      }
    }
    this.#lastFrameMs = frame.completedMs;
    const delayMs =
      frame.completedMs - (((frame.rtpTimestamp - this.#firstTimestamp) | 0) * 1000) / VIDEO_CLOCK;
    this.#leastDelayMs = Math.min(this.#leastDelayMs, delayMs);
    if (figures.delaysMs.length < MAX_KEPT_DELAYS) {
      figures.delaysMs.push(delayMs - this.#leastDelayMs);
    } else {
      figures.delaysMs[(figures.frames - 1) % MAX_KEPT_DELAYS] = delayMs - this.#leastDelayMs;
    }
    if (this.#options.keepFrames && this.kept.length < MAX_KEPT_FRAMES) {
      this.kept.push(frame);
    }
    this.#followCourse(frame, delayMs);
  }

  #followCourse(frame: ArrivedFrame, delayMs: number): void {
    const period = this.#period;
    const clocks = this.#clocks;
    if (period.startMs === 0) {
      period.startMs = frame.completedMs;
    }
    period.leastDelayMs = Math.min(period.leastDelayMs, delayMs);
    const skewMs = mediaMs(clocks.video, frame.rtpTimestamp, VIDEO_CLOCK) - this.#audioMediaMs;
    if (Number.isFinite(skewMs)) {
      period.skewSumMs += skewMs;
      period.skews++;
    }
    if (frame.completedMs - period.startMs < COURSE_MS) {
      return;
    }
    this.figures.course.push({
      atMs: frame.completedMs,
      delayMs: period.leastDelayMs - this.#leastDelayMs,
      skewMs: period.skewSumMs / period.skews,
    });
    this.#period.startMs = frame.completedMs;
    this.#period.leastDelayMs = Number.POSITIVE_INFINITY;
    this.#period.skewSumMs = this.#period.skews = 0;
  }

  #onAudio({ payload, header }: RtpPacket): void {
    const nowMs = performance.now();
    this.figures.audioPackets++;
    this.#audioMediaMs = mediaMs(this.#clocks.audio, header.timestamp, AUDIO_RATE);
    this.#count(payload.length, nowMs);
    if (!this.#isAudible(payload)) {
      return;
    }
    this.figures.lastAudibleMs = nowMs;
    const last = this.figures.utterances.at(-1);
    // Sound of the utterance before may still be playing: only what follows SPEAK belongs to this
    // one.
    if (last !== undefined && last.speakMs !== undefined) {
      last.audibleMs ??= nowMs;
    }
  }

  #isAudible(payload: Buffer): boolean {
    try {
      const samples = this.#decoder.decode(payload, decoded);
      for (let i = 0; i < samples; i++) {
        if (Math.abs(decoded[i]!) >= AUDIBLE_PEAK) {
          return true;
        }
      }
    } catch {
      // no Opus: then it is not to be heard either
    }
    return false;
  }

  #watchSequence(sequenceNumber: number): void {
    if (this.#highestVideo >= 0) {
      const ahead = (sequenceNumber - this.#highestVideo) & 0xffff;
      if (ahead === 0 || ahead >= 0x8000) {
        return;
      }
      this.figures.packetsMissed += ahead - 1;
      if (ahead > 1) {
        this.#estimate.onLoss(ahead - 1);
      }
    }
    this.#highestVideo = sequenceNumber;
  }

  #count(bytes: number, nowMs: number): void {
    this.figures.bytes += bytes;
    if (this.#secondMs === 0) {
      this.#secondMs = nowMs;
    }
    this.#secondBytes += bytes;
    if (nowMs - this.#secondMs < 1000) {
      return;
    }
    this.figures.receivedKbps.push(Math.round((this.#secondBytes * 8) / (nowMs - this.#secondMs)));
    this.#secondMs = nowMs;
    this.#secondBytes = 0;
  }

  #sendEstimate(receiver: RTCRtpReceiver, ssrc: number): void {
    this.figures.estimateKbps = Math.round(this.#estimate.bitrate / 1000);
    const feedback = new ReceiverEstimatedMaxBitrate({
      senderSsrc: receiver.rtcpSsrc,
      mediaSsrc: 0,
      ssrcNum: 1,
      ssrcFeedbacks: [ssrc],
      ...mantissa(this.#estimate.bitrate),
    });
    receiver.dtlsTransport
      ?.sendRtcp([new RtcpPayloadSpecificFeedback({ feedback })])
      .catch(() => {});
  }

  /**
   * Sends speech at once, or as a microphone would.
   * @returns when all of it was handed to the socket
   */
  async speak(pcm: Int16Array, pace: 'burst' | 'realtime'): Promise<Utterance> {
    const utterance: Utterance = {
      sentMs: performance.now(),
      speakMs: undefined,
      audibleMs: undefined,
      silentMs: undefined,
    };
    this.figures.utterances.push(utterance);
    const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    const step = pace === 'burst' ? CHUNK_BYTES : (SPEECH_RATE * 2) / 50;
    for (let at = 0; at < bytes.length && this.#socket?.readyState === WebSocket.OPEN; at += step) {
      this.#socket.send(bytes.slice(at, at + step));
      if (pace === 'burst') {
        continue;
      }
      const dueMs = utterance.sentMs + ((at + step) / (SPEECH_RATE * 2)) * 1000;
      await new Promise((resolve) => {
        setTimeout(resolve, Math.max(0, dueMs - performance.now()));
      });
    }
    return utterance;
  }

  /** Sends binary messages as they are, at once, as one utterance: packets of Opus, say. */
  sendMessages(messages: readonly Uint8Array<ArrayBuffer>[]): Utterance {
    const utterance: Utterance = {
      sentMs: performance.now(),
      speakMs: undefined,
      audibleMs: undefined,
      silentMs: undefined,
    };
    this.figures.utterances.push(utterance);
    for (const message of messages) {
      this.#socket?.send(message);
    }
    return utterance;
  }

  /**
   * Interrupts.
   * @returns milliseconds until the last packet with sound arrived; 0 if none came any more
   */
  async skip(): Promise<number> {
    const sentMs = performance.now();
    this.#socket?.send('SKIP');
    await new Promise((resolve) => {
      setTimeout(resolve, SETTLED_AFTER_SKIP_MS);
    });
    return Math.max(0, this.figures.lastAudibleMs - sentMs);
  }

  /** Resolves when the session is over, whoever ended it. */
  get over(): Promise<void> {
    return this.figures.state === 'over'
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#onOver.push(resolve);
        });
  }

  #end(why: string): void {
    if (this.figures.state === 'over') {
      return;
    }
    this.figures.state = 'over';
    this.figures.ending ??= why;
    for (const tell of this.#onOver.splice(0)) {
      tell();
    }
  }

  /**
   * @param how `clean`: peer connection and socket are closed; `vanish`: nothing is sent any more,
   * as if the network were cut, until the server gives up
   */
  async close(how: 'clean' | 'vanish' = 'clean'): Promise<void> {
    if (how === 'vanish') {
      for (const { connection } of this.#pc.iceTransports) {
        // Below ICE, so that consent checks (RFC 7675) fall silent too.
        for (const { transport } of (
          connection as unknown as { protocols: { transport: { send: () => Promise<void> } }[] }
        ).protocols) {
          transport.send = () => Promise.resolve();
        }
      }
      await Promise.race([
        this.over,
        new Promise((resolve) => {
          setTimeout(resolve, GIVE_UP_WAITING_MS).unref();
        }),
      ]);
    }
    this.#end('closed by us');
    this.#socket?.close();
    await this.#pc.close();
    this.#relay?.close();
  }
}

/** What a sender report says: this RTP time was this NTP time (RFC 3550 section 6.4.1). */
interface SenderClock {
  readonly ntpMs: number;
  readonly rtp: number;
}

const mediaMs = (clock: SenderClock | undefined, rtp: number, rate: number): number =>
  clock === undefined ? Number.NaN : clock.ntpMs + (((rtp - clock.rtp) | 0) * 1000) / rate;

/** REMB's floating point: 18 bits of mantissa (draft-alvestrand-rmcat-remb section 2.2). */
function mantissa(bitrate: number): { brExp: number; brMantissa: number; bitrate: bigint } {
  let brExp = 0;
  let brMantissa = Math.floor(bitrate);
  while (brMantissa >= 1 << 18) {
    brMantissa >>>= 1;
    brExp++;
  }
  return { brExp, brMantissa, bitrate: BigInt(Math.floor(bitrate)) };
}

/**
 * A werift connection for video and sound that asks no STUN server; for a loopback host, on
 * loopback alone.
 */
export function createConnection(
  codec: VideoCodec,
  host: string,
  direction: 'recvonly' | 'sendonly' = 'recvonly',
): RTCPeerConnection {
  const rtcpFeedback = [useNACK(), usePLI(), useREMB(), useFIR()];
  const video =
    codec === 'vp8'
      ? useVP8({ payloadType: 96, rtcpFeedback })
      : useH264({
          payloadType: 98,
          rtcpFeedback,
          parameters: 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
        });
  const rtx = new RTCRtpCodecParameters({
    mimeType: 'video/rtx',
    clockRate: VIDEO_CLOCK,
    payloadType: video.payloadType + 1,
    parameters: `apt=${video.payloadType}`,
  });
  const isLocal = /^(localhost|127\.|\[?::1)/.test(host);
  const pc = new RTCPeerConnection({
    iceServers: [],
    bundlePolicy: 'max-bundle',
    codecs: { video: [video, rtx], audio: [useOPUS({ payloadType: 111, clockRate: AUDIO_RATE })] },
    headerExtensions: { video: [useSdesMid()], audio: [useSdesMid()] },
    ...(isLocal
      ? {
          iceUseIpv4: false,
          iceUseIpv6: false,
          iceAdditionalHostAddresses: ['127.0.0.1'],
          iceInterfaceAddresses: { udp4: '127.0.0.1' },
        }
      : { iceUseIpv6: false }),
  });
  pc.addTransceiver('audio', { direction });
  pc.addTransceiver('video', { direction });
  // werift asks a public STUN server even when given none (measured): nothing of ours leaves the
  // machine unasked.
  for (const { connection } of pc.iceTransports) {
    (connection as { stunServer: unknown }).stunServer = undefined;
  }
  return pc;
}
