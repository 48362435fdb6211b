// The page at /docs: reads /openapi.json and shows it. Whole in itself: nothing is loaded from elsewhere.

export const docsPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Mouthpiece API</title>
<style>
:root{color-scheme:light dark;--line:#8884;--soft:light-dark(#f3f3f3,#222);--get:#1f6fd0;--post:#147a45;--put:#8f5d12;--delete:#c53030}
html{background:light-dark(#fff,#121212);color:light-dark(#111,#f2f2f2)}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1.5rem}
h1{margin:0 0 .25rem}h2{margin:2rem 0 .5rem;font-size:1.1rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0;padding:0 .75rem}
summary{cursor:pointer;padding:.6rem 0;display:flex;gap:.75rem;align-items:baseline;flex-wrap:wrap}
.method{font:700 .75rem ui-monospace,monospace;color:#fff;border-radius:.3rem;padding:.15rem .45rem;min-width:3.6rem;text-align:center}
.get{background:var(--get)}.post{background:var(--post)}.put{background:var(--put)}.delete{background:var(--delete)}
code,pre{font:13px/1.45 ui-monospace,monospace}code{overflow-wrap:anywhere}pre{background:var(--soft);padding:.75rem;border-radius:.4rem;overflow:auto;max-height:24rem}
.old{text-decoration:line-through;color:light-dark(#555,#aaa)}
table{border-collapse:collapse;width:100%}td,th{text-align:left;border-top:1px solid var(--line);padding:.35rem .5rem;vertical-align:top;overflow-wrap:anywhere}
.tag{font-size:.75rem;border:1px solid var(--line);border-radius:1rem;padding:0 .5rem}
</style></head><body>
<header><h1>Mouthpiece API</h1><p id="about" role="status">Loading <a href="/openapi.json">/openapi.json</a> …</p></header><main></main>
<script>
const make = (name, text, parent, cls) => { const e = document.createElement(name); if (text) e.textContent = text; if (cls) e.className = cls; parent?.append(e); return e; };
// What can scroll must be reachable by the keyboard.
const code = (text, parent, label) => { const e = make('pre', text, parent); e.tabIndex = 0; e.role = 'group'; e.ariaLabel = label; };
const shape = (doc, schema, depth = 0) => {
  if (!schema || depth > 5) return 'any';
  if (schema.$ref) return shape(doc, doc.components.schemas[schema.$ref.split('/').pop()], depth);
  if (schema.enum) return schema.enum.length > 12 ? 'string' : schema.enum.join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map((s) => shape(doc, s, depth + 1)).join(' | ');
  if (schema.type === 'array') return shape(doc, schema.items, depth + 1) + '[]';
  if (schema.type === 'object' && schema.properties) {
    const pad = '  '.repeat(depth + 1);
    return '{\\n' + Object.entries(schema.properties).map(([k, v]) => pad + k + ((schema.required ?? []).includes(k) ? '' : '?') + ': ' + shape(doc, v, depth + 1)
      + (v.default !== undefined ? ' = ' + JSON.stringify(v.default) : '') + (v.description ? '   // ' + v.description : '')).join('\\n') + '\\n' + '  '.repeat(depth) + '}';
  }
  return (schema.type ?? 'any') + (schema.format ? ' (' + schema.format + ')' : '');
};
fetch('/openapi.json').then((r) => r.json()).then((doc) => {
  about.textContent = doc.info.description + ' Version ' + doc.info.version + '. Send your key in the header ' + doc.components.securitySchemes.apiKey.name + '.';
  const groups = {};
  for (const [path, item] of Object.entries(doc.paths)) for (const [method, op] of Object.entries(item)) (groups[op.tags[0]] ??= []).push({ path, method, op });
  for (const [tag, list] of Object.entries(groups)) {
    make('h2', tag, document.querySelector('main'));
    for (const { path, method, op } of list) {
      const box = make('details', '', document.querySelector('main')); const head = make('summary', '', box);
      make('span', method.toUpperCase(), head, 'method ' + method); make('code', path, head, op.deprecated ? 'old' : ''); make('span', op.summary, head);
      if (op.deprecated) make('span', 'deprecated', head, 'tag'); if (op.security.length) make('span', 'key', head, 'tag');
      if (op['x-earlier-names']) make('p', 'Earlier: ' + op['x-earlier-names'].join(', '), box);
      if (op.parameters.length) { const t = make('table', '', box); for (const p of op.parameters) { const r = make('tr', '', t); make('td', p.name + (p.required ? '' : '?'), r); make('td', p.in, r); make('td', shape(doc, p.schema), r); make('td', p.description ?? '', r); } }
      for (const [type, c] of Object.entries(op.requestBody?.content ?? {})) {
        make('p', 'Body, ' + type, box); code(shape(doc, c.schema), box, 'Body, ' + type);
        if (c.example) { const shown = JSON.stringify(c.example, (k, v) => typeof v === 'string' && v.length > 200 ? v.slice(0, 40) + '…' : v, 2); code("curl -X " + method.toUpperCase() + ' ' + location.origin + path + ' \\\\\\n  -H "' + doc.components.securitySchemes.apiKey.name + ': $KEY" -H "content-type: application/json" \\\\\\n  -d \\'' + shown + '\\'', box, 'Example'); }
      }
      for (const [status, r] of Object.entries(op.responses)) { make('p', status + ' — ' + r.description, box); const c = Object.values(r.content ?? {})[0]; if (c?.schema && status < 400) code(shape(doc, c.schema), box, 'Answer ' + status); }
    }
  }
}).catch((e) => { about.textContent = 'The document could not be read: ' + e.message; });
</script></body></html>`;
