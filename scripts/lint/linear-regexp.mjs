// A lint plugin of one rule: every regular expression takes time that grows linearly with its input.
// Strangers choose what most of them are matched against, and the main thread stands still meanwhile:
// quadratic is 48 seconds for 120 kB of blanks.
import { analyse } from 'scslre';

const WHY = {
  Trade: 'two quantifiers can share out the same characters between them in many ways',
  Self: 'a repeated group can divide the same characters among its turns in many ways',
  Move: 'it is tried anew from each place of a long run of the same characters; anchor it, or search for the end without it',
};

/**
 * @returns {string | undefined} what makes the expression slow, in words; undefined when it is linear or
 * no valid expression
 */
export function whySlow(source, flags) {
  let reports;
  try {
    ({ reports } = analyse({ source, flags }, { maxReports: 1 }));
  } catch (error) {
    if (error instanceof SyntaxError) {
      return undefined;
    } // the compiler tells of those
    throw error;
  }
  const [report] = reports;
  return (
    report &&
    `${report.exponential ? 'exponential' : 'polynomial'} in the number of ${report.character.literal.source}: ${WHY[report.type]}`
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
            'Write regular expressions as literals: what is put together at run time cannot be checked.',
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
