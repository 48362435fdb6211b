// What a client can order while its session runs, as JSON messages: the table of the commands, and
// their schemas.
import { z } from 'zod';
import { EMOTIONS } from '../../media/articulation.ts';
import { GESTURES } from '../../media/face-command.ts';

const eye = z.number().min(-1).max(1);

/** What is told of a command. */
export interface CommandSpec<Fields extends z.ZodObject> {
  readonly summary: string;
  readonly fields: Fields;
  readonly example: z.input<Fields>;
}

const command = <Fields extends z.ZodObject>(spec: CommandSpec<Fields>): CommandSpec<Fields> =>
  spec;

/** Every command. The keys are the values of `type`. */
export const COMMANDS = {
  interrupt: command({
    summary:
      'Interrupts, as SKIP does: the face falls silent, and all speech so far is forgotten. The ' +
      'server replies with interrupted, which says how much of it was heard.',
    fields: z.object({}),
    example: {},
  }),
  flush: command({
    summary:
      'The speech so far is a whole utterance. The server tells flushed with the same id, once: ' +
      'when it has been heard to its end, or was interrupted.',
    fields: z.object({
      id: z.string().max(64).default('').meta({ description: 'Any text: comes back in flushed.' }),
    }),
    example: { id: 'reply-1' },
  }),
  words: command({
    summary:
      'The words of the utterance with the times at which they begin, from the alignment of a ' +
      'voice. The server tells word when each is heard, on the clock of the viewer: captions. Send ' +
      'them before their sound or with it.',
    fields: z.object({
      words: z
        .array(
          z.object({
            text: z.string().max(100),
            startMs: z.number().min(0).max(600_000).meta({
              description: 'Since the utterance began: after the last flush or interrupt.',
            }),
          }),
        )
        .min(1)
        .max(500),
    }),
    example: {
      words: [
        { text: 'Hello', startMs: 0 },
        { text: 'friends', startMs: 410 },
      ],
    },
  }),
  emotion: command({
    summary: 'The face shows this emotion from now on.',
    fields: z.object({
      emotion: z.enum(EMOTIONS),
      strength: z.number().min(0).max(1).default(1),
    }),
    example: { emotion: 'happy', strength: 0.7 },
  }),
  gaze: command({
    summary:
      'The eyes look there, and go on by themselves after some seconds. 0, 0: at the viewer.',
    fields: z.object({
      x: eye.meta({ description: 'Right is positive, as the viewer sees it.' }),
      y: eye.meta({ description: 'Down is positive.' }),
      seconds: z.number().min(0).max(3600).default(2),
    }),
    example: { x: 0.6, y: -0.2, seconds: 1.5 },
  }),
  gesture: command({
    summary: 'The face makes this movement once. It goes on speaking.',
    fields: z.object({ gesture: z.enum(GESTURES) }),
    example: { gesture: 'nod' },
  }),
  mute: command({
    summary:
      'While it is muted the face is silent and its mouth rests. The time of the speech passes all ' +
      'the same.',
    fields: z.object({ muted: z.boolean() }),
    example: { muted: true },
  }),
  face: command({
    summary:
      'Another face of the owner goes on, within a second. The server tells face when it is there, ' +
      'or rejected.',
    fields: z.object({ faceId: z.string().min(1).max(128) }),
    example: { faceId: 'ava' },
  }),
} as const;

type Name = keyof typeof COMMANDS;

/** One command of a client. */
export type Command = {
  [Type in Name]: { readonly type: Type } & z.output<(typeof COMMANDS)[Type]['fields']>;
}[Name];

/** The schema of one command as a message. */
export const commandSchema = (type: Name): z.ZodObject =>
  COMMANDS[type].fields.extend({ type: z.literal(type) });

const schemas = new Map<unknown, z.ZodObject>(
  (Object.keys(COMMANDS) as Name[]).map((type) => [type, commandSchema(type)]),
);

/** Whether a message of this type is a command. */
export const isCommand = (type: string | undefined): type is Name => schemas.has(type);

/**
 * Ends each list of a message after its first wrong element. Zod describes every fault, and a
 * thousand of them in 1.5 kB take 3 ms (measured).
 */
function upToFirstFault(
  { shape }: z.ZodObject,
  message: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const lists = Object.entries(shape).flatMap(([name, field]) => {
    const list = message[name];
    if (!(field instanceof z.ZodArray) || !Array.isArray(list)) {
      return [];
    }
    const at = list.findIndex((element) => !z.safeParse(field.element, element).success);
    return at < 0 ? [] : [[name, list.slice(0, at + 1)]];
  });
  return lists.length === 0 ? message : { ...message, ...Object.fromEntries(lists) };
}

/** A JSON message as a command, or what is wrong with it; undefined: it is none. */
export function parseCommand(
  message: Readonly<Record<string, unknown>>,
): { readonly command: Command } | { readonly type: string; readonly problem: string } | undefined {
  const { type } = message;
  const schema = schemas.get(type);
  if (schema === undefined) {
    return undefined;
  }
  const parsed = schema.safeParse(upToFirstFault(schema, message));
  return parsed.success
    ? { command: parsed.data as unknown as Command }
    : {
        type: type as string,
        problem: parsed.error.issues
          .map(({ path, message: what }) => `${path.join('.')}: ${what}`)
          .join('; '),
      };
}
