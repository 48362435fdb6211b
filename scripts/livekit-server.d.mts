// Types of livekit-server.mjs.

export function findLivekitServer(): string | undefined;
export function buildLivekitServer(log: (line: string) => void): string;
