// What the session service keeps of one socket.
import type { EarlyMessages } from './early-messages.ts';
import type { MessageBudget } from './message-budget.ts';
import type { MessageWriter } from './server-messages.ts';
import type { LinkFactory, SocketSession } from './session-ports.ts';

/** The state of one socket. */
export class Connection {
  readonly createLink: LinkFactory;
  readonly early: EarlyMessages;
  readonly budget: MessageBudget;
  /** The form in which the client wants its messages. */
  readonly write: MessageWriter;
  /** There is no socket: speech comes as PCM through the link. */
  readonly isHeadless: boolean;
  /** Undefined while the token is checked, and when the socket was refused. */
  session: SocketSession | undefined = undefined;
  isClosed = false;

  constructor(
    createLink: LinkFactory,
    early: EarlyMessages,
    budget: MessageBudget,
    write: MessageWriter,
    isHeadless: boolean,
  ) {
    this.createLink = createLink;
    this.early = early;
    this.budget = budget;
    this.write = write;
    this.isHeadless = isHeadless;
  }

  /** No message follows. */
  close(): void {
    this.budget.close();
    this.early.take();
  }
}
