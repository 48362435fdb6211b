// Cuts the text of a language model into clauses while it streams: a voice can begin with the first
// clause, long before the reply is complete.

/** The shortest first clause, in characters: a voice needs a little text for its melody. */
const MIN_FIRST = 8;
/** The shortest later clause: longer ones sound better, and there is time by then. */
const MIN_LATER = 30;
/** A clause without punctuation is cut at a space beyond this length. */
const MAX_CLAUSE = 240;

/**
 * Ends of clauses: punctuation and the space after it; CJK punctuation needs no space. Nor does a
 * comma after a letter: the space would come with the model's next token, some 25 ms later.
 */
const END = /[.!?;:,…—][)"'”’\]]*\s|[。！？；，、]|\n|(?<=\p{L})[,;]$/gu;

/** @returns the length of the first clause in `text`; 0 while it is not complete */
function clauseLength(text: string, minimum: number): number {
  END.lastIndex = 0;
  for (let match = END.exec(text); match !== null; match = END.exec(text)) {
    const end = match.index + match[0].length;
    // "3.5" has no space after its point; "Dr. " and initials are short.
    const isAbbreviation = /(?:^|\s)(?:[A-Z]|Mr|Mrs|Ms|Dr|St|e\.g|i\.e|vs|No)\.\s$/.test(
      text.slice(0, end),
    );
    if (text.slice(0, end).trim().length >= minimum && !isAbbreviation) {
      return end;
    }
  }
  if (text.length > MAX_CLAUSE) {
    const space = text.lastIndexOf(' ', MAX_CLAUSE);
    return space > 0 ? space + 1 : MAX_CLAUSE;
  }
  return 0;
}

/** Yields the clauses of a stream of text. Joined, they are the text. */
export async function* clausesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  let isFirst = true;
  for await (const piece of text) {
    rest += piece;
    for (;;) {
      const length = clauseLength(rest, isFirst ? MIN_FIRST : MIN_LATER);
      if (length === 0) {
        break;
      }
      const clause = rest.slice(0, length);
      rest = rest.slice(length);
      if (clause.trim() !== '') {
        isFirst = false;
        yield clause;
      }
    }
  }
  if (rest.trim() !== '') {
    yield rest;
  }
}
