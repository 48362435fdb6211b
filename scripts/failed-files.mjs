// A reporter for node:test that writes the files in which something failed, one a line, for run.mjs to run once more.

/** @param {AsyncIterable<{ type: string, data: { file?: string, name?: string } }>} source */
export default async function* failedFiles(source) {
  const seen = new Set();
  for await (const { type, data } of source) {
    // A file that could not even be loaded is reported as a test that bears its name.
    const file = data.file ?? data.name;
    if (type !== 'test:fail' || file === undefined || seen.has(file)) continue;
    seen.add(file);
    yield `${file}\n`;
  }
}
