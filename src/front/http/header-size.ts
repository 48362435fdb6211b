// Sets how long the head of a request may be. Import it before uWebSockets.js, which reads the
// variable when it is loaded; it has no other way to set it.

/**
 * Longest request line and headers together, when they arrive in several reads. The offer in the URL
 * of a LiveKit client takes 5 kB (livekit-client 2.23 in Chromium); the default of uWebSockets.js is
 * 4 KiB. Each connection whose head is not complete may hold this much memory.
 */
const MAX_HEAD_BYTES = 16 * 1024;

process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(MAX_HEAD_BYTES);
