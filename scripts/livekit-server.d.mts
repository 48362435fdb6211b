// Types of livekit-server.mjs.

export function livekitServerFile(): string;
export function buildLivekitServer(log: (line: string) => void): string;
