// What both kinds of sockets need: that of a session, and that of an agent.

/** Bytes that may wait in the socket before speech waits. */
const MAX_BUFFERED_BYTES = 1 << 20;

/** Sends a message if the socket is open. @returns whether it is */
export function sendOn(socket: WebSocket, message: string | Uint8Array<ArrayBuffer>): boolean {
  const isOpen = socket.readyState === WebSocket.OPEN;
  if (isOpen) {
    socket.send(message);
  }
  return isOpen;
}

/** Resolves once the socket has little left to send, or is closed. */
export async function drained(socket: WebSocket): Promise<void> {
  while (socket.readyState === WebSocket.OPEN && socket.bufferedAmount > MAX_BUFFERED_BYTES) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}
