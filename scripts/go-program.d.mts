// Types of go-program.mjs.

/** Programs that it builds. */
export type GoProgram = 'livekit-server' | 'versitygw' | 'helm' | 'kubeconform';
/** Where programs and environments are that outlive the checkout. */
export function cacheFolder(): string;
export function findGoProgram(name: GoProgram): string | undefined;
export function buildGoProgram(name: GoProgram, log: (line: string) => void): string;
