// Coverage for JavaScript: puts a counter into every branch of a module, for libFuzzer to read
// after each input.
import { parse, type Node } from 'acorn';

export interface Instrumented {
  readonly code: string;
  /** Branches, and so counters. */
  readonly edges: number;
  /**
   * Strings and numbers that the module compares with or writes: what an input may have to contain.
   */
  readonly words: readonly string[];
}

/** The name of a module's counters. */
const COUNTERS = '__edges';
const MAX_WORD = 32;

interface Insertion {
  readonly at: number;
  readonly text: string;
}

type Fields = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value;

/**
 * @param source JavaScript (a module). Lines stay where they are, so stack traces point into the
 * original.
 */
export function instrument(source: string): Instrumented {
  const insertions: Insertion[] = [];
  const words = new Set<string>();
  let edges = 0;
  const count = (): string => `${COUNTERS}[${edges++}]++`;
  const insert = (at: number, text: string): void => {
    insertions.push({ at, text });
  };

  /** A statement in a branch of its own. */
  const statement = (node: Node): void => {
    const isBlock = node.type === 'BlockStatement';
    insert(isBlock ? node.start + 1 : node.start, isBlock ? `${count()};` : `{${count()};`);
    visit(node);
    if (!isBlock) {
      insert(node.end, '}');
    }
  };
  const expression = (node: Node): void => {
    insert(node.start, `(${count()},`);
    visit(node);
    insert(node.end, ')');
  };
  const rest = (fields: Fields, ...done: readonly string[]): void => {
    for (const [name, value] of Object.entries(fields)) {
      if (done.includes(name)) {
        continue;
      }
      for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
        if (isNode(child)) {
          visit(child);
        }
      }
    }
  };

  function visit(node: Node): void {
    const fields = node as unknown as Fields;
    switch (node.type) {
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'CatchClause':
      case 'ForStatement':
      case 'ForInStatement':
      case 'ForOfStatement':
      case 'WhileStatement':
      case 'DoWhileStatement':
        // In the order of the text: insertions at one place must come in it.
        if (node.type === 'DoWhileStatement') {
          statement(fields['body'] as Node);
          rest(fields, 'body');
        } else {
          rest(fields, 'body');
          statement(fields['body'] as Node);
        }
        return;
      case 'ArrowFunctionExpression':
        rest(fields, 'body');
        if ((fields['body'] as Node).type === 'BlockStatement') {
          statement(fields['body'] as Node);
        } else {
          expression(fields['body'] as Node);
        }
        return;
      case 'IfStatement':
        visit(fields['test'] as Node);
        statement(fields['consequent'] as Node);
        if (isNode(fields['alternate'])) {
          statement(fields['alternate']);
        } else {
          insert(node.end, `else{${count()};}`);
        }
        return;
      case 'ConditionalExpression':
        visit(fields['test'] as Node);
        expression(fields['consequent'] as Node);
        expression(fields['alternate'] as Node);
        return;
      case 'LogicalExpression':
        visit(fields['left'] as Node);
        expression(fields['right'] as Node);
        return;
      case 'SwitchCase': {
        if (isNode(fields['test'])) {
          visit(fields['test']);
        }
        const body = fields['consequent'] as readonly Node[];
        if (body[0] !== undefined) {
          insert(body[0].start, `${count()};`);
        }
        for (const child of body) {
          visit(child);
        }
        return;
      }
      case 'ImportDeclaration':
      case 'TemplateElement':
        return;
      case 'Literal':
        noteWord(fields['value'], words);
        return;
      default:
        rest(fields);
    }
  }

  visit(parse(source, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true }));
  const code =
    edges === 0
      ? source
      : `const ${COUNTERS}=globalThis.__fuzzCounters(${edges});${weave(source, insertions)}`;
  return { code, edges, words: [...words] };
}

/** Puts the insertions in their places; those at one place in the order in which they were made. */
function weave(source: string, insertions: readonly Insertion[]): string {
  const sorted = insertions
    .map((insertion, order) => ({ ...insertion, order }))
    .sort((a, b) => a.at - b.at || a.order - b.order);
  const out: string[] = [];
  let from = 0;
  for (const { at, text } of sorted) {
    out.push(source.slice(from, at), text);
    from = at;
  }
  out.push(source.slice(from));
  return out.join('');
}

/** Numbers in both byte orders and as text. */
function noteWord(value: unknown, words: Set<string>): void {
  if (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= MAX_WORD &&
    !value.startsWith('node:') &&
    !value.endsWith('.ts')
  ) {
    words.add(value);
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 256 || value > 0xffff_ffff) {
    return;
  }
  const width = value > 0xffff ? 4 : 2;
  const bytes = Buffer.alloc(width);
  bytes.writeUIntBE(value, 0, width);
  words.add(bytes.toString('latin1'));
  words.add(Buffer.from(bytes.toReversed()).toString('latin1'));
  words.add(String(value));
}
