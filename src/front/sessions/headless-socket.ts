// The socket of a session that has none: its client talks to it through a room.
import type { Socket } from '../http/socket.ts';

/** Takes messages and drops them; alive until its end. */
export class HeadlessSocket<Data> implements Socket<Data> {
  data: Data | undefined = undefined;
  open = true;

  send(): boolean {
    return this.open;
  }
  isAlive(): Promise<boolean> {
    return Promise.resolve(this.open);
  }
  trust(): void {}
  distrust(): void {}
  end(): void {
    this.open = false;
  }
}
