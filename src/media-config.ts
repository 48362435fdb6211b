// The media settings: where the UDP sockets are bound, which addresses clients are told, bitrates
// and limits.
import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import path from 'node:path';
import { ownAddresses } from './base/network-interfaces.ts';
import type { Config } from './config.ts';
import type { MediaConfig, Wav2LipOptions } from './link/worker-init.ts';

/** @throws Error that says what to set, when media cannot be bound to the configured address */
export async function mediaConfig(config: Config): Promise<MediaConfig> {
  const host = config.HOST === 'localhost' ? '127.0.0.1' : config.HOST;
  const bindAddress = config.MEDIA_HOST ?? (isLoopback(host) ? '0.0.0.0' : host);
  await checkMediaAddress(bindAddress);
  return {
    bindAddress,
    announcedAddresses: config.ANNOUNCED_IPS ?? localAddresses(bindAddress, host),
    ports: config.UDP_PORTS,
    videoBitrateKbps: config.VIDEO_BITRATE_KBPS,
    maxVideoBitrateKbps: config.MAX_VIDEO_BITRATE_KBPS,
    motion: config.MOTION,
    audioBitrateKbps: config.AUDIO_BITRATE_KBPS,
    maxSessionsPerWorker: config.MAX_SESSIONS_PER_WORKER,
    maxLoad: config.MAX_WORKER_LOAD,
  };
}

/**
 * The user's own network; undefined when none is configured.
 * @throws Error when its file does not exist
 */
export function wav2lipOptions(config: Config): Wav2LipOptions | undefined {
  if (config.WAV2LIP_MODEL === undefined) {
    return undefined;
  }
  if (!existsSync(config.WAV2LIP_MODEL)) {
    throw new Error(
      `WAV2LIP_MODEL=${config.WAV2LIP_MODEL} does not exist. Correct the path, or unset it.`,
    );
  }
  return {
    file: path.resolve(config.WAV2LIP_MODEL),
    providers: config.ORT_PROVIDERS,
    threads: config.WAV2LIP_THREADS,
  };
}

/** Whether `host` names this machine only. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host.startsWith('127.');

/** Whether `host` stands for all addresses of this machine. */
export const isAnyAddress = (host: string): host is '0.0.0.0' | '::' =>
  host === '0.0.0.0' || host === '::';

/** The addresses of this machine at which a socket bound to `bindAddress` is reached. */
function localAddresses(bindAddress: string, host: string): readonly string[] {
  if (!isAnyAddress(bindAddress)) {
    return [bindAddress];
  }
  const { external } = ownAddresses(bindAddress);
  // Clients on this machine connect over loopback: their address comes first.
  return isLoopback(host) ? ['127.0.0.1', ...external] : external;
}

/**
 * Binds a socket for a moment, so that a wrong address is told once and before any worker starts.
 */
async function checkMediaAddress(address: string): Promise<void> {
  if (isIP(address) === 0) {
    throw new Error(`HOST=${address} is a name, and media needs an address: set MEDIA_HOST.`);
  }
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  await new Promise<void>((resolve, reject) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      socket.close();
      reject(
        new Error(
          `Media cannot be bound to ${address} (${code}): it is not an address of this ` +
            'machine. Set MEDIA_HOST or HOST; where clients see another address, name that ' +
            'in ANNOUNCED_IPS.',
        ),
      );
    });
    socket.bind(0, address, () => {
      socket.close(() => {
        resolve();
      });
    });
  });
}
