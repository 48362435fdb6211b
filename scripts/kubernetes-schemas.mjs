// Writes JSON schemas of everything the Helm chart can make, for kubeconform: Kubernetes' own kinds
// from its OpenAPI document, those of KEDA and of the Prometheus operator from their definitions of
// custom resources. All come from Go's module proxy, which checks their sums, once a machine
// (`npm run setup -- --kubernetes`).
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { parse } from 'yaml';
import { cacheFolder } from './go-program.mjs';

/** The version of Kubernetes, as Helm wants it. */
export const KUBERNETES_VERSION = '1.30.14';
const KUBERNETES = `k8s.io/kubernetes@v${KUBERNETES_VERSION}`;
const OPENAPI = 'api/openapi-spec/swagger.json';
/** Definitions of custom resources, by module. */
const CUSTOM_RESOURCES = {
  'github.com/kedacore/keda/v2@v2.16.1': ['config/crd/bases/keda.sh_scaledobjects.yaml'],
  'github.com/prometheus-operator/prometheus-operator@v0.79.2': [
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
  ],
};

const DEFINITIONS = '#/definitions/';
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
/** A string in OpenAPI, but manifests may have numbers, too. */
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';

/** Named after what it was made of and of this format: another one is another folder. */
const folder = () => path.join(cacheFolder(), `kubernetes-schemas-${KUBERNETES_VERSION}-1`);

/** What kubeconform gets as -schema-location; undefined: the schemas are not on this machine. */
export const schemaLocation = () =>
  existsSync(folder()) ? path.join(folder(), '{{.ResourceKind}}{{.KindSuffix}}.json') : undefined;

/** The file in which kubeconform looks for a kind: deployment-apps-v1.json. */
const fileOf = ({ group, version, kind }) =>
  `${[kind, ...(group === '' ? [] : [group.split('.')[0]]), version].join('-').toLowerCase()}.json`;

/**
 * A schema of OpenAPI as one of JSON Schema, without prose. Objects have no other properties than
 * those that are named: a server drops what it does not know, so a misspelt name has no effect.
 */
function strict(schema) {
  if (Array.isArray(schema)) {
    return schema.map(strict);
  }
  if (typeof schema !== 'object' || schema === null) {
    return schema;
  }
  if (schema.format === 'int-or-string' || schema['x-kubernetes-int-or-string'] === true) {
    return { type: ['integer', 'string'] };
  }
  const { properties, description: _prose, default: _default, nullable, ...rest } = schema;
  const made = Object.fromEntries(
    Object.entries(rest)
      .filter(([name]) => !name.startsWith('x-kubernetes-'))
      .map(([name, value]) => [name, strict(value)]),
  );
  if (properties !== undefined) {
    made.properties = Object.fromEntries(
      Object.entries(properties).map(([name, value]) => [name, strict(value)]),
    );
    if (schema['x-kubernetes-preserve-unknown-fields'] !== true) {
      made.additionalProperties ??= false;
    }
  }
  return nullable === true && typeof made.type === 'string'
    ? { ...made, type: [made.type, 'null'] }
    : made;
}

/** The schema, with every definition that it or one of these refers to. */
function complete(schema, definitions) {
  const needed = {};
  const gather = (text) => {
    for (const [, name] of text.matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)) {
      if (needed[name] === undefined) {
        needed[name] = definitions[name];
        gather(JSON.stringify(needed[name]));
      }
    }
  };
  gather(JSON.stringify(schema));
  return { ...schema, definitions: needed };
}

/** Schemas of Kubernetes' own kinds, and its definitions. */
function ownKinds(openApi) {
  const definitions = Object.fromEntries(
    Object.entries(openApi.definitions).map(([name, schema]) => [name, strict(schema)]),
  );
  definitions[QUANTITY] = { type: ['string', 'number'] };
  const kinds = Object.entries(openApi.definitions).flatMap(([name, schema]) =>
    schema.properties?.kind === undefined
      ? []
      : (schema['x-kubernetes-group-version-kind'] ?? []).map((kind) => [
          fileOf(kind),
          complete(definitions[name], definitions),
        ]),
  );
  return { definitions, kinds };
}

/** Schemas of the versions of a custom resource. */
const customKinds = ({ spec }, definitions) =>
  spec.versions.map(({ name: version, schema }) => {
    const made = strict(schema.openAPIV3Schema);
    made.properties.metadata = { $ref: DEFINITIONS + OBJECT_META };
    return [
      fileOf({ group: spec.group, version, kind: spec.names.kind }),
      complete(made, definitions),
    ];
  });

/** Fetches a module. @returns its folder. @throws Error with one line */
function fetchModule(module, modules) {
  const { status, stdout, stderr, error } = spawnSync('go', ['mod', 'download', '-json', module], {
    cwd: modules,
    env: { ...process.env, GOMODCACHE: modules, GOFLAGS: '-modcacherw' },
    encoding: 'utf8',
  });
  if (status !== 0) {
    const said = stdout?.startsWith('{') ? JSON.parse(stdout).Error : stderr;
    const reason = error?.message ?? String(said).trim().split('\n').pop();
    throw new Error(`${module} could not be fetched with Go: ${reason}`);
  }
  return JSON.parse(stdout).Dir;
}

/**
 * Writes the schemas, unless they are there: half a minute, and 0.3 GB meanwhile. Needs Go.
 * @throws Error with one line
 */
export function writeKubernetesSchemas(log) {
  if (existsSync(folder())) {
    return folder();
  }
  log(`fetching the schemas of Kubernetes ${KUBERNETES_VERSION}, KEDA and the Prometheus operator`);
  mkdirSync(cacheFolder(), { recursive: true });
  const work = mkdtempSync(`${folder()}-`);
  try {
    const modules = path.join(work, 'modules');
    const made = path.join(work, 'schemas');
    mkdirSync(modules);
    mkdirSync(made);
    const openApi = readFileSync(path.join(fetchModule(KUBERNETES, modules), OPENAPI), 'utf8');
    const { definitions, kinds } = ownKinds(JSON.parse(openApi));
    for (const [module, files] of Object.entries(CUSTOM_RESOURCES)) {
      const at = fetchModule(module, modules);
      for (const file of files) {
        kinds.push(...customKinds(parse(readFileSync(path.join(at, file), 'utf8')), definitions));
      }
    }
    for (const [file, schema] of kinds) {
      writeFileSync(path.join(made, file), JSON.stringify(schema));
    }
    renameSync(made, folder());
    return folder();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
