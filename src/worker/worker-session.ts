// One session inside a worker: what it owns, and how events from the peer and the front reach it. The frames' way is in pipeline.ts.
import { randomInt } from 'node:crypto';
import { toWireError } from '../base/errors.ts';
import type { EndReason } from '../base/session-ends.ts';
import { monotonicMs } from '../base/time.ts';
import type { FromWorker, SessionSpec, SessionStatsReport } from '../link/messages.ts';
import { SpeechRingReader } from '../link/speech-ring.ts';
import type { MediaConfig } from '../link/worker-init.ts';
import type { Offer } from '../webrtc/sdp/offer.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import { AUDIO_PACKET_MS, SPEECH_PACKET_SAMPLES, SPEECH_RATE } from '../media/timeline.ts';
import { type MelFrontEnd, type OpusEncoder, native } from '../native/addon.ts';
import type { Exemplar } from '../metrics/catalogue.ts';
import { newPeerReading } from '../metrics/peer-meter.ts';
import { exemplarOf } from '../metrics/shared-metrics.ts';
import { AudioReceiver } from '../pipeline/speech/audio-receiver.ts';
import { SessionSpeech } from '../pipeline/speech/speech-source.ts';
import { SpeechStream } from '../pipeline/speech/speech-stream.ts';
import { VideoTrack } from '../pipeline/encode/video-track.ts';
import { ArticulationTrack } from '../pipeline/features/articulation-track.ts';
import type { SpeechModel, ModelState } from '../pipeline/inference/speech-model.ts';
import type { WorkerMetrics } from './worker-metrics.ts';
import { SessionStats } from './session-stats.ts';
import type { Endpoint } from '../webrtc/endpoint.ts';
import type { Peer, PeerCloseReason, PeerListener } from '../webrtc/peer.ts';
import type { FaceCache } from '../pipeline/render/face-cache.ts';
import { RigRenderer } from '../pipeline/render/rig-renderer.ts';
import type { AudioDrivenRenderer, Renderer } from '../pipeline/render/renderer.ts';
import { SpeechState } from './speech-state.ts';
import type { InferenceClients } from '../pipeline/wav2lip/inference-clients.ts';
import { type InferenceListener, Wav2LipRenderer } from '../pipeline/wav2lip/wav2lip-renderer.ts';

/** What all sessions of a worker share. */
export interface WorkerContext {
  readonly endpoint: Endpoint;
  readonly model: SpeechModel;
  readonly faces: FaceCache;
  /** The user's own network, when there is one that can be used. */
  readonly inferenceClients: InferenceClients | undefined;
  readonly metrics: WorkerMetrics;
  readonly post: (message: FromWorker) => void;
  readonly media: Pick<
    MediaConfig,
    'videoBitrateKbps' | 'maxVideoBitrateKbps' | 'audioBitrateKbps'
  >;
}

const MIN_BITRATE_KBPS = 150;
/** The peer gives up after 15 s and says why. This is for one that never answered the offer. */
const OFFER_STUCK_MS = 20_000;
const MAX_OPUS_BYTES = 1276; // the largest Opus frame there is (RFC 6716 section 3.2.1)
const MAX_PACKETS_LATE = 25;

/** How the end of the peer connection is told to the client. */
const END_OF_PEER: Readonly<Record<PeerCloseReason, EndReason>> = {
  closed: 'peer_closed',
  connect_timeout: 'connect_timeout',
  ice_failed: 'ice_failed',
  dtls_failed: 'dtls_failed',
  not_authentic: 'certificate_mismatch',
  timeout: 'peer_lost',
  failed: 'error',
};

const opusPacket = new Uint8Array(MAX_OPUS_BYTES);
const speechPacket = new Int16Array(SPEECH_PACKET_SAMPLES);

export class WorkerSession implements PeerListener, InferenceListener {
  readonly spec: SessionSpec;
  readonly stats = new SessionStats();
  readonly speech: SessionSpeech;
  readonly stream: SpeechStream;
  readonly state: SpeechState;
  readonly mel: MelFrontEnd = new native.MelFrontEnd();
  readonly modelState: ModelState;
  readonly articulation = new ArticulationTrack();
  readonly renderer: Renderer;
  /** Set when the face is drawn by something that hears the speech itself: then the articulation model is not asked. */
  readonly audioRenderer: AudioDrivenRenderer | undefined;
  readonly exemplar: Exemplar;
  video: VideoTrack | undefined = undefined;
  peer: Peer | undefined = undefined;
  slot = 0;
  /** Beat number of frame 0; -1 until media flows. */
  firstTick = -1;
  /** Monotonic time of media time 0. */
  epochMs = 0;
  lastFrame = -1;
  /** The frame left out last, since it was too late. */
  droppedFrame = -1;
  isOver = false;
  /** The client takes no picture: nothing is understood, drawn or coded for it. */
  isSoundOnly = false;

  readonly #context: WorkerContext;
  readonly #audioReceiver: AudioReceiver;
  readonly #opus: OpusEncoder;
  readonly #openedMs = monotonicMs();
  #connectedMs = 0;
  #nextPacket = 0;
  #wasTalking = false;
  #offerMs = 0;
  readonly #reading = newPeerReading(this.#openedMs);
  #underrunsCounted = 0;
  #repeatedCounted = 0;
  #lastSecondMs = 0;

  constructor(spec: SessionSpec, context: WorkerContext) {
    this.spec = spec;
    this.#context = context;
    this.exemplar = exemplarOf(spec.sessionId);
    this.speech = new SessionSpeech(new SpeechRingReader(spec.speechRing));
    this.state = new SpeechState(this.#openedMs);
    this.modelState = context.model.createState();
    const look = { seed: randomInt(2 ** 31), emotion: spec.emotion, startFrame: spec.startFrame };
    const { inferenceClients: wav2lip } = context;
    const asset = context.faces.take(spec.face.faceId, spec.face.bytes);
    this.audioRenderer =
      spec.renderer === 'wav2lip' && wav2lip !== undefined
        ? new Wav2LipRenderer(asset, spec.face.bytes, wav2lip, look, this)
        : undefined;
    this.renderer = this.audioRenderer ?? new RigRenderer(asset, look);
    this.stream = new SpeechStream(
      this.speech,
      this.audioRenderer?.lookaheadMs ?? context.model.lookaheadMs,
    );
    this.#audioReceiver = new AudioReceiver(this.speech);
    // The speech is 16 kHz, so Opus is given 16 kHz: RTP's clock and the decoder's output are 48 kHz all the same (RFC 7587 section 4.1).
    this.#opus = new native.OpusEncoder({
      sampleRate: SPEECH_RATE,
      channels: 1,
      bitrate: context.media.audioBitrateKbps * 1000,
      inbandFec: false,
    });
  }

  get id(): string {
    return this.spec.sessionId;
  }

  // ── signalling ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Answers the client's offer; a second offer is refused by the front before it comes here. */
  async offer(offer: Offer): Promise<void> {
    const context = this.#context;
    this.#offerMs = monotonicMs();
    try {
      this.peer = context.endpoint.createPeer(
        {
          sessionId: this.id,
          minBitrateKbps: MIN_BITRATE_KBPS,
          maxBitrateKbps: context.media.maxVideoBitrateKbps,
        },
        this,
      );
      const answer = await this.peer.answer(offer);
      if (this.isOver) {
        return;
      }
      context.post({ type: 'answer', sessionId: this.id, sdp: answer });
    } catch (error) {
      if (!this.isOver) {
        context.post({
          type: 'failed',
          sessionId: this.id,
          error: toWireError(error),
          reason: 'invalid_offer',
        });
      }
      this.end('invalid_offer');
      return;
    }
    const { videoCodec } = this.peer;
    this.isSoundOnly = videoCodec === undefined;
    if (videoCodec === undefined) {
      return;
    }
    try {
      await this.#openVideo(videoCodec);
    } catch (error) {
      this.fail(error);
    }
  }

  /** While ICE and DTLS go their ways another thread sets the encoder up and codes the first picture: here that would make every neighbour's frame late by 10 to 25 ms. */
  async #openVideo(codec: VideoCodec): Promise<void> {
    const video = new VideoTrack(codec, this.#context.media.videoBitrateKbps);
    this.renderer.draw(0, this.articulation.values, false);
    await video.prepare(this.renderer.picture);
    if (this.isOver) {
      video.close();
    } else {
      this.video = video;
    }
  }

  onConnected(nowMs: number, iceMs: number): void {
    if (this.isOver) {
      return;
    }
    this.#connectedMs = nowMs;
    this.state.lastSpokeMs = nowMs;
    this.#context.post({ type: 'connected', sessionId: this.id, iceMs, atMs: nowMs });
  }

  onClosed(reason: PeerCloseReason, detail: string): void {
    this.#context.metrics.peersClosed[reason].add();
    if (detail !== '') {
      this.#context.post({
        type: 'log',
        level: 'info',
        sessionId: this.id,
        message: 'peer connection failed',
        fields: { reason, detail },
      });
    }
    this.end(END_OF_PEER[reason]);
  }

  onKeyFrameRequest(): void {
    this.video?.requestKeyFrame();
  }
  onTargetBitrate(kbps: number): void {
    this.video?.setBitrate(kbps);
  }
  onAudio(packet: Uint8Array, rtpTimestamp: number, sequenceNumber: number): void {
    this.#audioReceiver.receive(packet, rtpTimestamp, sequenceNumber, monotonicMs());
  }

  onFailure(error: Error): void {
    this.fail(error);
  }

  onMouth(tookMs: number): void {
    this.stats.stage('inference', tookMs);
    this.#context.metrics.stage.inference.observe(tookMs / 1000);
  }

  get isLive(): boolean {
    return (
      this.#connectedMs > 0 &&
      !this.isOver &&
      this.peer !== undefined &&
      (this.video !== undefined || this.isSoundOnly)
    );
  }

  /** Puts frame 0 on this beat: from here on media flows. */
  begin(beat: number, beatMs: number): void {
    this.firstTick = beat;
    this.epochMs = beatMs;
  }

  // ── sound ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Media time of the audio packet that goes out next. */
  get nextPacketMs(): number {
    return this.#nextPacket * AUDIO_PACKET_MS;
  }

  /** Sends each audio packet whose time has come; interruptions are looked for first, so that they take effect with the next packet. */
  sendDueAudio(nowMs: number): void {
    if (this.speech.takeFlush()) {
      this.#interrupt(nowMs);
    }
    const mediaMs = nowMs - this.epochMs;
    const due = Math.floor(mediaMs / AUDIO_PACKET_MS);
    if (due - this.#nextPacket > MAX_PACKETS_LATE) {
      this.#nextPacket = due;
    } // the thread stood still: do not flood the peer with the past
    for (; this.#nextPacket <= due; this.#nextPacket++) {
      const startMs = monotonicMs();
      const isTalking = this.stream.takePacket(speechPacket);
      const bytes = this.#opus.encode(speechPacket, opusPacket);
      this.peer!.sendAudio(
        opusPacket,
        bytes,
        this.nextPacketMs,
        nowMs,
        isTalking && !this.#wasTalking,
      );
      this.#wasTalking = isTalking;
      if (isTalking) {
        this.#context.metrics.speechSeconds.add(AUDIO_PACKET_MS / 1000);
      }
      const { metrics: instruments } = this.#context;
      instruments.rtp.audio.add(1);
      instruments.rtp.audioBytes.add(bytes);
      instruments.stage.audio.observe((monotonicMs() - startMs) / 1000);
    }
  }

  #interrupt(nowMs: number): void {
    this.stream.flush();
    this.articulation.close();
    this.#context.metrics.interrupt.observe((nowMs - this.speech.flushMs) / 1000);
    this.announce(this.state.stop());
  }

  announce(change: 'speak' | 'silent' | undefined): void {
    if (change === undefined) {
      return;
    }
    if (change === 'speak') {
      this.#context.metrics.utterances.add();
    }
    this.#context.post({ type: change, sessionId: this.id });
  }

  announceFirstFrame(atMs: number): void {
    this.#context.post({ type: 'firstFrame', sessionId: this.id, atMs });
  }

  // ── limits and figures, a few times a second ──────────────────────────────────────────────────────────────────────────

  poll(nowMs: number): void {
    if (this.isOver) {
      return;
    }
    this.peer?.poll(nowMs);
    if (this.isOver) {
      return;
    }
    if (this.#connectedMs === 0) {
      if (this.#offerMs > 0 && nowMs - this.#offerMs > OFFER_STUCK_MS) {
        this.end('connect_timeout');
      }
      return;
    }
    // The gap until SILENT is also the time in which the last packets leave the receiver's buffer: clients hang up at STOP.
    if (this.stream.isFinished && !this.state.isSpeaking) {
      this.end('done');
    } else if (nowMs - this.#connectedMs >= this.spec.maxLengthMs) {
      this.end('length_limit');
    } else if (nowMs - this.state.lastSpokeMs >= this.spec.maxIdleMs) {
      this.end('idle_limit');
    } else if (nowMs - this.#lastSecondMs >= 1000) {
      this.#everySecond(nowMs);
    }
  }

  #everySecond(nowMs: number): void {
    const {
      bufferDepth,
      underruns,
      framesRepeated: mouthsRepeated,
      avOffset,
      peerMeter,
    } = this.#context.metrics;
    this.#lastSecondMs = nowMs;
    peerMeter.read(this.peer!.stats, this.#reading, nowMs);
    underruns.add(this.stream.underruns - this.#underrunsCounted);
    this.#underrunsCounted = this.stream.underruns;
    const repeated = this.audioRenderer?.repeatedFrames ?? 0;
    mouthsRepeated.add(repeated - this.#repeatedCounted);
    this.#repeatedCounted = repeated;
    if (!this.state.isSpeaking) {
      return;
    }
    bufferDepth.observe(this.stream.bufferedMs / 1000);
    if (!this.isSoundOnly) {
      avOffset.observe(this.stream.lipsAheadMs / 1000);
    }
  }

  statsReport(): SessionStatsReport {
    const { stats: ledger, peer } = this;
    return {
      sessionId: this.id,
      codec: this.video?.codec ?? '',
      state: this.#connectedMs === 0 ? 'connecting' : this.state.isSpeaking ? 'speaking' : 'idle',
      framesSent: ledger.framesSent,
      framesSkipped: ledger.framesSkipped,
      frameLatenessMs: {
        p50: ledger.latenessMs.percentile(0.5),
        p99: ledger.latenessMs.percentile(0.99),
      },
      audioToLipsMs: {
        last: ledger.audioToLipsMs.last,
        p50: ledger.audioToLipsMs.percentile(0.5),
        p99: ledger.audioToLipsMs.percentile(0.99),
      },
      stageMs: { ...ledger.stageMs },
      bufferedAudioMs: this.stream.bufferedMs,
      underruns: this.stream.underruns,
      bitrateKbps: this.video === undefined ? 0 : Math.round(this.video.actualKbps),
      targetBitrateKbps: this.video?.bitrateKbps ?? 0,
      roundTripMs: peer?.stats.roundTripMs ?? 0,
      packetsLost: peer?.stats.packetsLost ?? 0,
      nacks: peer?.stats.nacksReceived ?? 0,
      keyFrames: ledger.keyFrames,
    };
  }

  /** What goes wrong inside one session ends that one, and no other. */
  fail(error: unknown): void {
    this.#context.post({
      type: 'log',
      level: 'error',
      sessionId: this.id,
      message: 'session failed',
      fields: { error: String(error), stack: error instanceof Error ? error.stack : undefined },
    });
    this.end('error');
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Frees everything and tells the front, once, whatever the reason and however often it is called. */
  end(reason: EndReason): void {
    if (this.isOver) {
      return;
    }
    this.announce(this.state.stop()); // each SPEAK has its SILENT, also before STOP
    this.isOver = true;
    this.peer?.close().catch(() => {});
    this.video?.close();
    this.#opus.close();
    this.#audioReceiver.close();
    this.audioRenderer?.close();
    this.#context.post({ type: 'ended', sessionId: this.id, reason });
  }
}
