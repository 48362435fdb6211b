// Makes the model files that are not shipped: the face networks in ONNX, and the assets of the
// default faces. Run by the set-up.
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const log = (line: string): void => {
  process.stderr.write(`[setup] ${line}\n`);
};

const { convertFaceModels } = await import('../models/convert/index.ts');
await convertFaceModels({ outDir: path.join(root, 'models/build'), log });
const { buildDefaultFaces } = await import('../src/jobs/face/default-faces.ts');
await buildDefaultFaces({ outDir: path.join(root, 'models/build/faces'), log });
