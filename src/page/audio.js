// The microphone of the demo page.
// @ts-check

/**
 * @returns {Promise<MediaStream>}
 * @throws {Error} with a message for the user when no microphone is available.
 */
export async function openMicrophone() {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error(
      'Browsers allow the microphone on secure pages only. Open this page as ' +
        'http://localhost or over HTTPS.',
    );
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, noiseSuppression: true, channelCount: 1 },
    });
  } catch (error) {
    const name = /** @type {DOMException} */ (error).name;
    if (name === 'NotAllowedError') {
      throw new Error(
        'The microphone is blocked for this page. Allow it in the address bar and try again.',
        { cause: error },
      );
    }
    if (name === 'NotFoundError') {
      throw new Error('No microphone was found. Plug one in and try again.', { cause: error });
    }
    throw new Error('The microphone could not be opened. Another program may be using it.', {
      cause: error,
    });
  }
}
