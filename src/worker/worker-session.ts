// One session inside a worker: its parts, and the events from its peer and from the front. The way
// of its frames is in frame-pipeline.ts.
import type { EndReason } from '../base/session-ends.ts';
import { monotonicMs } from '../base/time.ts';
import type { LipsTimes, OfferSpec, SessionSpec } from '../link/messages.ts';
import { SpeechRingReader } from '../link/speech-ring.ts';
import { pictureWeight } from '../media/picture.ts';
import type { FaceCommand } from '../media/face-command.ts';
import type { Exemplar } from '../metrics/catalogue.ts';
import { exemplarOf } from '../metrics/shared-metrics.ts';
import { type MelFrontEnd, native } from '../native/addon.ts';
import type { ModelState } from '../pipeline/inference/speech-model.ts';
import { AudioReceiver } from '../pipeline/speech/audio-receiver.ts';
import { SessionSpeech, microphoneSink } from '../pipeline/speech/speech-source.ts';
import { SpeechStream } from '../pipeline/speech/speech-stream.ts';
import type { InferenceListener } from '../pipeline/wav2lip/wav2lip-renderer.ts';
import type { Peer, PeerCloseReason, PeerListener } from '../webrtc/peer.ts';
import type { DataChannel } from '../webrtc/sctp/data-channel.ts';
import type { Offer } from '../webrtc/sdp/offer.ts';
import { AudioTrack } from './audio-track.ts';
import { FrameClock } from './frame-clock.ts';
import type { FrameTrack } from './frame-track.ts';
import { MotionReport } from './motion-report.ts';
import { PeerNegotiation } from './peer-negotiation.ts';
import { SessionFace } from './session-face.ts';
import { SessionSampler } from './session-sampler.ts';
import { SessionStats } from './session-stats.ts';
import { SpeechState } from './speech-state.ts';
import type { WorkerContext } from './worker-context.ts';

/** Why the session ends when its peer connection does. */
const END_OF_PEER: Readonly<Record<PeerCloseReason, EndReason>> = {
  closed: 'peer_closed',
  connect_timeout: 'connect_timeout',
  ice_failed: 'ice_failed',
  dtls_failed: 'dtls_failed',
  not_authentic: 'certificate_mismatch',
  timeout: 'peer_lost',
  failed: 'error',
};

/**
 * One session in its media worker: the peer, the speech, the tracks of audio and video, and the
 * state of the articulation model. Lives on the worker thread.
 */
export class WorkerSession implements PeerListener, InferenceListener {
  readonly spec: SessionSpec;
  readonly clock = new FrameClock();
  readonly stats = new SessionStats();
  readonly speech: SessionSpeech;
  readonly stream: SpeechStream;
  readonly state: SpeechState;
  readonly audio: AudioTrack;
  readonly mel: MelFrontEnd = new native.MelFrontEnd();
  readonly modelState: ModelState;
  readonly frames: FrameTrack;
  /** Undefined: the client did not ask. */
  readonly motion: MotionReport | undefined;
  readonly exemplar: Exemplar;
  readonly peers: PeerNegotiation;

  readonly #context: WorkerContext;
  readonly #audioReceiver: AudioReceiver;
  readonly #face: SessionFace;
  readonly #sampler: SessionSampler;
  #isVideoWanted = true;
  #isOver = false;
  /** When the first peer connected; 0: none has. */
  #connectedMs = 0;
  #isPeerUp = false;

  /** @throws Error when the face is malformed or the inference thread is gone */
  constructor(spec: SessionSpec, context: WorkerContext) {
    const nowMs = monotonicMs();
    this.spec = spec;
    this.#context = context;
    this.exemplar = exemplarOf(spec.sessionId);
    this.speech = new SessionSpeech(new SpeechRingReader(spec.speechRing));
    this.state = new SpeechState(nowMs);
    this.modelState = context.model.createState();
    this.#face = new SessionFace(spec, context, this);
    this.frames = this.#face.frames;
    this.motion = spec.reports && new MotionReport(spec.sessionId, spec.reports, context.post);
    const { audioRenderer } = this.frames;
    this.stream = new SpeechStream(
      this.speech,
      audioRenderer?.lookaheadMs ?? context.model.lookaheadMs,
    );
    this.audio = new AudioTrack(this.stream, context.media.audioBitrateKbps, context.metrics);
    this.#audioReceiver = new AudioReceiver(microphoneSink(spec.microphoneRing, this.speech));
    this.#sampler = new SessionSampler(context.metrics, nowMs);
    this.peers = new PeerNegotiation(this, context);
  }

  /**
   * Another face goes on.
   * @throws Error when it is malformed
   */
  showFace(face: SessionSpec['face']): void {
    if (this.#face.replace(face)) {
      this.#context.post({ type: 'faceShown', sessionId: this.id, faceId: face.faceId });
    }
  }

  /** What the face is told to do. */
  obey(command: FaceCommand): void {
    if (command.type === 'mute') {
      this.speech.isMuted = command.muted;
    } else {
      this.#face.obey(command);
    }
  }

  /** What its picture costs: see pictureWeight. */
  get weight(): number {
    return pictureWeight(this.frames.renderer.size);
  }

  get id(): string {
    return this.spec.sessionId;
  }

  /** Undefined before the offer. */
  get peer(): Peer | undefined {
    return this.peers.peer;
  }

  /** The client takes no video: no model runs for it, and nothing is drawn or coded. */
  get isAudioOnly(): boolean {
    return this.peers.isAudioOnly || !this.#isVideoWanted;
  }

  /** `end` was called: all is freed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The peer is connected. */
  get isConnected(): boolean {
    return this.#isPeerUp;
  }

  /** Connected and able to send: media flows. */
  get isLive(): boolean {
    return (
      this.isConnected &&
      !this.#isOver &&
      this.peer !== undefined &&
      (this.frames.video !== undefined || this.peers.isAudioOnly)
    );
  }

  // ── the offer, and what the peer tells ─────────────────────────────────────────────────────────

  /** Answers an offer: of a new peer, or a further one of the present peer. */
  async offer(offer: Offer, spec: OfferSpec): Promise<void> {
    await this.peers.offer(offer, spec);
  }

  /** Nobody looks: no model runs, and nothing is drawn or coded. Sound goes on. */
  setVideoWanted(isWanted: boolean): void {
    this.#isVideoWanted = isWanted;
    if (isWanted) {
      this.frames.video?.requestKeyFrame();
    }
  }

  /** The peer is gone; the session waits for another one. Nothing is drawn or coded meanwhile. */
  peerForgotten(): void {
    this.#isPeerUp = false;
    this.frames.forgetPeer();
    this.#sampler.forgetPeer(monotonicMs());
  }

  onConnected(nowMs: number, iceMs: number): void {
    if (this.#isOver) {
      return;
    }
    this.#isPeerUp = true;
    if (this.#connectedMs === 0) {
      this.#connectedMs = nowMs;
      this.state.lastSpokeMs = nowMs;
    } else {
      this.frames.video?.requestKeyFrame();
    }
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
    if (this.spec.outlivesPeers && reason !== 'failed') {
      this.peers.forget();
      const { post } = this.#context;
      post({ type: 'peerLost', sessionId: this.id, reason: END_OF_PEER[reason] });
      return;
    }
    this.end(END_OF_PEER[reason]);
  }

  onKeyFrameRequest(): void {
    this.frames.video?.requestKeyFrame();
  }

  onTargetBitrate(kbps: number): void {
    this.frames.video?.setBitrate(kbps);
  }

  onMessage(_channel: DataChannel, data: Buffer): void {
    this.peers.received(data, monotonicMs());
  }

  onAudio(packet: Uint8Array, _rtpTimestamp: number, sequenceNumber: number): void {
    if (this.spec.ignoresMicrophone !== true) {
      this.#audioReceiver.receive(packet, sequenceNumber, monotonicMs());
    }
  }

  // ── what the inference thread tells ────────────────────────────────────────────────────────────

  onPatch(tookMs: number): void {
    this.stats.stage('inference', tookMs);
    this.#context.metrics.stage.inference.observe(tookMs / 1000);
  }

  onInferenceFailure(error: Error): void {
    this.fail(error);
  }

  // ── speech ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Call it first at each tick: applies an interruption, so that it takes effect with the next
   * packet, and says which packet that is.
   */
  beginTick(nowMs: number): void {
    if (this.speech.takeFlush()) {
      this.#interrupt(nowMs);
    }
    this.audio.skipLate(nowMs - this.clock.epochMs);
  }

  sendDueAudio(nowMs: number): void {
    this.audio.sendDue(this.peer!, nowMs - this.clock.epochMs, nowMs);
    this.speech.setHeard(this.stream.unheardSamples);
  }

  #interrupt(nowMs: number): void {
    this.stream.flush();
    this.frames.articulation.close();
    this.#context.metrics.interrupt.observe((nowMs - this.speech.flushMs) / 1000);
    this.announce(this.state.stop());
  }

  /** A new utterance begins: features, model and renderer forget the one before. */
  forgetSpeech(): void {
    this.mel.reset();
    this.modelState.reset();
    this.frames.audioRenderer?.reset();
    this.frames.articulation.reopen();
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

  /** A frame is the first that shows an utterance. */
  announceLips(times: Omit<LipsTimes, 'arrivedMs'>): void {
    const arrivedMs = this.stream.utteranceArrivalMs;
    this.#context.post({ type: 'lips', sessionId: this.id, arrivedMs, ...times });
  }

  announceFirstFrame(atMs: number): void {
    this.#context.post({ type: 'firstFrame', sessionId: this.id, atMs });
  }

  // ── limits and figures, a few times a second ───────────────────────────────────────────────────

  /** Ends the session when it has reached one of its limits or has nothing left to do. */
  poll(nowMs: number): void {
    if (this.#isOver) {
      return;
    }
    this.peers.poll(nowMs);
    if (this.#isOver) {
      return;
    }
    const end = this.#dueEnd(nowMs);
    if (end !== undefined) {
      this.end(end);
    } else if (this.isConnected) {
      this.#sampler.sample(this, nowMs);
    }
  }

  #dueEnd(nowMs: number): EndReason | undefined {
    if (!this.isConnected && this.peers.isStuck(nowMs)) {
      if (!this.spec.outlivesPeers) {
        return 'connect_timeout';
      }
      this.peers.drop();
      this.#context.post({ type: 'peerLost', sessionId: this.id, reason: 'connect_timeout' });
    }
    if (this.#connectedMs === 0) {
      return undefined;
    }
    // During the wait for SILENT the last packets leave the receiver's buffer: clients hang up at
    // STOP.
    if (this.stream.isFinished && !this.state.isSpeaking) {
      return 'done';
    }
    if (nowMs - this.#connectedMs >= this.spec.maxLengthMs) {
      return 'length_limit';
    }
    return this.state.idleMs(nowMs) >= this.spec.maxIdleMs ? 'idle_limit' : undefined;
  }

  // ── the end ────────────────────────────────────────────────────────────────────────────────────

  /** Logs the error and ends this session; the worker's other sessions go on. */
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

  /** Frees everything and tells the front. Idempotent. */
  end(reason: EndReason): void {
    if (this.#isOver) {
      return;
    }
    this.announce(this.state.stop()); // every SPEAK is followed by a SILENT, before STOP too
    this.#isOver = true;
    this.peers.close();
    this.frames.close();
    this.audio.close();
    this.#audioReceiver.close();
    this.#context.post({ type: 'ended', sessionId: this.id, reason });
  }
}
