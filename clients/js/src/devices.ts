// The microphones and loudspeakers of the machine, for a page that lets its user choose.

/** What can be chosen. A device without an `id` is not told before the user allows the microphone. */
export interface Devices {
  readonly microphones: readonly Device[];
  readonly speakers: readonly Device[];
}

/** One device. */
export interface Device {
  /** For `setMicrophone` or `setSpeaker`. */
  readonly id: string;
  /** Its name, as the system has it. */
  readonly label: string;
}

/**
 * Lists the devices. `navigator.mediaDevices` tells `devicechange` when they are others.
 * @param ask whether to ask the user for the microphone first: before that, browsers tell no names
 * @throws DOMException when the user forbids it, or there is no microphone
 * @throws Error where the page may have no devices
 */
export async function listDevices(ask = false): Promise<Devices> {
  if (ask) {
    (await openMicrophone()).stop();
  }
  const all = await mediaDevices().enumerateDevices();
  const ofKind = (wanted: MediaDeviceKind): Device[] =>
    all
      .filter(({ kind, deviceId }) => kind === wanted && deviceId !== '')
      .map(({ deviceId: id, label }) => ({ id, label }));
  return { microphones: ofKind('audioinput'), speakers: ofKind('audiooutput') };
}

/**
 * Opens a microphone, for the option `microphone`. The page stops the track when it is done with it.
 * @param deviceId of `listDevices`; default: the one that the user has chosen in the browser
 * @throws DOMException when the user forbids it, or it is not there
 * @throws Error where the page may have no devices
 */
export async function openMicrophone(deviceId = ''): Promise<MediaStreamTrack> {
  const stream = await mediaDevices().getUserMedia({
    audio: {
      ...(deviceId !== '' && { deviceId: { exact: deviceId } }),
      echoCancellation: true,
      noiseSuppression: true,
      autoGainControl: true,
    },
  });
  return stream.getAudioTracks()[0]!;
}

function mediaDevices(): MediaDevices {
  // Pages of plain HTTP have none, except those of this machine.
  if (!navigator.mediaDevices) {
    throw new Error('This page may use no microphone: serve it over HTTPS.');
  }
  return navigator.mediaDevices;
}
