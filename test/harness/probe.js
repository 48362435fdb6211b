// Runs inside the browser: connects with the page's own client and records what is really decoded,
// frame by frame and sample by sample. Evaluated as a script (see probe.ts); nothing is judged
// here, only written down, on the page's clock (`performance.now()`).

(() => {
  const SIZE = 96; // side of the recorded luma picture
  const AUDIO_RATE = 16_000; // of the recorded sound
  /** Of 10 ms each: they wait while the page is busy. By default the browser drops some. */
  const MAX_WAITING_PIECES = 200;

  class Probe {
    events = [];
    frames = [];
    pieces = [];
    session = null;

    /** Resolves at the first rendered frame, as clients of the service do. */
    async connect({ url, token, codec, iceServers = [], withMicrophone = false, createToken }) {
      const { Session, createToken: make } = await import(`${url}/client/index.js`);
      const startMs = performance.now();
      this.#note('begin');
      const sessionToken = token ?? (await make(createToken));
      const microphone = withMicrophone
        ? (
            await navigator.mediaDevices.getUserMedia({
              audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
            })
          ).getAudioTracks()[0]
        : undefined;
      const session = (this.session = new Session({
        sessionToken,
        baseUrl: url,
        iceServers,
        reconnect: false,
        ...(codec && { codec }),
        ...(microphone && { microphone }),
      }));
      const names = { started: 'start', speaking: 'speak' };
      for (const name of ['started', 'speaking', 'silent', 'ack', 'rate', 'closing']) {
        session.on(name, (detail) => this.#note(names[name] ?? name, detail));
      }
      session.on('end', ({ reason, error }) =>
        this.#note('end', { reason, code: error?.code ?? null }),
      );
      const video = (this.video = document.createElement('video'));
      video.playsInline = true;
      video.autoplay = true;
      document.body.append(video);
      video.srcObject = session.stream;
      const first = new Promise((resolve) => {
        video.requestVideoFrameCallback(resolve);
      });
      await session.started();
      this.#watch(video);
      this.#listen(await this.#audioTrack(session.stream));
      await first;
      this.#note('firstFrame');
      return { connectMs: performance.now() - startMs };
    }

    /**
     * Joins a LiveKit room with LiveKit's own client, which has been loaded into this page. Resolves
     * at the first rendered frame.
     */
    async joinRoom({ url, token, options = {} }) {
      const { Room, RoomEvent } = LivekitClient;
      const room = (this.room = new Room(options));
      const stream = new MediaStream();
      this.session = {
        state: 'live',
        stream,
        peer: { getStats: () => room.engine.pcManager.publisher.getStats() },
      };
      const video = (this.video = document.createElement('video'));
      video.playsInline = true;
      video.autoplay = true;
      video.srcObject = stream;
      document.body.append(video);
      const first = new Promise((resolve) => {
        video.requestVideoFrameCallback(resolve);
      });
      room.on(RoomEvent.TrackSubscribed, ({ mediaStreamTrack, kind, sid }, { source }, who) => {
        this.#note('subscribed', { kind, sid, source, identity: who.identity });
        stream.addTrack(mediaStreamTrack);
        if (kind === 'audio') {
          this.#listen(mediaStreamTrack);
        }
      });
      room.on(RoomEvent.TrackUnsubscribed, ({ mediaStreamTrack }) => {
        stream.removeTrack(mediaStreamTrack);
      });
      room.on(RoomEvent.ActiveSpeakersChanged, (speakers) =>
        this.#note(
          'speakers',
          speakers.map(({ identity }) => identity),
        ),
      );
      room.on(RoomEvent.Disconnected, (reason) => this.#note('disconnected', reason));
      room.on(RoomEvent.Reconnecting, () => this.#note('reconnecting'));
      room.on(RoomEvent.SignalReconnecting, () => this.#note('signalReconnecting'));
      room.on(RoomEvent.Reconnected, () => this.#note('reconnected'));
      const startMs = performance.now();
      await room.connect(url, token);
      const joinedMs = performance.now();
      this.#watch(video);
      await first;
      const firstFrameMs = performance.now();
      this.#note('firstFrame');
      return { joinMs: joinedMs - startMs, firstFrameMs: firstFrameMs - joinedMs };
    }

    /** Records what a page of the service shows in `video`. */
    attach(video) {
      this.video = video;
      this.session = { state: 'live', stream: video.srcObject };
      this.#watch(video);
      this.#listen(video.srcObject.getAudioTracks()[0]);
    }

    /** Leaves the room. */
    leaveRoom() {
      return this.room.disconnect();
    }

    /** Sends speech (base64 of PCM16) and says when. */
    send(base64, how = 'speak') {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const nowMs = performance.now();
      void this.session.speak(bytes.buffer, { interrupt: how === 'playImmediate' });
      this.#note(how === 'speak' ? 'sent' : 'replaced');
      return nowMs;
    }

    command(name) {
      const nowMs = performance.now();
      const methods = { skip: 'interrupt', done: 'finish' };
      void this.session[methods[name] ?? name]();
      this.#note(`command:${name}`);
      return nowMs;
    }

    /** Resolves with the event once one of that name has come since `sinceMs`. */
    async waitFor(name, sinceMs = 0, limitMs = 20_000) {
      const deadlineMs = performance.now() + limitMs;
      for (;;) {
        const found = this.events.find((event) => event.name === name && event.atMs >= sinceMs);
        if (found) {
          return found;
        }
        if (performance.now() > deadlineMs) {
          throw new Error(
            `no '${name}' within ${limitMs} ms; there were: ` +
              this.events.map((event) => `${event.name}@${Math.round(event.atMs)}`).join(' '),
          );
        }
        await new Promise((resolve) => {
          this.#onEvent = resolve;
          setTimeout(resolve, 100);
        });
      }
    }

    #onEvent = () => {};

    #note(name, detail = null) {
      this.events.push({ name, detail, atMs: performance.now() });
      this.#onEvent();
    }

    #watch(video) {
      const canvas = new OffscreenCanvas(SIZE, SIZE);
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.imageSmoothingQuality = 'medium';
      const look = (nowMs, metadata) => {
        if (this.session.state === 'ended') {
          return;
        }
        video.requestVideoFrameCallback(look);
        context.drawImage(video, 0, 0, SIZE, SIZE);
        const rgba = context.getImageData(0, 0, SIZE, SIZE).data;
        const luma = new Uint8Array(SIZE * SIZE);
        for (let i = 0; i < luma.length; i++) {
          luma[i] = (rgba[4 * i] * 77 + rgba[4 * i + 1] * 150 + rgba[4 * i + 2] * 29) >> 8;
        }
        this.frames.push({
          shownMs: metadata.expectedDisplayTime,
          calledMs: nowMs,
          captureMs: metadata.captureTime ?? null,
          receiveMs: metadata.receiveTime ?? null,
          rtp: metadata.rtpTimestamp ?? null,
          presented: metadata.presentedFrames,
          width: metadata.width,
          height: metadata.height,
          luma,
        });
      };
      video.requestVideoFrameCallback(look);
    }

    /** The session's sound, which the browser may add after the server told of the start. */
    async #audioTrack(stream) {
      for (let tries = 0; tries < 200; tries++) {
        const [track] = stream.getAudioTracks();
        if (track !== undefined) {
          return track;
        }
        await new Promise((resolve) => {
          setTimeout(resolve, 25);
        });
      }
      throw new Error('the session has no sound track after 5 s');
    }

    /**
     * Taps the decoded sound where the browser's mixer pulls it, which is when it is about to be
     * heard.
     */
    #listen(track) {
      const processor = new MediaStreamTrackProcessor({
        track,
        maxBufferSize: MAX_WAITING_PIECES,
      });
      const reader = processor.readable.getReader();
      const pump = async () => {
        while (this.session.state !== 'ended') {
          const { value: data, done } = await reader.read();
          if (done) {
            return;
          }
          const atMs = performance.now();
          const samples = new Float32Array(data.numberOfFrames);
          data.copyTo(samples, { planeIndex: 0, format: 'f32-planar' });
          const step = data.sampleRate / AUDIO_RATE;
          const small = new Int16Array(Math.floor(samples.length / step));
          for (let i = 0; i < small.length; i++) {
            let sum = 0;
            for (let k = 0; k < step; k++) {
              sum += samples[i * step + k];
            }
            small[i] = Math.max(-32768, Math.min(32767, (sum / step) * 32767));
          }
          this.pieces.push({ atMs, timestampMs: data.timestamp / 1000, samples: small });
          data.close();
        }
      };
      pump().catch(() => {});
    }

    async stats() {
      const report = {};
      (await this.session.peer.getStats()).forEach((one) => {
        if (one.type === 'inbound-rtp') {
          report[one.kind] = one;
        }
        if (one.type === 'candidate-pair' && one.nominated) {
          report.pair = one;
        }
        if (one.type === 'codec') {
          (report.codecs ??= []).push(one.mimeType);
        }
      });
      return report;
    }

    /** The level of the latest audio packet, as its sender tells it: 0 to 1; null: it does not. */
    level() {
      const receivers = this.session.peer.getReceivers();
      const audio = receivers.find(({ track }) => track.kind === 'audio');
      return audio.getSynchronizationSources()[0]?.audioLevel ?? null;
    }

    /** Everything recorded so far (and forgotten here), in a form that crosses to Node. */
    take() {
      const { frames, pieces, events } = this;
      this.frames = [];
      this.pieces = [];
      const luma = new Uint8Array(frames.length * SIZE * SIZE);
      frames.forEach((frame, at) => luma.set(frame.luma, at * SIZE * SIZE));
      const samples = new Int16Array(pieces.reduce((sum, piece) => sum + piece.samples.length, 0));
      let at = 0;
      for (const piece of pieces) {
        samples.set(piece.samples, at);
        at += piece.samples.length;
      }
      return {
        size: SIZE,
        frames: frames.map((frame) => ({ ...frame, luma: undefined })),
        luma: toBase64(luma),
        pieces: pieces.map((piece) => ({
          atMs: piece.atMs,
          timestampMs: piece.timestampMs,
          length: piece.samples.length,
        })),
        samples: toBase64(new Uint8Array(samples.buffer)),
        events: [...events],
        nowMs: performance.now(),
      };
    }
  }

  function toBase64(bytes) {
    let text = '';
    for (let at = 0; at < bytes.length; at += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    }
    return btoa(text);
  }

  globalThis.probe = new Probe();
})();
