// A lint plugin with one rule: every regular expression must run in linear time. Clients choose
// most of the input, and the main thread is blocked meanwhile: a quadratic expression takes 48
// seconds for 120 kB of spaces.
import { analyse } from 'scslre';

const WHY = {
  Trade: 'two quantifiers can divide the same characters between them in many ways',
  Self: 'a repeated group can divide the same characters among its repetitions in many ways',
  Move:
    'it is tried again from each position in a long run of the same characters; anchor ' +
    'it, or find the end without it',
};

/**
 * Analyses an expression.
 * @returns {string | undefined} why it is slow; undefined when it is linear or invalid
 */
export function whySlow(source, flags) {
  let reports;
  try {
    ({ reports } = analyse({ source, flags }, { maxReports: 1 }));
  } catch (error) {
    // The compiler reports invalid expressions.
    if (error instanceof SyntaxError) {
      return undefined;
    }
    throw error;
  }
  const [report] = reports;
  return (
    report &&
    `${report.exponential ? 'exponential' : 'polynomial'} in the number of ` +
      `${report.character.literal.source}: ${WHY[report.type]}`
  );
}

const isText = (node) =>
  node === undefined || (node.type === 'Literal' && typeof node.value === 'string');

const linear = {
  meta: {
    type: 'problem',
    docs: { description: 'regular expressions take linear time' },
    schema: [],
  },
  create(context) {
    const check = (node, source, flags) => {
      const reason = whySlow(source, flags);
      if (reason !== undefined) {
        context.report({ node, message: `This regular expression can be slow: ${reason}.` });
      }
    };
    const construct = (node) => {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'RegExp') {
        return;
      }
      const [pattern, flags] = node.arguments;
      if (pattern !== undefined && isText(pattern) && isText(flags)) {
        check(node, pattern.value, flags?.value ?? '');
      } else {
        context.report({
          node,
          message:
            'Write regular expressions as literals: one that is built at run time cannot be checked.',
        });
      }
    };
    return {
      Literal(node) {
        if (node.regex) {
          check(node, node.regex.pattern, node.regex.flags);
        }
      },
      NewExpression: construct,
      CallExpression: construct,
    };
  },
};

export default { meta: { name: 'linear-regexp' }, rules: { linear } };
